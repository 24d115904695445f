#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QTest>
#include <QToolButton>

#include "tests/support/source_path.h"
#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "views/docks/memory_dock.h"
#include "views/parts/history_memory.h"

namespace retrograd::views {

/// What is changed while a run goes on, and what running takes: breakpoints on the way, memory for the way back, memory
/// measured.
class RunningTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void aBreakpointSetOnTheWayStopsTheRun();
  void theSelectedOpGoesAlongWithSteps();
  void aRunGoesOnAfterABreakpointOnTheWayBack();
  void runToCursorStopsAtABreakpointOnTheWay();
  void aBreakpointTakenAwayOnTheWayDoesNot();
  void oneThatIsDisabledOnTheWayDoesNot();
  void badNumbersCanBeAskedForOnTheWay();
  void stepsOverManyOpsStopAtThoseSetOnTheWay();
  void theRealRunHeedsThemToo();
  void memoryForTheWayBackIsAskedForAndKept();
  void amountsOfMemoryAreRead();
  void theAllocatorIsMeasured();
};

namespace {

std::shared_ptr<FakeEngine> slowEngine() {
  auto engine = std::make_shared<FakeEngine>();
  engine->opTime = std::chrono::milliseconds(20);
  return engine;
}

/// Starts a run and waits until it is on its way.
bool startRun(WindowFixture& f) {
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  return QTest::qWaitFor([&] { return f.execution().running && f.window().busy().isVisible(); }, 5000);
}

}  // namespace

void RunningTest::aBreakpointSetOnTheWayStopsTheRun() {
  WindowFixture f(slowEngine());
  QVERIFY(f.open(QStringLiteral("synthetic100")));
  QVERIFY(startRun(f));
  const auto op = f.analysis().forward.ops[60];
  f.click(TraceKind::forward, op);
  f.press(Qt::Key_F9);
  QCOMPARE(f.window().context().execution->breakpoints().size(), std::size_t(1));
  QVERIFY(f.execution().running);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::breakpoint);
  QCOMPARE(f.execution().current, op);
  QVERIFY(f.execution().hit && f.execution().hit->op == op);
  QCOMPARE(f.execution().hits, std::vector<std::int64_t>{1});
  // It goes on from there.
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, std::size_t(61));
}

// By keyboard alone over the border and back: each step selects the op that runs next, so that Values are those of that
// op, also where one looked elsewhere.
void RunningTest::theSelectedOpGoesAlongWithSteps() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic2")));
  const auto& forward = f.analysis().forward.ops;
  const auto& backward = f.analysis().backward.ops;
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_End);
  QCOMPARE(f.selection().op(), forward.back());
  f.press(Qt::Key_F10, Qt::ControlModifier);  // run to the selected line
  QVERIFY(f.settle());
  QCOMPARE(f.execution().current, forward.back());
  const auto stepped = [&](Qt::KeyboardModifiers modifiers, BoundSymbolId to) {
    f.press(Qt::Key_F11, modifiers);
    QVERIFY(f.settle());
    QCOMPARE(f.execution().current, to);
    QCOMPARE(f.selection().op(), to);
  };
  stepped({}, backward[0]);
  QVERIFY(f.listing(TraceKind::backward).hasFocus());  // the keyboard goes along
  stepped({}, backward[1]);
  f.press(Qt::Key_Down);
  QVERIFY(f.controller().document()->trace(TraceKind::backward).line(f.selection().op()) >= 0);
  stepped(Qt::ControlModifier | Qt::ShiftModifier, backward[0]);
  stepped(Qt::ControlModifier | Qt::ShiftModifier, forward.back());
  QVERIFY(f.listing(TraceKind::forward).hasFocus());
  f.selection().select(forward[1]);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().current, backward[0]);
  QCOMPARE(f.selection().op(), backward[0]);
}

// A command after one that stopped on its way back to the start once waited for ever.
void RunningTest::aRunGoesOnAfterABreakpointOnTheWayBack() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto& forward = f.analysis().forward.ops;
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  f.click(TraceKind::forward, forward[2]);
  f.press(Qt::Key_F9);
  f.press(Qt::Key_F5, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().current, forward[2]);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().current, forward[3]);
  // A step back that ends at the breakpoint is no early end.
  f.press(Qt::Key_F11, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().current, forward[2]);
  f.press(Qt::Key_F11);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().current, forward[4]);
}

