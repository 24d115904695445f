#include <QAbstractItemModelTester>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QTemporaryDir>
#include <QTemporaryFile>
#include <QTest>
#include <QTimer>
#include <QTreeView>

#include "core/derivation/gradient_of.h"
#include "tests/views/stages_window.h"
#include "tests/views/test_program.h"
#include "views/docks/schedule_dock.h"
#include "views/docks/stage_check_dock.h"
#include "views/docks/stages_dock.h"

namespace retrograd::views {

/// Stages of real models in the real window, through LibTorch.
class PipelineRealTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void markersOfAFileShowAtOnce();
  void tiedParametersAreListed();
  void opsAreMeasured();
  void aWriteAcrossABorderIsRefused();
  void stagesAreSavedAndOpenAlone();
  void aFolderThatCannotBeWrittenIsReported();
  void stagesAreScheduled();
  void stagesGiveWhatTheModelGives();
  void aLargeModelIsScheduled();
  void largeModelStaysResponsive();
};

namespace {

ScheduleDock& schedule(WindowFixture& f) { return f.window().panel<ScheduleDock>(); }
bool scheduled(WindowFixture& f) {
  return QTest::qWaitFor(
      [&] { return !plan(f).busy() && !plan(f).measuring() && schedule(f).run() && !schedule(f).isSimulating(); },
      60000);
}

}  // namespace

void PipelineRealTest::markersOfAFileShowAtOnce() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(data("pipeline/mlp_3st/model.pt2")));
  QVERIFY(settled(f));
  QCOMPARE(plan(f).cut()->stages(), 3);
  // Every op of the joint is in a stage, forwards rising and backwards falling.
  const auto& ops = f.analysis().joint.ops;
  int last = 0;
  for (std::size_t i = 0; i < f.analysis().joint.forwardCount; ++i) {
    QVERIFY(plan(f).mark(ops[i]) >= last);
    last = plan(f).mark(ops[i]);
  }
  QCOMPARE(last, 2);
  QCOMPARE(plan(f).mark(ops.back()), 0);
  showStages(f);
  f.picture(QStringLiteral("stages-mlp"));
  f.theme().choose(Theme::Choice::dark);
  f.picture(QStringLiteral("stages-mlp-dark"));
  f.window().listings().graphAction()->setChecked(true);
  for (auto kind : {TraceKind::joint, TraceKind::backward}) f.window().listings().toggleAction(kind)->setChecked(false);
  auto& graph = f.window().listings().graph();
  QVERIFY(QTest::qWaitFor([&] { return graph.picture() && !graph.busy(); }, 20000));
  graph.setOverlay(Overlay::stage);
  graph.zoomToWidth();
  f.theme().choose(Theme::Choice::light);
  f.picture(QStringLiteral("stages-graph"));
}

void PipelineRealTest::tiedParametersAreListed() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(data("pipeline/shared_2st/model.pt2")));
  QVERIFY(settled(f));
  QCOMPARE(plan(f).cut()->stages(), 3);
  QCOMPARE(plan(f).cut()->split.shared.size(), 3u);
  showStages(f);
  f.window().findChild<QTabWidget*>(QStringLiteral("stages-tabs"))->setCurrentIndex(2);
  f.picture(QStringLiteral("stages-shared"));
}

void PipelineRealTest::opsAreMeasured() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(data("models/mlp/model.pt2")));
  CutRequest request;
  request.stages = 2;
  request.balance = Balance::time;
  plan(f).change(request, QStringLiteral("time"));
  QVERIFY(settled(f));
  QVERIFY2(plan(f).problem().isEmpty(), qPrintable(plan(f).problem()));
  QVERIFY(plan(f).measured());
  QCOMPARE(plan(f).cut()->stages(), 2);
  for (const auto& facts : plan(f).cut()->facts) QVERIFY(facts.forward > 0 && facts.backward > 0);
}

