// The memory timeline by itself: its axes.
#include <QTest>

#include "tests/views/test_program.h"
#include "views/canvases/memory_view.h"

namespace retrograd::views {
namespace {

/// Memory that grows from op to op up to `peak` bytes.
std::shared_ptr<const MemoryTimeline> growing(std::size_t ops, std::int64_t peak) {
  auto timeline = std::make_shared<MemoryTimeline>();
  timeline->liveBytes.resize(ops);
  for (std::size_t op = 0; op < ops; ++op)
    timeline->liveBytes[op][0] = peak * static_cast<std::int64_t>(op + 1) / static_cast<std::int64_t>(ops);
  timeline->peakBytes = peak;
  timeline->peakPosition = ops - 1;
  return timeline;
}

}  // namespace

class MemoryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void V10_opsAreNamedByRoundNumbers_data();
  void V10_opsAreNamedByRoundNumbers();
  void V10_opsOutOfOrderAreNamedWithoutOverlap();
  void V10_anIdAtTheEdgeIsWhole();

 private:
  std::unique_ptr<MemoryView> view(std::size_t ops, std::int64_t peak, std::function<BoundSymbolId(std::size_t)> opAt) {
    auto view = std::make_unique<MemoryView>(theme_.get());
    view->resize(500, 200);
    view->set(growing(ops, peak), ops / 2, std::move(opAt));
    return view;
  }

  std::unique_ptr<Theme> theme_;
};

void MemoryTest::init() { theme_ = std::make_unique<Theme>(*qApp); }

void MemoryTest::V10_opsAreNamedByRoundNumbers_data() {
  QTest::addColumn<int>("ops");
  QTest::addColumn<int>("first");
  // The ids of the joint begin after those of the computation.
  QTest::newRow("few") << 12 << 7;
  QTest::newRow("some") << 1062 << 237;
  QTest::newRow("many") << 300000 << 100001;
}

void MemoryTest::V10_opsAreNamedByRoundNumbers() {
  QFETCH(int, ops);
  QFETCH(int, first);
  const auto view = this->view(static_cast<std::size_t>(ops), 1 << 20,
                               [first](std::size_t at) { return BoundSymbolId(first + static_cast<int>(at)); });
  const auto areRound = [&] {
    const auto ticks = view->ticks();
    if (ticks.size() < 2) return false;
    const int apart = static_cast<int>(ticks[1].first - ticks[0].first);
    int mantissa = apart;
    while (mantissa % 10 == 0) mantissa /= 10;
    const auto isRound = [&](const auto& tick) {
      const int id = first + static_cast<int>(tick.first);
      return id % apart == 0 && tick.second == QStringLiteral("#%1").arg(id);
    };
    return (mantissa == 1 || mantissa == 2 || mantissa == 5) && std::all_of(ticks.begin(), ticks.end(), isRound);
  };
  QVERIFY(areRound());
  view->zoomTo(ops * 0.3, ops * 0.9);
  QVERIFY(areRound());
}

// A partition that recomputes runs ops whose ids are those of the end.
void MemoryTest::V10_opsOutOfOrderAreNamedWithoutOverlap() {
  const auto view = this->view(1000, 1 << 20,
                               [](std::size_t at) { return BoundSymbolId(static_cast<int>(at % 2 ? 5000 + at : at)); });
  const auto ticks = view->ticks();
  QVERIFY(ticks.size() >= 2);
  for (std::size_t i = 1; i < ticks.size(); ++i)
    QVERIFY(view->xOf(ticks[i].first) - view->xOf(ticks[i - 1].first) >
            view->fontMetrics().horizontalAdvance(QStringLiteral("#5999")));
}

// The axis ends with the last op; its id is moved inwards, not cut.
void MemoryTest::V10_anIdAtTheEdgeIsWhole() {
  const auto view =
      this->view(1001, 1 << 20, [](std::size_t at) { return BoundSymbolId(1000000 + static_cast<int>(at)); });
  const auto ticks = view->ticks();
  QCOMPARE(ticks.back().second, QStringLiteral("#1001000"));
  QVERIFY(view->xOf(ticks.back().first) + view->fontMetrics().horizontalAdvance(ticks.back().second) / 2 >
          view->width());
  const auto drawn = view->grab().toImage();
  const int line = view->fontMetrics().height();
  const QRect margin(view->width() - 1, view->height() - line, 1, line);
  for (int y = margin.top(); y <= margin.bottom(); ++y)
    QCOMPARE(drawn.pixelColor(margin.left(), y), theme_->colors().background);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::MemoryTest)
#include "memory_test.moc"