void RunningTest::runToCursorStopsAtABreakpointOnTheWay() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto& forward = f.analysis().forward.ops;
  f.click(TraceKind::forward, forward[2]);
  f.press(Qt::Key_F9);
  const auto runTo = [&](BoundSymbolId op, BoundSymbolId stopsAt, StopReason reason) {
    f.click(TraceKind::forward, op);
    f.press(Qt::Key_F10, Qt::ControlModifier);
    QVERIFY(f.settle());
    QCOMPARE(f.execution().current, stopsAt);
    QCOMPARE(f.execution().reason, reason);
  };
  runTo(forward[4], forward[2], StopReason::breakpoint);
  runTo(forward[4], forward[4], StopReason::step);
  runTo(forward[0], forward[2], StopReason::breakpoint);
  f.click(TraceKind::forward, forward[2]);
  f.press(Qt::Key_F9);
  runTo(forward[4], forward[4], StopReason::step);
  runTo(forward[0], forward[0], StopReason::cursor);  // nothing can stop it: at once
}

void RunningTest::aBreakpointTakenAwayOnTheWayDoesNot() {
  WindowFixture f(slowEngine());
  QVERIFY(f.open(QStringLiteral("synthetic30")));
  f.controller().marks().toggleBreakpoint(f.analysis().forward.ops[40]);
  f.controller().marks().toggleBreakpoint(f.analysis().forward.ops[70]);
  QVERIFY(startRun(f));
  f.controller().marks().removeBreakpoint(0);
  QVERIFY(f.execution().running);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().current, f.analysis().forward.ops[70]);
}

void RunningTest::oneThatIsDisabledOnTheWayDoesNot() {
  WindowFixture f(slowEngine());
  QVERIFY(f.open(QStringLiteral("synthetic30")));
  f.controller().marks().toggleBreakpoint(f.analysis().forward.ops[40]);
  f.controller().marks().toggleBreakpoint(f.analysis().forward.ops[70]);
  f.controller().marks().enableBreakpoint(1, false);
  QVERIFY(startRun(f));
  f.controller().marks().enableBreakpoint(0, false);
  f.controller().marks().enableBreakpoint(1, true);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().current, f.analysis().forward.ops[70]);
}

void RunningTest::badNumbersCanBeAskedForOnTheWay() {
  auto engine = slowEngine();
  engine->badAt = 50;
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic30")));
  QVERIFY(startRun(f));
  f.window().actions().breakOnBad->trigger();
  QVERIFY(f.execution().running);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::badNumber);
  QCOMPARE(f.execution().position, std::size_t(50));
}

void RunningTest::stepsOverManyOpsStopAtThoseSetOnTheWay() {
  WindowFixture f(slowEngine());
  QVERIFY(f.open(QStringLiteral("synthetic30")));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F11, Qt::ShiftModifier);  // out: to the border
  QVERIFY(QTest::qWaitFor([&] { return f.execution().running; }, 5000));
  f.controller().marks().toggleBreakpoint(f.analysis().forward.ops[50]);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::breakpoint);
  QCOMPARE(f.execution().position, std::size_t(50));
}

/// The run is over in some 30 ms, which this thread may sleep away: one of a hundred attempts has to come in time.
void RunningTest::theRealRunHeedsThemToo() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2"))));
  const auto last = f.analysis().backward.ops.back();
  for (int attempt = 0; attempt < 100 && f.execution().reason != StopReason::breakpoint; ++attempt) {
    f.controller().run().restart();
    QVERIFY(f.settle());
    f.controller().run().continueForward();
    f.controller().marks().toggleBreakpoint(last);
    QVERIFY(f.settle());
    f.controller().marks().removeBreakpoint(0);
  }
  QCOMPARE(f.execution().reason, StopReason::breakpoint);
  QCOMPARE(f.execution().current, last);
}

