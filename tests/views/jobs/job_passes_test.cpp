#include <QAbstractItemModelTester>
#include <QFileInfo>
#include <QTest>
#include <QToolButton>
#include <QTreeView>

#include "tests/support/source_path.h"
#include "tests/views/open_job.h"
#include "tests/views/test_program.h"
#include "views/jobs/job_passes_window.h"
#include "views/jobs/save_plan_dock.h"

namespace retrograd::views {

/// The passes of a compile and its save plan, over the real engine and real logs.
class JobPassesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void J3_thePassesOfACompileAreAChainOfDifferences();
  void J6_theSavePlanNamesTheLayerThatSavesMore();
  void J6_theSavePlanSaysWhyThereIsNone();
};

// Holds J3: the graphs of one compile, each next to the one that its pass was given; an op is followed along them.
void JobPassesTest::J3_thePassesOfACompileAreAChainOfDifferences() {
  if (!QFileInfo::exists(job("gpt"))) QSKIP("no samples of jobs");
  OpenJob open(job("gpt/trace"));
  QVERIFY(open.opened);
  open.tree->setCurrentIndex(open.row(*open.tree->model(), QStringLiteral("post-grad")));
  open.tree->setFocus();
  open.f.press(Qt::Key_P, Qt::ControlModifier | Qt::AltModifier);
  JobPassesWindow* passes = nullptr;
  QTRY_VERIFY_WITH_TIMEOUT((passes = open.f.window().findChild<JobPassesWindow*>()) && !passes->summary().isEmpty(),
                           60000);
  auto* list = passes->findChild<QTreeView*>(QStringLiteral("job-passes-list"));
  auto& model = *list->model();
  const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  using Window = JobPassesWindow;
  const auto cell = [&](int row, int column) { return model.index(row, column).data().toString(); };
  QStringList names;
  for (int i = 0; i < model.rowCount(); ++i) names << cell(i, Window::pass);
  const QStringList chain{QStringLiteral("dynamo"),
                          QStringLiteral("before-pre-grad"),
                          QStringLiteral("after-pre-grad"),
                          QStringLiteral("joint"),
                          QStringLiteral("forward"),
                          QStringLiteral("before-post-grad"),
                          QStringLiteral("post-grad"),
                          QStringLiteral("backward"),
                          QStringLiteral("before-post-grad (backward)"),
                          QStringLiteral("post-grad (backward)")};
  QCOMPARE(names, chain);
  // The graph that was chosen in the tree, next to the one before it.
  QCOMPARE(list->currentIndex().row(), 6);
  QCOMPARE(cell(6, Window::against), QStringLiteral("before-post-grad"));
  QCOMPARE(cell(3, Window::against), QStringLiteral("after-pre-grad"));
  QCOMPARE(cell(7, Window::against), QStringLiteral("joint"));
  const auto* comparison = passes->view().rows().comparison();
  QVERIFY(comparison);
  QCOMPARE(comparison->left.title, QStringLiteral("before-post-grad"));
  QCOMPARE(cell(6, Window::gone).toULongLong(), static_cast<qulonglong>(comparison->diff.counts.onlyLeft));
  QCOMPARE(cell(6, Window::added).toULongLong(), static_cast<qulonglong>(comparison->diff.counts.onlyRight));
  OpenJob::picture(*passes, "job-passes-post-grad");
  // The keyboard goes to the pass before, and on; the op under the cursor is named in each pass that has it.
  const auto at = [&](int row) {
    return QTest::qWaitFor(
        [&] {
          const auto* shown = passes->view().rows().comparison();
          return list->currentIndex().row() == row && shown && shown->right.title == chain[row] &&
                 !passes->summary().isEmpty();
        },
        30000);
  };
  QTest::keyClick(list, Qt::Key_Up, Qt::AltModifier);
  QVERIFY(at(5));
  QTest::keyClick(list, Qt::Key_Up, Qt::AltModifier);
  QVERIFY(at(4));
  QTest::keyClick(list, Qt::Key_Return);
  QVERIFY(passes->view().hasFocus());
  const auto& view = passes->view();
  const auto& forward = *view.rows().comparison();
  BoundSymbolId op;
  for (const auto id : forward.right.trace->ops)
    if (forward.right.analysis->document->opName(id) == "torch.ops.aten.addmm.default" && !op) op = id;
  QVERIFY(op);
  const auto name = QString::fromStdString(
      forward.right.analysis->document->displayName(forward.right.analysis->document->outputs(op)[0]));
  passes->view().reveal(Side::right, op);
  QTest::keyClick(&passes->view(), Qt::Key_Down);
  QTest::keyClick(&passes->view(), Qt::Key_Up);
  for (const int row : {3, 4, 5, 6})
    QVERIFY2(cell(row, Window::followed).startsWith(name + QStringLiteral(" = ")),
             qPrintable(cell(row, Window::followed)));
  QVERIFY2(cell(2, Window::followed).startsWith(QStringLiteral("replaced: ")), qPrintable(cell(2, Window::followed)));
  QVERIFY2(passes->details().contains(name), qPrintable(passes->details()));
  OpenJob::picture(*passes, "job-passes");
  // Its row comes to the cursor in the next pass.
  QTest::keyClick(&passes->view(), Qt::Key_Down, Qt::AltModifier);
  QVERIFY(at(5));
  const auto [side, here] = view.opUnderCursor();
  const auto& next = *view.rows().comparison();
  QVERIFY(here);
  QCOMPARE(QString::fromStdString(
               next.of(side).analysis->document->displayName(next.of(side).analysis->document->outputs(here)[0])),
           name);
  // The first graph has none before it.
  list->setCurrentIndex(model.index(0, 0));
  QVERIFY(at(0));
  QCOMPARE(passes->summary(), QStringLiteral("The first graph: there is none before it"));
  // Asked for once more, the same window comes to the front; it stays when another file opens.
  command(open.f, "job-passes")->trigger();
  QVERIFY(at(6));
  QVERIFY(open.f.open(QString::fromStdString(sourcePath("tests/data/models/mlp/model.pt2"))));
  QCOMPARE(open.f.window().findChildren<JobPassesWindow*>().size(), 1);
  QTest::keyClick(list, Qt::Key_Down, Qt::AltModifier);
  QVERIFY(at(7));
  QTest::keyClick(list, Qt::Key_W, Qt::ControlModifier);
  QTRY_VERIFY(open.f.window().findChildren<JobPassesWindow*>().isEmpty());
}

