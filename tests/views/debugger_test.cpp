#include <QCheckBox>
#include <QComboBox>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStandardItemModel>
#include <QStatusBar>
#include <QTableView>
#include <QTest>
#include <QTreeView>

#include "core/debug/gradient_of.h"
#include "tests/views/window_fixture.h"
#include "views/canvases/image_view.h"
#include "views/canvases/memory_view.h"
#include "views/docks/checks_dock.h"
#include "views/docks/compare_dock.h"
#include "views/docks/findings_dock.h"
#include "views/docks/memory_dock.h"
#include "views/docks/why_dock.h"
#include "views/models/breakpoints_model.h"
#include "views/models/compare_model.h"
#include "views/models/values_model.h"

namespace retrograd::views {

/// The panels that answer questions: breakpoints, why, memory, findings, watches; with real mouse and key events.
class DebuggerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void breakpointIsAddedByWords();
  void wordsThatDoNotParseSayWhy();
  void breakpointsSwitchAndGoByKey();
  void conditionsSurviveAReload();
  void breakpointsAreKeptWithTheFile();
  void whyLeadsToReaders();
  void parameterTellsItsGradient();
  void recomputingIsTriedAndAdopted();
  void memoryFollowsTheSelectionBothWays();
  void memoryMovesByKey();
  void walkLeadsToTheRoot();
  void finiteRunSaysSo();
  void watchesFollowTheRun();
  void fillingAsksForANumber();
  void pictureOfASliceMovesByKey();
  void gradientStandsBesideItsValue();
  void stepsOutInBothDirections();
  void gradientOfTheSelectedOpIsChecked();
  void gradientOfARangeIsChecked();
  void termsOfAGradientAreListed();
  void runsPartInATable();
  void comparingTellsWhatIsMissingAndIsCancelled();
  void comparingAsksForAllThatTheCommandLineDoes();
  void hiddenDocksAskNothing();
};

namespace {

/// The dock of this object name, opened and in front.
QDockWidget* front(WindowFixture& f, const char* name) {
  auto* dock = f.window().findChild<QDockWidget*>(QLatin1String(name));
  dock->show();
  dock->raise();
  QTest::qWait(20);
  return dock;
}

void addBreakpoint(WindowFixture& f, const QString& words) {
  front(f, "dock-breakpoints");
  auto* line = f.window().findChild<QLineEdit*>(QStringLiteral("breakpoint-words"));
  line->setFocus();
  QTest::keyClicks(line, words);
  QTest::keyClick(line, Qt::Key_Return);
}

const std::vector<Breakpoint>& breakpoints(WindowFixture& f) { return f.window().context().execution->breakpoints(); }

/// Every text of a tree, "label: text" a line.
QStringList linesOf(const QAbstractItemModel& model, const QModelIndex& parent = {}) {
  QStringList lines;
  for (int row = 0; row < model.rowCount(parent); ++row) {
    const auto label = model.index(row, 0, parent);
    lines << label.data().toString() + QStringLiteral(": ") + label.siblingAtColumn(1).data().toString();
    lines << linesOf(model, label);
  }
  return lines;
}

QStringList linesOf(WindowFixture& f, const char* tree) {
  return linesOf(*f.window().findChild<QTreeView*>(QLatin1String(tree))->model());
}

bool waitForLine(WindowFixture& f, const char* tree, const QString& part) {
  return QTest::qWaitFor([&] { return linesOf(f, tree).join(QLatin1Char('\n')).contains(part); }, 5000);
}

/// The row of a tree whose label or text contains the part.
QModelIndex rowWith(const QAbstractItemModel& model, const QString& part, const QModelIndex& parent = {}) {
  for (int row = 0; row < model.rowCount(parent); ++row) {
    const auto label = model.index(row, 0, parent);
    if (label.data().toString().contains(part) || label.siblingAtColumn(1).data().toString().contains(part)) return label;
    if (const auto below = rowWith(model, part, label); below.isValid()) return below;
  }
  return {};
}

ValueId outputOf(const Analysis& analysis, BoundSymbolId op) { return analysis.document->outputs(op)[0]; }

}  // namespace