void RunningTest::memoryForTheWayBackIsAskedForAndKept() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  auto* action = f.window().findChild<QAction*>(QStringLiteral("action-history-memory"));
  QVERIFY(action && f.window().menu("run")->actions().contains(action));
  action->trigger();
  auto* dialog = f.window().findChild<HistoryMemoryDialog*>();
  QVERIFY(dialog && dialog->isVisible());
  auto* amount = dialog->findChild<QComboBox*>(QStringLiteral("history-amount"));
  auto* used = dialog->findChild<QLabel*>(QStringLiteral("history-used"));
  QCOMPARE(amount->currentText(), QStringLiteral("1.0 GiB"));
  QVERIFY2(QTest::qWaitFor([&] { return used->text().contains(QStringLiteral("100 B for 1 op")); }, 5000),
           qPrintable(used->text()));
  amount->setEditText(QStringLiteral("much"));
  dialog->accept();
  QVERIFY(dialog->isVisible());
  QVERIFY(dialog->findChild<QLabel*>(QStringLiteral("history-problem"))
              ->text()
              .contains(QStringLiteral("'much' is not an amount")));
  amount->setEditText(QStringLiteral("512 KiB"));
  dialog->accept();
  QCOMPARE(HistoryMemoryDialog::kept(*f.window().shared().settings), std::int64_t(512) << 10);
  // It holds for what is open, and for what is opened next.
  const auto budget = [&] {
    std::int64_t found = -1;
    f.controller().questions().ask(&f.window(), QStringLiteral("test"), {},
                                   [&](const QuestionContext& context, const Progress&) -> Worker::Deliver {
                                     return [&found, bytes = context.runner->history().budget] { found = bytes; };
                                   });
    (void)QTest::qWaitFor([&] { return found >= 0; }, 5000);
    return found;
  };
  QCOMPARE(budget(), std::int64_t(512) << 10);
  QVERIFY(f.open(QStringLiteral("synthetic5")));
  QCOMPARE(budget(), std::int64_t(512) << 10);
}

void RunningTest::amountsOfMemoryAreRead() {
  QCOMPARE(bytesFromText(QStringLiteral("4096")), std::optional<std::int64_t>(4096));
  QCOMPARE(bytesFromText(QStringLiteral(" 1.5 GiB ")), std::optional<std::int64_t>(1610612736));
  QCOMPARE(bytesFromText(QStringLiteral("64mb")), std::optional<std::int64_t>(std::int64_t(64) << 20));
  QCOMPARE(bytesFromText(QStringLiteral("0")), std::optional<std::int64_t>(0));
  for (const auto* text : {"", "-1", "GiB", "1 EiB", "99999999999 TiB", "1e9", "0x10"})
    QVERIFY2(!bytesFromText(QLatin1String(text)), text);
}

void RunningTest::theAllocatorIsMeasured() {
  WindowFixture f;
  auto* action = f.window().findChild<QAction*>(QStringLiteral("action-measure-memory"));
  QVERIFY(!action->isEnabled());
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-memory");
  auto* dock = &f.window().panel<MemoryDock>();
  const auto button = [&](const QString& text) {
    for (auto* candidate : dock->findChildren<QToolButton*>())
      if (candidate->text() == text) return candidate;
    return static_cast<QToolButton*>(nullptr);
  };
  QVERIFY(!button(QStringLiteral("Peak"))->isVisible());
  QVERIFY(action->isEnabled());
  action->trigger();
  QVERIFY2(QTest::qWaitFor([&] { return dock->measured().contains(QStringLiteral("peak: ")); }, 5000),
           qPrintable(dock->measured()));
  QVERIFY2(
      dock->measured().contains(QStringLiteral("peak: 4.9 KiB, 3.9 KiB of it in tensors; largest workspace 600 B")),
      qPrintable(dock->measured()));
  QTest::mouseClick(button(QStringLiteral("Workspace")), Qt::LeftButton);
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[4]);
  QTest::mouseClick(button(QStringLiteral("Peak")), Qt::LeftButton);
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[2]);
  QVERIFY(f.open(QStringLiteral("synthetic1")));
  QVERIFY(dock->measured().contains(QStringLiteral("Predicted from the trace")));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::RunningTest)
#include "running_test.moc"
