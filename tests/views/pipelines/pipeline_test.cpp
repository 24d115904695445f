#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QSpinBox>
#include <QTest>
#include <QTreeView>

#include "tests/views/pictures.h"
#include "tests/views/stages_fixture.h"
#include "tests/views/test_program.h"
#include "views/content/graph_overlay.h"
#include "views/docks/stages_dock.h"
#include "views/theme/stage_colors.h"

namespace retrograd::views {

/// Pipeline stages in the window: the dock, the cuts by mouse and key, the marks in listings and graph; over a
/// hand-made engine.
class PipelineTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void modelsHoldWhatModelsPromise();
  void nothingIsCutUntilSomeoneAsks();
  void equalStagesAreAskedForInTheDock();
  void pointsAreTyped();
  void aRefusalSaysWhyAndLeadsToItsOp();
  void timesAreMeasuredByARun();
  void measuringIsCancelledAndFails();
  void cutsAreSetAndTakenAwayByKey();
  void cutsAreUndoneAndRedone();
  void onlyNumbersOfStagesAreOneStep();
  void removingCutsKeepsHowParametersAreShared();
  void whatIsKeptIsRestored();
  void placesOfMeasuredStagesAreKept();
  void aBorderIsDragged();
  void aBorderIsMovedByKey();
  void rowsLeadToTheirOps();
  void stagesMarkTheListings();
  void stagesColourTheGraph();
  void cutsSurviveAReload();
  void anotherFileForgetsThem();
  void coloursAreReadable();
};

void PipelineTest::modelsHoldWhatModelsPromise() {
  const auto f = opened();
  QVERIFY(f);
  StagesModel stages;
  StageEdgesModel edges;
  SharedParametersModel shared;
  for (QAbstractItemModel* model : std::initializer_list<QAbstractItemModel*>{&stages, &edges, &shared})
    new QAbstractItemModelTester(model, QAbstractItemModelTester::FailureReportingMode::QtTest, model);
  QVERIFY(ask(*f, equal(4)));
  stages.show(plan(*f).cut());
  edges.show(plan(*f).cut());
  shared.show(plan(*f).cut());
  QCOMPARE(stages.rowCount(), 4);
  QCOMPARE(stages.index(1, StagesModel::ops).data().toString(), QStringLiteral("2"));
  QCOMPARE(stages.index(1, StagesModel::parameters).data().toString(), QStringLiteral("110 · 440 B"));
  QCOMPARE(stages.index(1, StagesModel::activations).data().toString(), QStringLiteral("640 B"));
  QCOMPARE(stages.index(2, StagesModel::parameters).data(shareRole).toDouble(), 1.0);
  QVERIFY(stages.index(1, StagesModel::time).data().toString().endsWith(QLatin1Char('%')));
  QCOMPARE(edges.rowCount(), 4);
  QCOMPARE(edges.index(0, StageEdgesModel::source).data().toString(), QStringLiteral("input"));
  QCOMPARE(edges.index(1, StageEdgesModel::type).data().toString(), QStringLiteral("f32[8, 10]"));
  QCOMPARE(edges.index(1, StageEdgesModel::bytes).data().toString(), QStringLiteral("320 B"));
  edges.setMicrobatches(8);
  QCOMPARE(edges.index(1, StageEdgesModel::allBytes).data().toString(), QStringLiteral("2.5 KiB"));
  QCOMPARE(shared.rowCount(), 0);
  for (QAbstractItemModel* model : std::initializer_list<QAbstractItemModel*>{&stages, &edges, &shared})
    for (int column = 0; column < model->columnCount(); ++column)
      QVERIFY(!model->headerData(column, Qt::Horizontal, Qt::ToolTipRole).toString().isEmpty());
  stages.show(nullptr);
  edges.show(nullptr);
  QCOMPARE(stages.rowCount(), 0);
  QCOMPARE(edges.rowCount(), 0);
}