void DebuggerTest::breakpointIsAddedByWords() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  addBreakpoint(f, QStringLiteral("kind mm after 1"));
  QVERIFY(QTest::qWaitFor([&] { return breakpoints(f).size() == 1; }, 5000));
  QVERIFY(f.window().findChild<QLineEdit*>(QStringLiteral("breakpoint-words"))->text().isEmpty());
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::breakpoint);
  // The first mm is let pass; the backward has two a layer.
  QCOMPARE(f.execution().current, f.analysis().backward.ops[4]);
  QVERIFY(f.execution().hit.has_value());
  QVERIFY(f.window().statusBar()->currentMessage().contains(QStringLiteral("kind mm after 1")));
  QCOMPARE(f.execution().hits, (std::vector<std::int64_t>{2}));
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("breakpoints"));
  QCOMPARE(table->model()->index(0, BreakpointsModel::hits).data().toString(), QStringLiteral("2, first 1 pass"));
}

void DebuggerTest::wordsThatDoNotParseSayWhy() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  addBreakpoint(f, QStringLiteral("kind conv2d"));
  auto* problem = f.window().findChild<QLabel*>(QStringLiteral("breakpoint-problem"));
  QVERIFY(QTest::qWaitFor([&] { return problem->isVisible(); }, 5000));
  QVERIFY(problem->text().contains(QStringLiteral("the traces hold no such op")));
  QVERIFY(breakpoints(f).empty());
  auto* line = f.window().findChild<QLineEdit*>(QStringLiteral("breakpoint-words"));
  QCOMPARE(line->text(), QStringLiteral("kind conv2d"));  // to be mended
  QTest::keyClick(line, Qt::Key_Backspace);
  QVERIFY(!problem->isVisible());
}

void DebuggerTest::breakpointsSwitchAndGoByKey() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto op = f.analysis().backward.ops[4];
  f.click(TraceKind::backward, op);
  f.press(Qt::Key_F9);
  f.click(TraceKind::forward, f.analysis().forward.ops[0]);
  front(f, "dock-breakpoints");
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("breakpoints"));
  QCOMPARE(table->model()->rowCount(), 1);
  table->setFocus();
  table->setCurrentIndex(table->model()->index(0, 1));
  f.press(Qt::Key_Space);
  QVERIFY(!breakpoints(f)[0].enabled);
  QCOMPARE(f.window().context().execution->mark(op), BreakpointMark::disabled);
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::end);
  table->setFocus();
  f.press(Qt::Key_Return);
  QCOMPARE(f.selection().op(), op);
  table->setFocus();
  f.press(Qt::Key_Delete);
  QVERIFY(breakpoints(f).empty());
}

void DebuggerTest::conditionsSurviveAReload() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto value = outputOf(f.analysis(), f.analysis().forward.ops[4]);
  const auto name = QString::fromStdString(f.analysis().document->displayName(value));
  addBreakpoint(f, QStringLiteral("value %1 if norm > 2").arg(name));
  QVERIFY(QTest::qWaitFor([&] { return breakpoints(f).size() == 1; }, 5000));
  f.click(TraceKind::forward, f.analysis().forward.ops[4]);
  f.press(Qt::Key_T, Qt::ControlModifier);
  const auto before = f.controller().document();
  f.press(Qt::Key_R, Qt::ControlModifier);
  QVERIFY(QTest::qWaitFor([&] { return f.controller().document() != before; }, 5000));
  QCOMPARE(breakpoints(f).size(), std::size_t(1));
  QCOMPARE(breakpoints(f)[0].limit, 2.0);
  const auto now = f.analysis().forward.ops[4];
  QCOMPARE(breakpoints(f)[0].value, outputOf(f.analysis(), now));
  QCOMPARE(f.window().context().execution->mark(now), BreakpointMark::conditional);
  QCOMPARE(f.window().context().execution->watches(), std::vector{outputOf(f.analysis(), now)});
}

