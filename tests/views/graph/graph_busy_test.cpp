#include <QTest>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/layout/dot_client.h"
#include "tests/core/trace/build.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"

namespace retrograd::views {

/// A computation without modules of as many ops as the number in the path, each of which reads two from anywhere before
/// it: edges cross, so dot is asked.
class TangledEngine : public FakeEngine {
 public:
  std::shared_ptr<const Analysis> open(const OpenRequest& request, const Progress&, const OnRead&) override {
    test::Builder b;
    std::vector<ValueId> values{b.input("x", {4})};
    std::mt19937 random(1);
    const auto count = std::stoul(request.path.substr(request.path.find_first_of("0123456789")));
    while (b.trace.ops.size() < count)
      values.push_back(b.call("aten.add.Tensor", {values.back(), values[random() % values.size()]}));
    b.trace.kind = TraceKind::computation;
    b.trace.outputs = {values.back()};
    auto analysis = std::make_shared<Analysis>();
    auto document = std::make_shared<Document>(std::move(b.document));
    analysis->file.document = document;
    analysis->document = document;
    analysis->file.path = request.path;
    analysis->file.computation.trace = std::move(b.trace);
    return analysis;
  }
};

/// Layouts that take long: reported, cancelled, and the graph that is there afterwards.
class GraphBusyTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void cleanup();
  void isReportedWithACancelButton();
  void cancelButtonLeavesTheOwnLayout();
  void escapeLeavesTheOwnLayout();
  void afterwardsItIsLaidOutAsBefore();
  void quickLayoutsShowNoPanel();
  void cancellingTheOwnLayoutLeavesAWayBack();

 private:
  GraphView& graph() { return fixture_->window().listings().graph(); }
  bool settled() {
    return QTest::qWaitFor([&] { return graph().picture() && !graph().busy(); }, 30000);
  }
  /// Opens a graph of this many ops and shows it, with a helper that never answers.
  bool hang(const QString& path) {
    graph().setLayoutHelper(helper_);
    fixture_->window().listings().graphAction()->setChecked(true);
    return fixture_->open(path) && QTest::qWaitFor(
                                       [&] {
                                         return graph().busyPanel().isVisible() &&
                                                graph().busyPanel().text().contains(QStringLiteral("dot"));
                                       },
                                       10000);
  }
  /// Whether a helper of this test still runs.
  bool helperRuns() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream in(entry.path() / "cmdline");
      std::string line;
      std::getline(in, line);
      if (line.find(helper_) != std::string::npos) return true;
    }
    return false;
  }

  std::unique_ptr<WindowFixture> fixture_;
  std::string helper_;
};

void GraphBusyTest::init() {
  helper_ = std::filesystem::temp_directory_path() / ("retrograd-hanging" + std::to_string(getpid()));
  // It sleeps itself, so that killing it ends all.
  std::ofstream(helper_) << "#!/bin/sh\nwhile read line; do :; done\n";
  std::filesystem::permissions(helper_, std::filesystem::perms::owner_all);
  fixture_ = std::make_unique<WindowFixture>(std::make_shared<TangledEngine>());
}

void GraphBusyTest::cleanup() {
  fixture_.reset();
  std::filesystem::remove(helper_);
}

void GraphBusyTest::isReportedWithACancelButton() {
  QVERIFY(hang(QStringLiteral("tangled1500")));
  const auto& panel = graph().busyPanel();
  QVERIFY2(panel.text().contains(QStringLiteral("1500 boxes")), qPrintable(panel.text()));
  QVERIFY(QRect(QPoint(), graph().size()).contains(panel.geometry()));
  auto* bar = panel.findChild<QProgressBar*>();
  const int before = bar->value();
  QVERIFY(QTest::qWaitFor([&] { return bar->value() > before; }, 10000));
  QVERIFY(panel.cancelButton().isVisible() && !panel.cancelButton().accessibleName().isEmpty());
  QVERIFY(helperRuns());
  fixture_->picture(QStringLiteral("graph-busy"));
}

void GraphBusyTest::cancelButtonLeavesTheOwnLayout() {
  QVERIFY(hang(QStringLiteral("tangled1500")));
  QElapsedTimer clock;
  clock.start();
  QTest::mouseClick(&graph().busyPanel().cancelButton(), Qt::LeftButton);
  QVERIFY(settled());
  QVERIFY2(clock.elapsed() < 4000, "not when the five seconds of dot are over");
  QVERIFY(!graph().busyPanel().isVisible());
  QCOMPARE(graph().picture()->scene.boxes.size(), std::size_t(1500));
  QVERIFY(QTest::qWaitFor([&] { return !helperRuns(); }, 3000));
  // Usable: a box is found, selected and walked from.
  const auto op = fixture_->analysis().computation().trace.ops[700];
  graph().reveal(op);
  QCOMPARE(graph().opOf(graph().current()), op);
  graph().setFocus();
  QTest::keyClick(&graph(), Qt::Key_Down);
  QVERIFY(graph().opOf(graph().current()) != op);
}

void GraphBusyTest::escapeLeavesTheOwnLayout() {
  QVERIFY(hang(QStringLiteral("tangled1500")));
  graph().setFocus();
  QElapsedTimer clock;
  clock.start();
  QTest::keyClick(&graph(), Qt::Key_Escape);
  QVERIFY(settled());
  QVERIFY(clock.elapsed() < 4000);
  QCOMPARE(graph().picture()->scene.boxes.size(), std::size_t(1500));
}

void GraphBusyTest::afterwardsItIsLaidOutAsBefore() {
  QVERIFY(hang(QStringLiteral("tangled1500")));
  QTest::mouseClick(&graph().busyPanel().cancelButton(), Qt::LeftButton);
  QVERIFY(settled());
  // With the real helper the next document gets dot's layout again: fewer crossings, so another picture than the own
  // one.
  QVERIFY(!layout::layoutHelper().empty());
  graph().setLayoutHelper({});
  QVERIFY(fixture_->open(QStringLiteral("tangled60")));
  QVERIFY(settled());
  const auto own = graph().picture()->scene.bounds;
  graph().setLayoutHelper(layout::layoutHelper());
  QVERIFY(settled());
  const auto dots = graph().picture()->scene.bounds;
  QVERIFY(own.width != dots.width || own.height != dots.height);
}

void GraphBusyTest::quickLayoutsShowNoPanel() {
  graph().setLayoutHelper({});
  fixture_->window().listings().graphAction()->setChecked(true);
  QVERIFY(fixture_->open(QStringLiteral("tangled20")));
  QVERIFY(settled());
  QVERIFY(!graph().busyPanel().isVisible());
  QVERIFY(standsStill(graph()));
  QVERIFY(!graph().busyPanel().isVisible());
}

void GraphBusyTest::cancellingTheOwnLayoutLeavesAWayBack() {
  graph().setLayoutHelper({});
  fixture_->window().listings().graphAction()->setChecked(true);
  QVERIFY(fixture_->open(QStringLiteral("tangled4000")));
  if (graph().picture()) QSKIP("the layout was there before it could be cancelled");
  graph().cancelLayout();
  QVERIFY(QTest::qWaitFor([&] { return !graph().busy(); }, 5000));
  if (graph().picture()) QSKIP("the layout was there before it could be cancelled");
  graph().setFocus();
  QTest::keyClick(&graph(), Qt::Key_Return);
  QVERIFY(settled());
  QCOMPARE(graph().picture()->scene.boxes.size(), std::size_t(4000));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::GraphBusyTest)
#include "graph_busy_test.moc"