void PipelineTest::nothingIsCutUntilSomeoneAsks() {
  WindowFixture f(std::make_shared<StagesEngine>());
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QVERIFY(f.quiet());
  f.picture(QStringLiteral("default"));
  QVERIFY(!plan(f).cut());
  auto* dock = find<QDockWidget>(f, "dock-stages");
  dock->show();
  dock->raise();
  QVERIFY(QTest::qWaitFor([&] { return plan(f).cut() != nullptr; }, 5000));
  QCOMPARE(cut(f).stages(), 1);
  QVERIFY(!plan(f).hasMarks());
  QVERIFY(message(f).contains(QStringLiteral("not cut")));
  QVERIFY(!find<StageBar>(f, "stage-bar")->isVisible());
}

void PipelineTest::equalStagesAreAskedForInTheDock() {
  const auto f = opened();
  QVERIFY(f);
  auto* how = find<QComboBox>(*f, "stages-how");
  how->setFocus();
  QTest::keyClick(how, Qt::Key_Down);
  QVERIFY(settled(*f));
  QCOMPARE(cut(*f).stages(), 4);
  QCOMPARE(begins(*f), (Cuts{0, 2, 4, 6}));
  auto* count = find<QSpinBox>(*f, "stages-count");
  count->setFocus();
  QTest::keyClick(count, Qt::Key_Down);
  QTest::keyClick(count, Qt::Key_Down);
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 4}));
  QVERIFY(!find<QLineEdit>(*f, "stages-points")->isVisible());
  QCOMPARE(find<QTreeView>(*f, "stages-table")->model()->rowCount(), 2);
  f->picture(QStringLiteral("stages-dock"));
}

void PipelineTest::pointsAreTyped() {
  const auto f = opened();
  QVERIFY(f);
  auto* points = find<QLineEdit>(*f, "stages-points");
  points->setFocus();
  QTest::keyClicks(points, QStringLiteral("layers.1, #relu_2:after"));
  QTest::keyClick(points, Qt::Key_Return);
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 2, 6}));
  QCOMPARE(points->text(), QStringLiteral("layers.1, #relu_2:after"));
  QCOMPARE(find<QTabWidget>(*f, "stages-tabs")->tabText(0), QStringLiteral("Stages (3)"));
}

void PipelineTest::aRefusalSaysWhyAndLeadsToItsOp() {
  const auto f = opened();
  QVERIFY(f);
  auto* points = find<QLineEdit>(*f, "stages-points");
  points->setFocus();
  QTest::keyClicks(points, QStringLiteral("layers.9"));
  QTest::keyClick(points, Qt::Key_Return);
  QVERIFY(settled(*f));
  QVERIFY(!plan(*f).cut());
  QVERIFY2(message(*f).contains(QStringLiteral("referenced nonexistent module layers.9")), qPrintable(message(*f)));
  QVERIFY(!find<QToolButton>(*f, "stages-to-op")->isVisible());
  CutRequest both = equal(2);
  both.at = {"#relu"};
  QVERIFY(ask(*f, both));
  QVERIFY(message(*f).contains(QStringLiteral("Cannot specify both points to cut at and a policy")));
  QVERIFY(ask(*f, equal(99)));
  QVERIFY2(message(*f).contains(QStringLiteral("8 is the most")), qPrintable(message(*f)));
}

void PipelineTest::timesAreMeasuredByARun() {
  const auto engine = std::make_shared<StagesEngine>();
  const auto f = opened("synthetic:4", engine);
  QVERIFY(f);
  QVERIFY(ask(*f, equal(2, Balance::time)));
  QCOMPARE(engine->fake.measured.load(), 1);
  QVERIFY(plan(*f).measured());
  QCOMPARE(cut(*f).facts[0].forward, 4e-3);
  const auto* table = find<QTreeView>(*f, "stages-table")->model();
  QCOMPARE(table->index(0, StagesModel::time).data().toString(), QStringLiteral("12.0 ms"));
  QVERIFY(table->headerData(StagesModel::time, Qt::Horizontal).toString().contains(QStringLiteral("measured")));
  QVERIFY(ask(*f, equal(4, Balance::time)));
  QCOMPARE(engine->fake.measured.load(), 1);
}