void DebuggerTest::breakpointsAreKeptWithTheFile() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  addBreakpoint(f, QStringLiteral("kind mm if nan"));
  addBreakpoint(f, QStringLiteral("module layers.1 after 2"));
  QTRY_COMPARE(breakpoints(f).size(), std::size_t(2));
  f.controller().enableBreakpoint(1, false);
  QVERIFY(f.open(QStringLiteral("synthetic2")));
  QTest::qWait(50);
  QCOMPARE(breakpoints(f).size(), std::size_t(0));  // they are the other file's
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QTRY_COMPARE(breakpoints(f).size(), std::size_t(2));
  QTRY_COMPARE(std::count_if(breakpoints(f).begin(), breakpoints(f).end(), [](const Breakpoint& b) { return b.enabled; }), 1);
  for (const auto& b : breakpoints(f)) QCOMPARE(b.enabled, b.when == Breakpoint::When::nan);
  f.controller().removeBreakpoint(0);
  f.controller().removeBreakpoint(0);
  QVERIFY(f.open(QStringLiteral("synthetic2")));
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QTest::qWait(100);
  QCOMPARE(breakpoints(f).size(), std::size_t(0));
}

void DebuggerTest::whyLeadsToReaders() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-why");
  f.click(TraceKind::forward, f.analysis().forward.ops[2]);  // a saved relu
  QVERIFY(waitForLine(f, "why", QStringLiteral("saved for the backward: 320 B")));
  // threshold_backward reads it, and the next layer's mm.
  QVERIFY(waitForLine(f, "why", QStringLiteral("aten.threshold_backward")));
  QVERIFY(waitForLine(f, "why", QStringLiteral("recompute it: 1 op")));
  auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("why"));
  const auto reader = rowWith(*tree->model(), QStringLiteral("aten.threshold_backward"));
  QVERIFY(reader.isValid());
  tree->setFocus();
  tree->setCurrentIndex(reader);
  f.press(Qt::Key_Return);
  QCOMPARE(f.analysis().document->opName(f.selection().op()), std::string("torch.ops.aten.threshold_backward.default"));
}

void DebuggerTest::parameterTellsItsGradient() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-why");
  const auto linear = f.analysis().computation().trace.ops[0];
  const auto operands = f.analysis().document->operands(linear);
  f.selection().select(linear, operands[1]);
  QVERIFY(waitForLine(f, "why", QStringLiteral("aten.mm(")));  // the op that makes the weight's gradient
  f.selection().select(linear, operands[0]);
  QVERIFY(waitForLine(f, "why", QStringLiteral("x is not to be differentiated")));
}

void DebuggerTest::recomputingIsTriedAndAdopted() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  auto& actions = f.window().actions();
  f.click(TraceKind::backward, f.analysis().backward.ops[5]);
  f.press(Qt::Key_F9);
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  QVERIFY(!actions.recompute->isEnabled());
  QVERIFY(actions.recompute->toolTip().contains(QStringLiteral("no value that is saved")));
  QVERIFY(!actions.save->isEnabled());
  f.click(TraceKind::forward, f.analysis().forward.ops[2]);
  QVERIFY(actions.recompute->isEnabled());
  f.press(Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(QTest::qWaitFor([&] { return !f.window().why().verdict().isEmpty(); }, 5000));
  QVERIFY(f.window().why().verdict().contains(QStringLiteral("saved: 3.1 KiB \u2192 2.8 KiB")));
  QVERIFY(f.window().why().verdict().contains(QStringLiteral("estimated")));
  const auto before = f.controller().document();
  QTest::mouseClick(f.window().findChild<QPushButton*>(QStringLiteral("what-if-adopt")), Qt::LeftButton);
  QVERIFY(QTest::qWaitFor([&] { return f.controller().document() != before; }, 5000));
  QCOMPARE(f.analysis().partition.recompute, std::vector<std::string>{"#relu"});
  QCOMPARE(f.controller().document()->request.partition.recompute, std::vector<std::string>{"#relu"});
  QVERIFY(f.window().why().verdict().isEmpty());
  QCOMPARE(breakpoints(f).size(), std::size_t(1));
  QCOMPARE(f.execution().position, std::size_t(0));
}