void PipelineRealTest::aWriteAcrossABorderIsRefused() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(data("models/inplace_views/model.pt2")));
  plan(f).begin();
  QVERIFY(settled(f));
  bool refused = false;
  const auto ops = plan(f).cut()->ops();
  for (auto op : ops) {
    if (!plan(f).noCutReason(op, true).isEmpty()) continue;
    plan(f).cutAfter(op);
    QVERIFY(settled(f));
    if (plan(f).problem().isEmpty()) {
      plan(f).undo();
      QVERIFY(settled(f));
      continue;
    }
    refused = true;
    QVERIFY2(plan(f).problem().contains(QStringLiteral("move the cut")) ||
                 plan(f).problem().contains(QStringLiteral("Move the cut")),
             qPrintable(plan(f).problem()));
    QVERIFY(plan(f).problemOp());
    QCOMPARE(plan(f).cut()->stages(), 1);
    QVERIFY(!plan(f).history().canUndo());
    break;
  }
  QVERIFY(refused);
  showStages(f);
  f.picture(QStringLiteral("stages-refused"));
}

void PipelineRealTest::stagesAreSavedAndOpenAlone() {
  WindowFixture f(liveEngine());
  auto* save = f.window().findChild<QAction*>(QStringLiteral("action-save-stages"));
  QVERIFY(!save->isEnabled());
  QVERIFY(f.open(data("pipeline/mlp_3st/model.pt2")));
  QVERIFY(settled(f));
  QVERIFY(save->isEnabled());
  const QTemporaryDir folder;
  save->trigger();
  auto* dialog = f.window().findChild<QFileDialog*>(QStringLiteral("stages-folder"));
  QVERIFY(dialog);
  Q_EMIT dialog->fileSelected(folder.path());
  dialog->close();
  QVERIFY(
      QTest::qWaitFor([&] { return f.window().messages().text().contains(QStringLiteral("3 stages saved")); }, 20000));
  QVERIFY(QFileInfo::exists(folder.filePath(QStringLiteral("pipeline.json"))));
  const auto last = plan(f).cut()->split.stages.back().ops.size();
  QVERIFY(f.open(folder.filePath(QStringLiteral("stage_2.retrograd"))));
  QCOMPARE(f.analysis().computation().trace.ops.size(), last);
  QVERIFY(!f.analysis().backward.ops.empty());
  QVERIFY(f.controller().document()->noRunReason.isEmpty());
}

void PipelineRealTest::aFolderThatCannotBeWrittenIsReported() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(data("pipeline/mlp_3st/model.pt2")));
  QVERIFY(settled(f));
  f.window().findChild<QAction*>(QStringLiteral("action-save-stages"))->trigger();
  auto* dialog = f.window().findChild<QFileDialog*>(QStringLiteral("stages-folder"));
  QVERIFY(dialog);
  QTemporaryFile file;
  QVERIFY(file.open());
  Q_EMIT dialog->fileSelected(file.fileName() + QStringLiteral("/below"));  // a file is not a folder
  dialog->close();
  QVERIFY(QTest::qWaitFor([&] { return f.window().messages().text().contains(QStringLiteral("not saved")); }, 20000));
}

void PipelineRealTest::stagesAreScheduled() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(data("pipeline/mlp_3st/model.pt2")));
  QVERIFY(settled(f));
  showDock(f, "dock-schedule");
  QVERIFY(scheduled(f));
  QCOMPARE(schedule(f).run()->schedule.ranks.size(), std::size_t(3));
  QCOMPARE(schedule(f).run()->times, StageTimes::estimated);
  f.picture(QStringLiteral("schedule-mlp"));
  plan(f).measure();
  QVERIFY(scheduled(f));
  QCOMPARE(schedule(f).run()->times, StageTimes::measured);
  QVERIFY(schedule(f).run()->simulation.makespan > 0);
  for (const auto& rank : schedule(f).run()->simulation.ranks) QVERIFY(rank.busy > 0);
  QVERIFY(schedule(f).run()->simulation.ranks.front().peakBytes > 0);
  f.theme().choose(Theme::Choice::dark);
  f.picture(QStringLiteral("schedule-mlp-dark"));
}