void PipelineTest::measuringIsCancelledAndFails() {
  const auto engine = std::make_shared<StagesEngine>();
  const auto f = opened("synthetic:4", engine);
  QVERIFY(f);
  engine->fake.blocks = true;
  plan(*f).change(equal(2, Balance::time), QStringLiteral("time"));
  QVERIFY(QTest::qWaitFor([&] { return engine->fake.measured > 0; }, 5000));
  QVERIFY(message(*f).contains(QStringLiteral("Measuring")));
  QVERIFY(!action(*f, "action-measure-stages")->isEnabled());
  f->controller().stop();
  QVERIFY(settled(*f));
  QVERIFY2(message(*f).contains(QStringLiteral("cancelled")), qPrintable(message(*f)));
  engine->fake.blocks = false;
  engine->fake.fails = true;
  action(*f, "action-measure-stages")->trigger();
  QVERIFY(settled(*f));
  QVERIFY2(message(*f).contains(QStringLiteral("out of memory")), qPrintable(message(*f)));
  // With equal parameters nothing has to be measured.
  QVERIFY(ask(*f, equal(2)));
  QVERIFY(message(*f).isEmpty());
}

void PipelineTest::cutsAreSetAndTakenAwayByKey() {
  const auto f = opened();
  QVERIFY(f);
  f->click(TraceKind::forward,
           f->analysis().forward.ops[4]);  // addmm of the second layer: cut where its operation begins
  f->press(Qt::Key_K);
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 2}));
  // A backward op cuts at its origin.
  f->click(TraceKind::backward, f->analysis().backward.ops.front());
  QCOMPARE(f->selection().origin(), op(*f, 7));
  f->press(Qt::Key_K);
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 2, 7}));
  f->press(Qt::Key_K);  // twice at one place is once
  QCOMPARE(begins(*f), (Cuts{0, 2, 7}));
  QVERIFY(!action(*f, "action-cut-after")->isEnabled());
  QVERIFY(action(*f, "action-cut-after")->toolTip().contains(QStringLiteral("Nothing comes after")));
  f->press(Qt::Key_K, Qt::ControlModifier);
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 2}));
  f->click(TraceKind::forward, f->analysis().forward.ops[0]);
  QVERIFY(!action(*f, "action-remove-cut")->isEnabled());
  QVERIFY(!action(*f, "action-cut-before")->isEnabled());
  f->press(Qt::Key_K, Qt::ShiftModifier);
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 1, 2}));
}

void PipelineTest::cutsAreUndoneAndRedone() {
  const auto f = opened();
  QVERIFY(f);
  auto* undo = action(*f, "action-undo");
  QVERIFY(!undo->isEnabled());
  QVERIFY(ask(*f, equal(2)));
  QVERIFY(ask(*f, equal(3)));
  QVERIFY(ask(*f, equal(4)));
  f->selection().select(op(*f, 3));
  plan(*f).cutBefore(op(*f, 3));
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 2, 3, 4, 6}));
  QCOMPARE(plan(*f).request().stages, std::size_t(0));
  QVERIFY(undo->isEnabled());
  undo->trigger();
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 2, 4, 6}));
  undo->trigger();  // three numbers of stages in a row were one step, back to the two before them
  QVERIFY(settled(*f));
  QCOMPARE(cut(*f).stages(), 2);
  undo->trigger();
  QVERIFY(settled(*f));
  QCOMPARE(cut(*f).stages(), 1);
  QVERIFY(!undo->isEnabled());
  auto* redo = action(*f, "action-redo");
  for (int i = 0; i < 3; ++i) {
    QVERIFY(redo->isEnabled());
    redo->trigger();
    QVERIFY(settled(*f));
  }
  QCOMPARE(begins(*f), (Cuts{0, 2, 3, 4, 6}));
  QVERIFY(!redo->isEnabled());
}