void DebuggerTest::memoryFollowsTheSelectionBothWays() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  auto* dock = front(f, "dock-memory");
  auto* view = f.window().findChild<MemoryView*>();
  auto* panel = qobject_cast<MemoryDock*>(dock->widget());
  QVERIFY(QTest::qWaitFor([&] { return panel->caption().startsWith(QStringLiteral("Peak")); }, 5000));
  f.click(TraceKind::backward, f.analysis().backward.ops[3]);
  QCOMPARE(view->current(), std::optional<std::size_t>(12));
  QTest::mouseClick(view, Qt::LeftButton, Qt::NoModifier, QPoint(view->xOf(4), view->height() / 2));
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[4]);
  QVERIFY(f.listing(TraceKind::forward).isRowVisible(f.listing(TraceKind::forward).rowOf(f.analysis().forward.ops[4])));
  QVERIFY(panel->caption().contains(QStringLiteral("aten.addmm")));
  QTest::mouseMove(view, QPoint(view->xOf(2), view->height() / 2));
  QVERIFY(QTest::qWaitFor([&] { return panel->caption().contains(QStringLiteral("aten.relu")); }, 3000));
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[4]);  // hovering looks and does not choose
}

void DebuggerTest::memoryMovesByKey() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-memory");
  auto* view = f.window().findChild<MemoryView*>();
  QVERIFY(QTest::qWaitFor([&] { return !view->accessibleDescription().isEmpty(); }, 5000));
  f.click(TraceKind::forward, f.analysis().forward.ops[4]);
  view->setFocus();
  f.press(Qt::Key_Right);
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[5]);
  f.press(Qt::Key_Left);
  f.press(Qt::Key_Left);
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[3]);
  f.press(Qt::Key_End);
  QCOMPARE(f.selection().op(), f.analysis().backward.ops.back());
  f.press(Qt::Key_Right);
  QCOMPARE(f.selection().op(), f.analysis().backward.ops.back());
  f.press(Qt::Key_P);
  const auto timeline = memoryTimeline(f.analysis());
  QCOMPARE(view->current(), std::optional<std::size_t>(timeline.peakPosition));
  f.press(Qt::Key_Home);
  f.press(Qt::Key_Return);
  QVERIFY(f.listing(TraceKind::forward).hasFocus());
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[0]);
}

void DebuggerTest::walkLeadsToTheRoot() {
  auto engine = std::make_shared<FakeEngine>();
  engine->badAt = 5;
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  auto& actions = f.window().actions();
  QVERIFY(!actions.walkToRoot->isEnabled());
  QVERIFY(actions.walkToRoot->toolTip().contains(QStringLiteral("Check the Run")));
  actions.breakOnBad->trigger();
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QVERIFY(actions.walkToRoot->isEnabled());
  f.press(Qt::Key_W, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(waitForLine(f, "findings", QStringLiteral("root: ")));
  auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("findings"));
  QVERIFY(tree->isVisible());
  // Ops 5 and on are bad: the root is the fifth.
  tree->setFocus();
  tree->setCurrentIndex(tree->model()->index(0, 0));
  f.press(Qt::Key_Return);
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[4]);
}

void DebuggerTest::finiteRunSaysSo() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.window().actions().checkRun->trigger();
  QVERIFY(QTest::qWaitFor([&] { return f.window().findings().summary().contains(QStringLiteral("finite")); }, 5000));
  QCOMPARE(f.window().findChild<QTreeView*>(QStringLiteral("findings"))->model()->rowCount(), 0);
}

void DebuggerTest::watchesFollowTheRun() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-watches");
  const auto op = f.analysis().forward.ops[1];
  f.selection().select(op, outputOf(f.analysis(), op));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_T, Qt::ControlModifier);
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("watches"));
  const auto state = [&] { return table->model()->index(0, ValuesModel::state).data().toString(); };
  QVERIFY(QTest::qWaitFor([&] { return state() == QStringLiteral("not computed yet"); }, 5000));
  f.press(Qt::Key_F11);
  f.press(Qt::Key_F11);
  QVERIFY(QTest::qWaitFor([&] { return state() == QStringLiteral("present"); }, 5000));
  QVERIFY(!table->model()->index(0, ValuesModel::norm).data().toString().isEmpty());
  table->setFocus();
  table->setCurrentIndex(table->model()->index(0, ValuesModel::valueName));
  f.press(Qt::Key_Delete);
  QCOMPARE(table->model()->rowCount(), 0);
}