void PipelineRealTest::stagesGiveWhatTheModelGives() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(data("pipeline/shared_2st/model.pt2")));  // a parameter in two stages: gradients are summed
  QVERIFY(settled(f));
  f.window().findChild<QAction*>(QStringLiteral("action-check-stages"))->trigger();
  auto& dock = f.window().panel<StageCheckDock>();
  QVERIFY(dock.checking());
  QVERIFY(QTest::qWaitFor([&] { return !dock.checking(); }, 60000));
  QVERIFY2(dock.summary().startsWith(QStringLiteral("\u2713 3 stages")), qPrintable(dock.summary()));
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("stage-check-table"));
  int gradients = 0;
  for (int row = 0; row < table->model()->rowCount(); ++row)
    gradients +=
        table->model()->index(row, StageCheckModel::what).data().toString().contains(QStringLiteral("parameter"));
  std::set<ValueId> parameters;
  for (const auto& input : f.analysis().computation().inputs)
    if (input.kind == InputKind::parameter && input.requiresGrad) parameters.insert(input.value);
  QVERIFY(gradients > 0 && gradients <= static_cast<int>(parameters.size()));
  f.picture(QStringLiteral("stage-check-shared"));
  f.theme().choose(Theme::Choice::dark);
  f.picture(QStringLiteral("stage-check-shared-dark"));
}

void PipelineRealTest::aLargeModelIsScheduled() {
  const auto path = QString::fromStdString(sourcePath("../shared/cases/large/gpt12/model.pt2"));
  if (!QFileInfo::exists(path)) QSKIP("the collection of large models is not here");
  WindowFixture f(liveEngine());
  QVERIFY(f.open(path));
  CutRequest request;
  request.stages = 8;
  request.balance = Balance::estimate;
  plan(f).change(request, QStringLiteral("estimate"));
  QVERIFY(settled(f));
  showDock(f, "dock-schedule");
  QVERIFY(scheduled(f));
  QCOMPARE(schedule(f).run()->schedule.stages, 8);
  QCOMPARE(schedule(f).run()->times, StageTimes::estimated);
  auto* kind = f.window().findChild<QComboBox*>(QStringLiteral("schedule-kind"));
  kind->setFocus();
  QTest::keyClick(kind, Qt::Key_D);  // DualPipeV: two stages a rank
  QVERIFY(scheduled(f));
  QCOMPARE(schedule(f).run()->schedule.ranks.size(), std::size_t(4));
  QCOMPARE(schedule(f).run()->times, StageTimes::estimated);
  f.picture(QStringLiteral("schedule-gpt12"));
  f.theme().choose(Theme::Choice::dark);
  f.window().findChild<ScheduleView*>()->setCurrent(10);
  for (int i = 0; i < 3; ++i) QTest::keyClick(f.window().findChild<ScheduleView*>(), Qt::Key_Plus);
  f.picture(QStringLiteral("schedule-gpt12-dark"));
}

void PipelineRealTest::largeModelStaysResponsive() {
  const auto path = QString::fromStdString(sourcePath("../shared/cases/large/gpt12/model.pt2"));
  if (!QFileInfo::exists(path)) QSKIP("the collection of large models is not here");
  WindowFixture f(liveEngine());
  QVERIFY(f.open(path));
  showStages(f);
  CutRequest request;
  request.stages = 4;
  request.balance = Balance::estimate;
  plan(f).change(request, QStringLiteral("estimate"));
  QVERIFY(settled(f));
  QCOMPARE(plan(f).cut()->stages(), 4);
  f.picture(QStringLiteral("stages-gpt12"));
  f.listing(TraceKind::forward).reveal(plan(f).cut()->firstOp(2));
  f.window().listings().graphAction()->setChecked(true);
  f.window().listings().graph().setOverlay(Overlay::stage);
  QVERIFY(QTest::qWaitFor([&] { return f.window().listings().graph().picture() != nullptr; }, 20000));
  f.picture(QStringLiteral("stages-gpt12-graph"));
  f.theme().choose(Theme::Choice::dark);
  f.picture(QStringLiteral("stages-gpt12-dark"));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::PipelineRealTest)
#include "pipeline_real_test.moc"