void PipelineTest::onlyNumbersOfStagesAreOneStep() {
  const auto f = opened();
  QVERIFY(f);
  QVERIFY(ask(*f, equal(2)));
  plan(*f).shareAll(MultiUse::transmit);
  QVERIFY(settled(*f));
  auto three = plan(*f).request();
  three.stages = 3;
  QVERIFY(ask(*f, three));
  plan(*f).undo();
  QVERIFY(settled(*f));
  QCOMPARE(cut(*f).stages(), 2);
  QCOMPARE(plan(*f).request().options.multiUse, MultiUse::transmit);
  plan(*f).undo();
  QVERIFY(settled(*f));
  QCOMPARE(cut(*f).stages(), 2);
  QCOMPARE(plan(*f).request().options.multiUse, MultiUse::replicate);
}

void PipelineTest::removingCutsKeepsHowParametersAreShared() {
  const auto f = opened();
  QVERIFY(f);
  auto* clear = action(*f, "action-remove-cuts");
  plan(*f).shareAll(MultiUse::transmit);
  QVERIFY(settled(*f));
  QVERIFY(!clear->isEnabled());  // no cut is there to be removed
  plan(*f).cutBefore(op(*f, 3));
  QVERIFY(settled(*f));
  QVERIFY(clear->isEnabled());
  clear->trigger();
  QVERIFY(settled(*f));
  QCOMPARE(cut(*f).stages(), 1);
  QCOMPARE(plan(*f).request().options.multiUse, MultiUse::transmit);
}

void PipelineTest::whatIsKeptIsRestored() {
  const auto f = opened();
  QVERIFY(f);
  QVERIFY(!plan(*f).kept());
  auto request = equal(3);
  request.options.multiUseOf["p_layers_0_weight"] = MultiUse::transmit;
  QVERIFY(ask(*f, request));
  QVERIFY(plan(*f).kept() && *plan(*f).kept() == request);
  plan(*f).change(equal(99), QStringLiteral("too many"));
  QVERIFY(settled(*f));
  QVERIFY(!plan(*f).cut() && !plan(*f).kept());
  const auto other = opened();
  QVERIFY(other);
  plan(*other).restore(request);
  QVERIFY(settled(*other));
  QCOMPARE(cut(*other).stages(), 3);
  QCOMPARE(plan(*other).request(), request);
  QVERIFY(!plan(*other).history().canUndo());
}

void PipelineTest::placesOfMeasuredStagesAreKept() {
  const auto f = opened();
  QVERIFY(f);
  QVERIFY(ask(*f, equal(2, Balance::time)));
  const auto kept = plan(*f).kept();
  QVERIFY(kept);
  QCOMPARE(kept->stages, std::size_t(0));
  const auto engine = std::make_shared<StagesEngine>();
  const auto other = opened("synthetic:4", engine);
  QVERIFY(other);
  plan(*other).restore(*kept);
  QVERIFY(settled(*other));
  QCOMPARE(begins(*other), begins(*f));
  QCOMPARE(engine->fake.measured.load(), 0);  // nothing has to run for it
}

void PipelineTest::aBorderIsDragged() {
  const auto f = opened();
  QVERIFY(f);
  QVERIFY(ask(*f, equal(2)));
  QCOMPARE(begins(*f), (Cuts{0, 4}));
  auto* bar = find<StageBar>(*f, "stage-bar");
  QVERIFY(bar->isVisible());
  const int y = bar->stageRect(0).center().y(), from = bar->stageRect(1).left();
  QCOMPARE(bar->borderAt(QPointF(from, y)), 1);
  QTest::mousePress(bar, Qt::LeftButton, Qt::NoModifier, QPoint(from, y));
  // By parameters the layers are equally long; three of four layers lie left of three quarters.
  const int to = 8 + (bar->width() - 16) * 3 / 4;
  QMouseEvent move(QEvent::MouseMove, QPointF(to, y), bar->mapToGlobal(QPointF(to, y)), Qt::NoButton, Qt::LeftButton,
                   Qt::NoModifier);
  QApplication::sendEvent(bar, &move);
  QTest::mouseRelease(bar, Qt::LeftButton, Qt::NoModifier, QPoint(to, y));
  QVERIFY(settled(*f));
  QCOMPARE(cut(*f).stages(), 2);
  QVERIFY(begins(*f)[1] == 5 || begins(*f)[1] == 6);
  QCOMPARE(plan(*f).history().undoText(), QStringLiteral("Move the cut before stage 1"));
  plan(*f).undo();
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 4}));
}