void DebuggerTest::fillingAsksForANumber() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-values");
  const auto op = f.analysis().forward.ops[1];
  f.click(TraceKind::forward, op);
  QVERIFY(QTest::qWaitFor([&] { return !f.window().actions().fill->isEnabled(); }, 5000));
  QVERIFY(f.window().actions().fill->toolTip().contains(QStringLiteral("not computed yet")));
  f.press(Qt::Key_F11);
  f.press(Qt::Key_F11);
  QVERIFY(QTest::qWaitFor([&] { return f.window().actions().fill->isEnabled(); }, 5000));
  f.press(Qt::Key_F, Qt::ControlModifier | Qt::ShiftModifier);
  auto* dialog = f.window().findChild<QInputDialog*>();
  QVERIFY(dialog);
  dialog->setTextValue(QStringLiteral("2.5"));
  QTest::keyClick(dialog->findChild<QLineEdit*>(), Qt::Key_Return);
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("values"));
  QVERIFY(QTest::qWaitFor(
      [&] {
        const auto last = table->model()->rowCount() - 1;
        return table->model()->index(last, ValuesModel::greatest).data().toString() == QStringLiteral("2.5");
      },
      5000));
}

void DebuggerTest::pictureOfASliceMovesByKey() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-values");
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  f.press(Qt::Key_F11);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  f.window().findChild<QCheckBox*>(QStringLiteral("value-picture"))->click();
  auto* image = f.window().findChild<ImageView*>(QStringLiteral("value-image"));
  auto* table = f.window().findChild<QTableView*>(QStringLiteral("value-contents"));
  QVERIFY(QTest::qWaitFor([&] { return image->isVisible() && !image->cursorText().isEmpty(); }, 5000));
  QVERIFY(!table->isVisible());
  const auto text = [&](int row, int column) {
    return QStringLiteral("[%1, %2] = %3").arg(row).arg(column).arg(table->model()->index(row, column).data().toString());
  };
  image->setFocus();
  f.press(Qt::Key_Down);
  f.press(Qt::Key_Right);
  f.press(Qt::Key_Right);
  QCOMPARE(image->cursorText(), text(1, 2));
  f.press(Qt::Key_End);
  QCOMPARE(image->cursorText(), text(table->model()->rowCount() - 1, table->model()->columnCount() - 1));
  f.press(Qt::Key_Right);  // stays inside
  f.press(Qt::Key_Plus);
  f.press(Qt::Key_0);
  f.press(Qt::Key_Home);
  QCOMPARE(image->cursorText(), text(0, 0));
  QTest::mouseClick(image->viewport(), Qt::LeftButton, Qt::NoModifier, QPoint(6, 6));
  QCOMPARE(image->cursorText(), text(0, 0));
  f.picture(QStringLiteral("picture"));
}

void DebuggerTest::gradientStandsBesideItsValue() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-values");
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  std::shared_ptr<const ValueReport> report;
  QObject::connect(&f.controller(), &DocumentController::valuesReady, &f.window(), [&](const std::shared_ptr<const ValueReport>& r) { report = r; });
  const auto linear = f.analysis().computation().trace.ops[0];
  const auto weight = f.analysis().document->operands(linear)[1];
  f.selection().select(linear, weight);
  QVERIFY(QTest::qWaitFor([&] { return report && report->detail && report->detail->value == weight; }, 5000));
  QVERIFY(!report->beside);
  f.window().findChild<QCheckBox*>(QStringLiteral("value-gradient"))->click();
  QVERIFY(QTest::qWaitFor([&] { return report->beside.has_value(); }, 5000));
  QVERIFY(f.window().findChild<QWidget*>(QStringLiteral("beside"))->isVisible());
  QCOMPARE(report->beside->value, gradientOf(f.analysis(), weight));
  f.picture(QStringLiteral("gradient-beside"));
}

void DebuggerTest::stepsOutInBothDirections() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F11);  // t of the first linear
  QVERIFY(f.settle());
  f.press(Qt::Key_F11, Qt::ShiftModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, std::size_t(2));
  f.press(Qt::Key_F11, Qt::ShiftModifier);  // outside of all operations: to the border
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, f.execution().forwardSize);
  f.press(Qt::Key_F10);
  f.press(Qt::Key_F11);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, f.execution().forwardSize + 3);  // inside the backward of the last linear
  f.press(Qt::Key_F11, Qt::ControlModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, f.execution().forwardSize + 1);
}