// Holds J6: which policy each op had and what happened to it, over equal layers, where one layer of four differs.
void JobPassesTest::J6_theSavePlanNamesTheLayerThatSavesMore() {
  OpenJob open(QString::fromStdString(sourcePath("resources/samples/layers/trace")));
  QVERIFY(open.opened);
  auto* tree = open.f.window().findChild<QTreeView*>(QStringLiteral("save-plan"));
  auto& model = *tree->model();
  const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  open.f.press(Qt::Key_J, Qt::ControlModifier | Qt::AltModifier);
  QTRY_VERIFY_WITH_TIMEOUT(model.rowCount() > 0, 30000);
  QTRY_VERIFY(tree->isVisible());
  const auto& dock = open.f.window().panel<SavePlanDock>();
  QVERIFY2(dock.summary().startsWith(QStringLiteral("Saved: 3072 bytes in 9 values")), qPrintable(dock.summary()));
  QVERIFY2(dock.summary().contains(QStringLiteral("all saved: 4608 bytes in 12 values")), qPrintable(dock.summary()));
  QVERIFY2(dock.summary().endsWith(QStringLiteral("layers 0 to 3 (blocks.0 to blocks.3): equal, 6 ops each")),
           qPrintable(dock.summary()));
  const auto findings = model.index(0, 0);
  QCOMPARE(findings.data().toString(), QStringLiteral("Findings: 2"));
  const auto finding = model.index(1, 0, findings);
  QVERIFY2(finding.data().toString().startsWith(QStringLiteral(
               "layer 1 (blocks.1): gelu_1 = aten.gelu: f32[4, 32], 512 bytes (/job/train.py:22) is saved")),
           qPrintable(finding.data().toString()));
  open.f.picture(QStringLiteral("save-plan"));
  // The sentence is seen whole: it has the lines that it needs in what is in sight of the tree.
  const auto place = tree->visualRect(finding);
  const int width = std::min(place.right(), tree->viewport()->width()) - place.left();
  const auto needed =
      tree->fontMetrics().boundingRect(QRect(0, 0, width, 1000), Qt::TextWordWrap, finding.data().toString());
  QVERIFY2(place.height() >= needed.height(),
           qPrintable(QStringLiteral("%1 of %2 pixels").arg(place.height()).arg(needed.height())));
  // A click and Enter on a finding lead to the op that makes the value.
  const auto named = [&] {
    return open.f.selection().op() ? open.f.analysis().document->displayName(
                                         open.f.analysis().document->outputs(open.f.selection().op())[0])
                                   : std::string();
  };
  tree->scrollTo(finding);
  const auto inSight = tree->visualRect(finding).intersected(tree->viewport()->rect());
  QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, inSight.center());
  QCOMPARE(named(), std::string("gelu_1"));
  const auto section = open.row(model, QStringLiteral("Saved for the backward"));
  QVERIFY(section.isValid());
  QCOMPARE(section.siblingAtColumn(SavePlanRows::bytes).data().toString(), QStringLiteral("3072"));
  // One row represents four layers; below it each layer has its own op, which the arrow keys reach.
  const auto folded = open.row(model, QStringLiteral("addmm"));
  QVERIFY(folded.isValid());
  QCOMPARE(model.rowCount(folded), 4);
  QCOMPARE(folded.siblingAtColumn(SavePlanRows::policy).data().toString(), QStringLiteral("MUST_SAVE"));
  QCOMPARE(folded.siblingAtColumn(SavePlanRows::fate).data().toString(), QStringLiteral("saved"));
  tree->setFocus();
  tree->expand(folded.parent());
  tree->setCurrentIndex(folded);
  QTest::keyClick(tree, Qt::Key_Right);
  QVERIFY(tree->isExpanded(folded));
  for (int i = 0; i < 3; ++i) QTest::keyClick(tree, Qt::Key_Down);
  QVERIFY2(tree->currentIndex().data().toString().endsWith(QStringLiteral("layer 2 (blocks.2)")),
           qPrintable(tree->currentIndex().data().toString()));
  QTest::keyClick(tree, Qt::Key_Return);
  QVERIFY2(named().starts_with("addmm_"), named().c_str());
  QCOMPARE(QString::fromStdString(named()), tree->currentIndex().data().toString().section(QLatin1Char(' '), 0, 0));
  // The policies next to what happened, and the peak at four budgets, which rises with what is saved.
  const auto policies = open.row(model, QStringLiteral("MUST_SAVE"));
  QVERIFY(policies.isValid());
  QVERIFY(policies.siblingAtColumn(SavePlanRows::fate).data().toString().startsWith(QStringLiteral("saved ")));
  const auto* budgets = open.f.window().findChild<QTreeView*>(QStringLiteral("save-plan-budgets"));
  QVERIFY(!budgets->isVisible());
  for (auto* button : dock.findChildren<QToolButton*>())
    if (button->defaultAction() == command(open.f, "save-plan-budgets")) QTest::mouseClick(button, Qt::LeftButton);
  QTRY_VERIFY_WITH_TIMEOUT(budgets->isVisible(), 30000);
  const QAbstractItemModelTester budgetTester(budgets->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  QCOMPARE(budgets->model()->rowCount(), 4);
  const auto number = [&](int row, int column) {
    return budgets->model()->index(row, column).data().toString().toLongLong();
  };
  for (int i = 0; i < 4; ++i) QVERIFY(number(i, SavePlanDock::saved) <= number(i, SavePlanDock::budget));
  QVERIFY(number(0, SavePlanDock::saved) < number(3, SavePlanDock::saved));
  QVERIFY(number(0, SavePlanDock::recomputed) > number(3, SavePlanDock::recomputed));
  QVERIFY(dock.summary().startsWith(QStringLiteral("Saved: 3072")));
  open.f.picture(QStringLiteral("save-plan-budgets"));
  // Nothing of it stays when another file opens.
  QVERIFY(open.f.open(QString::fromStdString(sourcePath("tests/data/models/mlp/model.pt2"))));
  QCOMPARE(model.rowCount(), 0);
  QVERIFY(!budgets->isVisible());
}

void JobPassesTest::J6_theSavePlanSaysWhyThereIsNone() {
  WindowFixture f(liveEngine());
  const auto reason = [&] { return command(f, "save-plan")->statusTip(); };
  QVERIFY(!command(f, "save-plan")->isEnabled());
  QCOMPARE(reason(), QStringLiteral("No file is open"));
  QVERIFY(f.open(QString::fromStdString(sourcePath("tests/data/models/mlp/model.pt2"))));
  QTRY_COMPARE(reason(), QStringLiteral("The open file is not a log of torch.compile"));
  QVERIFY(f.open(QString::fromStdString(sourcePath("resources/samples/evaluate/trace"))));
  QTRY_VERIFY2(reason().startsWith(QStringLiteral("The open compile has no backward")), qPrintable(reason()));
  QVERIFY(!command(f, "save-plan")->isEnabled());
  QVERIFY(!command(f, "save-plan-budgets")->isEnabled());
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::JobPassesTest)
#include "job_passes_test.moc"