void PipelineTest::aBorderIsMovedByKey() {
  const auto f = opened();
  QVERIFY(f);
  QVERIFY(ask(*f, equal(2)));
  auto* bar = find<StageBar>(*f, "stage-bar");
  bar->setFocus();
  QTest::keyClick(bar, Qt::Key_End);
  QCOMPARE(bar->current(), 1);
  QCOMPARE(f->selection().op(), op(*f, 4));
  QTest::keyClick(bar, Qt::Key_Right, Qt::ControlModifier);
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 5}));
  QTest::keyClick(bar, Qt::Key_Left, Qt::ControlModifier);
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 4}));
  QTest::keyClick(bar, Qt::Key_Left);
  QCOMPARE(bar->current(), 0);
}

void PipelineTest::rowsLeadToTheirOps() {
  const auto f = opened();
  QVERIFY(f);
  QVERIFY(ask(*f, equal(4)));
  auto* table = find<QTreeView>(*f, "stages-table");
  const auto row = table->visualRect(table->model()->index(2, 0));
  QTest::mouseClick(table->viewport(), Qt::LeftButton, Qt::NoModifier, row.center());
  QCOMPARE(f->selection().op(), op(*f, 4));
  QCOMPARE(find<StageBar>(*f, "stage-bar")->current(), 2);
  // An op chosen elsewhere shows its stage.
  f->click(TraceKind::backward, f->analysis().backward.ops.front());
  QCOMPARE(table->currentIndex().row(), 3);
  find<QTabWidget>(*f, "stages-tabs")->setCurrentIndex(1);
  auto* edges = find<QTreeView>(*f, "stages-edges");
  edges->setFocus();
  edges->setCurrentIndex(edges->model()->index(1, 0));
  QTest::keyClick(edges, Qt::Key_Return);
  QCOMPARE(f->selection().op(), f->analysis().links.derived(op(*f, 1)).front());  // the computation is hidden
}

void PipelineTest::stagesMarkTheListings() {
  const auto f = opened();
  QVERIFY(f);
  auto& listing = f->listing(TraceKind::joint);
  const auto before = listing.grab().toImage();
  QVERIFY(ask(*f, equal(2)));
  const auto& joint = f->analysis().joint.ops;
  QCOMPARE(plan(*f).mark(joint.front()), 0);
  QCOMPARE(plan(*f).mark(joint[f->analysis().joint.forwardCount]), 1);
  QCOMPARE(plan(*f).mark(joint.back()), 0);
  QCOMPARE(plan(*f).mark(op(*f, 4)), 1);
  QVERIFY(listing.grab().toImage() != before);
  // A click on the breakpoint column still sets one, and the line's text is hit where it is.
  QTest::mouseClick(listing.viewport(), Qt::LeftButton, Qt::NoModifier,
                    listing.rowRect(listing.rowOf(joint[1])).topLeft() + QPoint(5, 5));
  QVERIFY(QTest::qWaitFor([&] { return f->window().context().execution->hasBreakpoint(joint[1]); }, 10000));
  f->click(TraceKind::joint, joint[2]);
  QCOMPARE(f->selection().op(), joint[2]);
  plan(*f).clear();
  QVERIFY(settled(*f));
  QCOMPARE(plan(*f).mark(joint.front()), -1);
}