void DebuggerTest::gradientOfTheSelectedOpIsChecked() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QVERIFY(f.window().actions().checkGradient->isEnabled());
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  f.press(Qt::Key_G, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(QTest::qWaitFor([&] { return f.window().checks().summary().contains(QStringLiteral("is right")); }, 5000));
  QVERIFY(f.window().findChild<QTreeView*>(QStringLiteral("checks"))->isVisible());
  QVERIFY(linesOf(f, "checks").join(QLatin1Char('\n')).contains(QStringLiteral("finite differences: \u2713 1e-09")));
  auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("checks"));
  tree->setFocus();
  tree->setCurrentIndex(tree->model()->index(0, 0));
  f.press(Qt::Key_Return);
  QCOMPARE(f.selection().op(), f.analysis().computation().trace.ops[0]);
}

void DebuggerTest::gradientOfARangeIsChecked() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-checks");
  auto* line = f.window().findChild<QLineEdit*>(QStringLiteral("checks-range"));
  line->setFocus();
  QTest::keyClicks(line, QStringLiteral("all"));
  QTest::keyClick(line, Qt::Key_Return);
  QVERIFY(QTest::qWaitFor([&] { return f.window().checks().summary().contains(QStringLiteral("WRONG")); }, 5000));
  QVERIFY(f.window().checks().summary().contains(QStringLiteral("(6 ops)")));
  line->setText(QStringLiteral("module nowhere"));
  QTest::keyClick(line, Qt::Key_Return);
  QVERIFY(QTest::qWaitFor([&] { return f.window().checks().summary().contains(QStringLiteral("no op of this module")); }, 5000));
}

void DebuggerTest::termsOfAGradientAreListed() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto linear = f.analysis().computation().trace.ops[0];
  f.selection().select(linear, f.analysis().document->operands(linear)[1]);
  f.window().actions().terms->trigger();
  QVERIFY(QTest::qWaitFor([&] { return f.window().checks().summary().contains(QStringLiteral("the sum of 1 term")); }, 5000));
  QVERIFY(waitForLine(f, "checks", QStringLiteral("norm")));
  f.selection().select(linear, f.analysis().document->operands(linear)[0]);
  f.window().actions().terms->trigger();
  QVERIFY(QTest::qWaitFor([&] { return f.window().checks().summary().contains(QStringLiteral("has no gradient")); }, 5000));
}

void DebuggerTest::runsPartInATable() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(QTest::qWaitFor([&] { return f.window().compare().summary().contains(QStringLiteral("part at")); }, 5000));
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("compare"));
  QVERIFY(table->isVisible());
  QCOMPARE(table->model()->rowCount(), static_cast<int>(f.analysis().joint.ops.size()));
  QCOMPARE(table->currentIndex().row(), 5);
  QVERIFY(table->model()->index(5, CompareModel::value).data().toString().startsWith(QStringLiteral("\u25c6")));
  QCOMPARE(table->model()->index(5, CompareModel::relative).data().toString(), QStringLiteral("0.25"));
  table->setFocus();
  f.press(Qt::Key_Return);
  QCOMPARE(f.selection().op(), f.analysis().joint.ops[5]);
  f.controller().reload();
  QVERIFY(QTest::qWaitFor([&] { return table->model()->rowCount() == 0; }, 5000));
}

