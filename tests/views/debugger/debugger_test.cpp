#include <QCheckBox>
#include <QDialog>
#include <QInputDialog>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <QTreeView>

#include "core/derivation/gradient_of.h"
#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "views/canvases/image_view.h"
#include "views/canvases/memory_view.h"
#include "views/docks/findings_dock.h"
#include "views/docks/memory_dock.h"
#include "views/docks/why_dock.h"
#include "views/models/values_model.h"

namespace retrograd::views {

/// The panels that answer questions: why, memory, findings, watches, values; with real mouse and key events.
class DebuggerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void whyLeadsToReaders();
  void parameterShowsItsGradient();
  void recomputingIsTriedAndAdopted();
  void memoryFollowsTheSelectionBothWays();
  void memoryMovesByKey();
  void memoryZoomsAndNamesWhatIsAlive();
  void walkLeadsToTheRoot();
  void finiteRunSaysSo();
  void watchesFollowTheRun();
  void fillingAsksForANumber();
  void pictureOfASliceMovesByKey();
  void gradientIsNextToItsValue();
  void stepsOutInBothDirections();
  void hiddenDocksAskNothing();
};

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

void DebuggerTest::parameterShowsItsGradient() {
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
  QVERIFY(QTest::qWaitFor([&] { return !f.window().panel<WhyDock>().verdict().isEmpty(); }, 5000));
  QVERIFY(f.window().panel<WhyDock>().verdict().contains(QStringLiteral("saved: 3.1 KiB \u2192 2.8 KiB")));
  QVERIFY(f.window().panel<WhyDock>().verdict().contains(QStringLiteral("estimated")));
  const auto before = f.controller().document();
  QTest::mouseClick(f.window().findChild<QPushButton*>(QStringLiteral("what-if-adopt")), Qt::LeftButton);
  QVERIFY(QTest::qWaitFor([&] { return f.controller().document() != before; }, 5000));
  QCOMPARE(f.analysis().request.partition.recompute, std::vector<std::string>{"#relu"});
  QCOMPARE(f.controller().document()->request.partition->recompute, std::vector<std::string>{"#relu"});
  QVERIFY(f.window().panel<WhyDock>().verdict().isEmpty());
  QCOMPARE(breakpoints(f).size(), std::size_t(1));
  QCOMPARE(f.execution().position, std::size_t(0));
  // One key takes it back, and then there is nothing more to take back.
  f.press(Qt::Key_Z, Qt::ControlModifier);
  QVERIFY(QTest::qWaitFor([&] { return f.controller().document()->request.partition->recompute.empty(); }, 5000));
  QVERIFY(f.analysis().request.partition.recompute.empty());
  QVERIFY(f.controller().adopted().isEmpty());
}

void DebuggerTest::memoryFollowsTheSelectionBothWays() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  auto* dock = front(f, "dock-memory");
  auto* view = f.window().findChild<MemoryView*>();
  auto* panel = qobject_cast<MemoryDock*>(dock->widget());
  QVERIFY(QTest::qWaitFor([&] { return panel->caption().contains(QStringLiteral("live after")); }, 5000));
  f.click(TraceKind::backward, f.analysis().backward.ops[3]);
  QCOMPARE(view->current(), std::optional<std::size_t>(12));
  QTest::mouseClick(view, Qt::LeftButton, Qt::NoModifier, QPoint(view->xOf(4), view->height() / 2));
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[4]);
  QVERIFY(f.listing(TraceKind::forward).isRowVisible(f.listing(TraceKind::forward).rowOf(f.analysis().forward.ops[4])));
  QVERIFY(panel->caption().contains(QStringLiteral("aten.addmm")));
  QTest::mouseMove(view, QPoint(view->xOf(2), view->height() / 2));
  QVERIFY(QTest::qWaitFor([&] { return panel->caption().contains(QStringLiteral("aten.relu")); }, 10000));
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[4]);  // hovering looks and does not choose
}