void PipelineTest::stagesColourTheGraph() {
  const auto f = opened();
  QVERIFY(f);
  const auto& document = *f->controller().document();
  const auto tree = std::make_shared<const layout::GraphTree>(
      layout::buildTree(*document.analysis->document, document.analysis->joint));
  QVERIFY(ask(*f, equal(2)));
  const GraphOverlay overlay(Overlay::stage, tree, f->controller().document(), *f->window().context().execution,
                             f->controller().ahead().numbers(), plan(*f).cut(), false);
  const auto node = tree->nodeOf(document.analysis->joint.ops.front());
  QCOMPARE(overlay.text(node, layout::Lane::forward), QStringLiteral("stage 0"));
  QCOMPARE(overlay.fill(node, layout::Lane::forward), stageFill(0, false));
  QCOMPARE(overlay.text(0, layout::Lane::forward), QStringLiteral("stages 0 to 1"));
  QCOMPARE(overlay.text(0, layout::Lane::backward), QStringLiteral("stages 0 to 1"));
  QVERIFY(overlay.fill(0, layout::Lane::forward) != stageFill(0, false));
  QCOMPARE(overlay.legend().size(), std::size_t(2));
  // Edges over the border show its bytes, others nothing.
  layout::Shaper shaper(tree);
  layout::Folds open(static_cast<std::size_t>(tree->size()), true);
  const auto scene = layout::makeScene(shaper, open);
  QStringList crossing;
  for (std::size_t i = 0; i < scene.edges.size(); ++i)
    if (const auto text = overlay.edgeText(scene, static_cast<std::int32_t>(i)); !text.isEmpty()) crossing << text;
  crossing.sort();
  QCOMPARE(crossing, (QStringList{QStringLiteral("0 \u25b8 1: 320 B"), QStringLiteral("1 \u25b8 0: 320 B")}));
  const GraphOverlay none(Overlay::stage, tree, f->controller().document(), *f->window().context().execution,
                          f->controller().ahead().numbers(), nullptr, false);
  QVERIFY(none.legend().front().text.contains(QStringLiteral("no stages")));
}

void PipelineTest::cutsSurviveAReload() {
  const auto f = opened();
  QVERIFY(f);
  plan(*f).cutBefore(op(*f, 3));
  QVERIFY(settled(*f));
  f->controller().reload();
  QVERIFY(QTest::qWaitFor(
      [&] {
        return !f->controller().opening() && plan(*f).cut() && &cut(*f).document() == f->controller().document().get();
      },
      5000));
  QCOMPARE(begins(*f), (Cuts{0, 3}));
  QVERIFY(plan(*f).history().canUndo());
}

void PipelineTest::anotherFileForgetsThem() {
  const auto f = opened();
  QVERIFY(f);
  QVERIFY(ask(*f, equal(4)));
  QVERIFY(f->open(QStringLiteral("synthetic:2")));
  QVERIFY(settled(*f));
  QVERIFY(QTest::qWaitFor([&] { return !plan(*f).cut() || plan(*f).cut()->stages() == 1; }, 10000));
  QVERIFY(!plan(*f).history().canUndo());
  QCOMPARE(plan(*f).request(), CutRequest());
  f->controller().close();
  QVERIFY(QTest::qWaitFor([&] { return f->controller().document() == nullptr; }, 10000));
  QVERIFY(!plan(*f).cut());
  QVERIFY(!action(*f, "action-cut-before")->isEnabled());
}

void PipelineTest::coloursAreReadable() {
  for (int stage = 0; stage < 8; ++stage) {
    QVERIFY2(contrast(stageFill(stage, false), QColor(0x1f2328)) >= 7, qPrintable(QString::number(stage)));
    QVERIFY2(contrast(stageFill(stage, true), QColor(0xdde1e6)) >= 5.5, qPrintable(QString::number(stage)));
    QVERIFY(stageColor(stage, false) != stageColor(stage + 1, false));
  }
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::PipelineTest)
#include "pipeline_test.moc"