void DebuggerTest::comparingTellsWhatIsMissingAndIsCancelled() {
  auto engine = std::make_shared<FakeEngine>();
  engine->opTime = std::chrono::milliseconds(20);
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic30")));
  front(f, "dock-compare");
  const auto field = [&](const char* name) { return f.window().findChild<QLineEdit*>(QLatin1String(name)); };
  field("compare-seed")->setText(QStringLiteral("tomorrow"));
  f.window().actions().compare->trigger();
  QVERIFY(f.window().compare().summary().contains(QStringLiteral("'tomorrow' is no seed")));
  field("compare-seed")->setText(QStringLiteral("7"));
  field("compare-tolerance")->setText(QStringLiteral("small"));
  f.window().actions().compare->trigger();
  QVERIFY(f.window().compare().summary().contains(QStringLiteral("'small' is no tolerance")));
  field("compare-tolerance")->clear();
  f.window().actions().compare->trigger();
  QVERIFY(QTest::qWaitFor([&] { return f.controller().asking(); }, 5000));
  f.press(Qt::Key_F5, Qt::ShiftModifier);
  QVERIFY(QTest::qWaitFor([&] { return f.window().compare().summary() == QStringLiteral("Cancelled"); }, 5000));
  field("compare-file")->setText(QStringLiteral("/no/such/model.pt2"));
  f.window().actions().compare->trigger();
  QVERIFY(QTest::qWaitFor([&] { return f.window().compare().summary().contains(QStringLiteral("no such file")); }, 5000));
}

void DebuggerTest::comparingAsksForAllThatTheCommandLineDoes() {
  auto engine = std::make_shared<FakeEngine>();
  engine->deviceList = {{Device(), true, {}, {}}, {deviceFromString("cuda:0"), false, {}, "no driver"}, {deviceFromString("cuda:1"), true, "A Good One", {}}};
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-compare");
  auto* devices = f.window().findChild<QComboBox*>(QStringLiteral("compare-device"));
  QVERIFY(QTest::qWaitFor([&] { return devices->count() == 4; }, 5000));
  QCOMPARE(devices->itemText(0), QStringLiteral("As here (cpu)"));
  const auto* items = qobject_cast<QStandardItemModel*>(devices->model());
  QVERIFY(!items->item(2)->isEnabled());
  QCOMPARE(items->item(2)->toolTip(), QStringLiteral("no driver"));
  devices->setCurrentIndex(3);
  auto* precisions = f.window().findChild<QComboBox*>(QStringLiteral("compare-precision"));
  QCOMPARE(precisions->itemText(0), QStringLiteral("As here (float32)"));
  const auto* tolerance = f.window().findChild<QLineEdit*>(QStringLiteral("compare-tolerance"));
  QCOMPARE(tolerance->placeholderText(), QStringLiteral("0.0001"));
  precisions->setCurrentText(QStringLiteral("bfloat16"));
  QCOMPARE(tolerance->placeholderText(), QStringLiteral("0.05"));
  f.window().findChild<QLineEdit*>(QStringLiteral("compare-seed"))->setText(QStringLiteral("7"));
  f.window().findChild<QLineEdit*>(QStringLiteral("compare-weights"))->setText(QStringLiteral("/somewhere/w.safetensors"));
  f.window().actions().compare->trigger();
  QVERIFY(QTest::qWaitFor([&] { return f.window().compare().summary().contains(QStringLiteral("part at")); }, 5000));
  QVERIFY2(f.window().compare().summary().contains(QStringLiteral("bfloat16, cuda:1, seed 7, w.safetensors")), qPrintable(f.window().compare().summary()));
  QCOMPARE(engine->compared.size(), std::size_t(1));
  const auto& other = engine->compared[0];
  QVERIFY(other.precision == DType::bf16);
  QVERIFY(other.device == deviceFromString("cuda:1"));
  QVERIFY(other.seed == std::uint64_t(7));
  QCOMPARE(other.weights, std::string("/somewhere/w.safetensors"));
  QVERIFY(other.path.empty());
}

void DebuggerTest::hiddenDocksAskNothing() {
  WindowFixture f;
  for (const auto* name : {"dock-why", "dock-memory", "dock-watches", "dock-values"})
    f.window().findChild<QDockWidget*>(QLatin1String(name))->close();
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QVERIFY(f.settle());
  QTest::qWait(300);  // what was asked before they were hidden
  QStringList tags;
  QObject::connect(&f.controller().worker(), &Worker::started, &f.window(), [&](QObject*, const QString& tag) { tags << tag; });
  f.click(TraceKind::forward, f.analysis().forward.ops[2]);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QTest::qWait(150);
  for (const auto* tag : {"why", "memory", "watches", "values"}) QVERIFY2(!tags.contains(QLatin1String(tag)), tag);
}

}  // namespace retrograd::views

QTEST_MAIN(retrograd::views::DebuggerTest)
#include "debugger_test.moc"