void DebuggerTest::memoryZoomsAndNamesWhatIsAlive() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  front(f, "dock-memory");
  auto* view = f.window().findChild<MemoryView*>();
  QVERIFY(QTest::qWaitFor([&] { return !view->accessibleDescription().isEmpty(); }, 5000));
  const auto all = view->range();
  const auto middle = (all.first + all.second) / 2;
  const auto at = [&](std::size_t position) { return QPoint(view->xOf(position), view->height() / 2); };
  // Where the mouse is, the tensors that are alive there are named, with the op that made each.
  QTest::mouseMove(view, at(middle));
  QTRY_VERIFY(!view->toolTip().isEmpty());
  const auto timeline = memoryTimeline(f.analysis());
  int named = 0;
  for (const auto& life : timeline.lives)
    if (life.from <= middle && middle < life.to)
      named += view->toolTip().contains(QString::fromStdString(f.analysis().document->displayName(life.value)));
  QVERIFY(named > 0);
  // The axis is the position in the run, as the tool bar counts it.
  const auto ticksAreSteps = [&] {
    const auto ticks = view->ticks();
    const auto isStep = [&](const auto& tick) { return tick.second == QString::number(tick.first + 1); };
    const auto isInSight = [&](const auto& tick) {
      return tick.first >= view->range().first && tick.first < view->range().second;
    };
    return ticks.size() >= 2 && std::all_of(ticks.begin(), ticks.end(), isStep) &&
           std::all_of(ticks.begin(), ticks.end(), isInSight);
  };
  QVERIFY(ticksAreSteps());
  QVERIFY(view->accessibleDescription().endsWith(
      QStringLiteral("#%1").arg(f.controller().document()->program.opAt(timeline.peakPosition).index)));
  // A range by dragging with Shift, by keys, and all of it again.
  const auto from = all.first + (all.second - all.first) / 4, to = all.first + (all.second - all.first) / 2;
  const auto begin = at(from), end = at(to);
  QTest::mousePress(view, Qt::LeftButton, Qt::ShiftModifier, begin);
  QMouseEvent drag(QEvent::MouseMove, end, view->mapToGlobal(end), Qt::NoButton, Qt::LeftButton, Qt::ShiftModifier);
  QApplication::sendEvent(view, &drag);
  QTest::mouseRelease(view, Qt::LeftButton, Qt::ShiftModifier, end);
  QVERIFY(view->range().first + 1 >= from && view->range().second <= to + 2);
  QTest::keyClick(view, Qt::Key_0);
  QCOMPARE(view->range(), all);
  QTest::keyClick(view, Qt::Key_Plus);
  QVERIFY(view->range().second - view->range().first < all.second - all.first);
  QVERIFY(ticksAreSteps());
  QTest::keyClick(view, Qt::Key_0);
  QCOMPARE(view->range(), all);
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
  // The list of what is alive takes the focus, and Esc gives it back.
  f.press(Qt::Key_Space);
  QPointer<QDialog> list = f.window().findChild<QDialog*>(QStringLiteral("alive-list"));
  QVERIFY(list && list->isVisible());
  auto* rows = list->findChild<QTreeView*>();
  QVERIFY(rows->model()->rowCount() > 0);
  QTest::keyClick(rows, Qt::Key_Escape);
  QTRY_VERIFY(!list);
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[3]);
  QTRY_VERIFY(view->hasFocus());
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
  QVERIFY(actions.walkToRoot->isEnabled());  // it runs what it needs by itself
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
  QVERIFY(QTest::qWaitFor([&] { return f.window().panel<FindingsDock>().summary().contains(QStringLiteral("finite")); },
                          5000));
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
  QVERIFY(f.settle());
  f.click(TraceKind::forward, op);  // the steps have taken the selection along
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
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);  // the steps have taken the selection along
  f.window().findChild<QCheckBox*>(QStringLiteral("value-picture"))->click();
  auto* image = f.window().findChild<ImageView*>(QStringLiteral("value-image"));
  auto* table = f.window().findChild<QTableView*>(QStringLiteral("value-contents"));
  QVERIFY(QTest::qWaitFor([&] { return image->isVisible() && !image->cursorText().isEmpty(); }, 5000));
  QVERIFY(!table->isVisible());
  const auto text = [&](int row, int column) {
    return QStringLiteral("[%1, %2] = %3")
        .arg(row)
        .arg(column)
        .arg(table->model()->index(row, column).data().toString());
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

void DebuggerTest::gradientIsNextToItsValue() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-values");
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  std::shared_ptr<const ValueReport> report;
  QObject::connect(&f.controller().questions(), &Questions::valuesReady, &f.window(),
                   [&](const std::shared_ptr<const ValueReport>& r) { report = r; });
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

void DebuggerTest::hiddenDocksAskNothing() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic6")));  // docks come with the first file
  QVERIFY(f.quiet());
  for (const auto* name : {"dock-why", "dock-memory", "dock-watches"})
    f.window().findChild<QDockWidget*>(QLatin1String(name))->close();
  QStringList tags;
  QObject::connect(&f.controller().worker(), &Worker::started, &f.window(),
                   [&](QObject*, const QString& tag) { tags << tag; });
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QVERIFY(f.settle());
  // Values, which is in sight, waits as long as the others do before it asks: once it has its answer, they would have
  // asked too.
  QSignalSpy answered(&f.controller().questions(), &Questions::valuesReady);
  f.click(TraceKind::forward, f.analysis().forward.ops[2]);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QTRY_VERIFY(!answered.isEmpty());
  for (const auto* panel : {"why", "memory", "watches"})
    QVERIFY2(tags.filter(QLatin1String(panel) + QLatin1Char('/')).isEmpty(), panel);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::DebuggerTest)
#include "debugger_test.moc"
