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
  void theAxisIsThePositionInTheRun_data();
  void theAxisIsThePositionInTheRun();
  void theOpUnderThePointerHasItsNumber();
  void aNumberAtTheEdgeIsWhole();

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

void MemoryTest::theAxisIsThePositionInTheRun_data() {
  QTest::addColumn<int>("ops");
  QTest::newRow("few") << 12;
  QTest::newRow("some") << 1062;
  QTest::newRow("many") << 300000;
}

void MemoryTest::theAxisIsThePositionInTheRun() {
  QFETCH(int, ops);
  // A partition that recomputes runs ops whose ids are those of the end: ids jump, the axis does not.
  const auto view = this->view(static_cast<std::size_t>(ops), 1 << 20, [](std::size_t at) {
    return BoundSymbolId(static_cast<int>(at % 2 ? 500000 + at : at));
  });
  const auto areRound = [&] {
    const auto ticks = view->ticks();
    if (ticks.size() < 2) return false;
    const auto apart = ticks[1].first - ticks[0].first;
    auto mantissa = apart;
    while (mantissa % 10 == 0) mantissa /= 10;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      const auto step = ticks[i].first + 1;  // as the tool bar counts
      if (step % apart != 0 || ticks[i].second != QString::number(step)) return false;
      if (i > 0 && ticks[i].first != ticks[i - 1].first + apart) return false;
      if (i > 0 && view->xOf(ticks[i].first) - view->xOf(ticks[i - 1].first) <=
                       view->fontMetrics().horizontalAdvance(QString::number(ops)))
        return false;
    }
    return mantissa == 1 || mantissa == 2 || mantissa == 5;
  };
  QVERIFY(areRound());
  view->zoomTo(ops * 0.3, ops * 0.9);
  QVERIFY(areRound());
}

void MemoryTest::theOpUnderThePointerHasItsNumber() {
  const auto view =
      this->view(1000, 1 << 20, [](std::size_t at) { return BoundSymbolId(7000 + static_cast<int>(at)); });
  view->show();
  QVERIFY(QTest::qWaitForWindowExposed(view.get()));
  QVERIFY(view->cursorText().isEmpty());
  QTest::keyClick(view.get(), Qt::Key_End);
  QCOMPARE(view->cursorText(), QStringLiteral("1000: #7999"));
  const auto before = view->grab().toImage();
  const QPoint middle(view->xOf(400), view->height() / 2);
  QTest::mouseMove(view.get(), middle);
  const auto at = static_cast<int>(*view->positionAt(middle));
  QTRY_COMPARE(view->cursorText(), QStringLiteral("%1: #%2").arg(at + 1).arg(7000 + at));
  QVERIFY(view->grab().toImage() != before);  // it is drawn
}

// The axis ends with the last op; what is below it is moved inwards, not cut.
void MemoryTest::aNumberAtTheEdgeIsWhole() {
  const auto view =
      this->view(1000, 1 << 20, [](std::size_t at) { return BoundSymbolId(1000000 + static_cast<int>(at)); });
  QCOMPARE(view->ticks().back().second, QStringLiteral("1000"));
  QVERIFY(view->xOf(view->ticks().back().first) + view->fontMetrics().horizontalAdvance(QStringLiteral("1000")) / 2 >
          view->width() - 2);
  const auto drawn = view->grab().toImage();
  const int line = view->fontMetrics().height();
  const QRect margin(view->width() - 1, view->height() - line, 1, line);
  for (int y = margin.top(); y <= margin.bottom(); ++y)
    QCOMPARE(drawn.pixelColor(margin.left(), y), theme_->colors().background);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::MemoryTest)
#include "memory_test.moc"
