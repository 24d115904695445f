#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBlock>
#include <QTreeView>

#include "tests/support/source_path.h"
#include "tests/views/open_job.h"
#include "tests/views/test_program.h"
#include "tests/views/user.h"
#include "views/jobs/job_graphs_window.h"
#include "views/text/format.h"

namespace retrograd::views {

/// What the window does with the log of a training job, over the real engine and real logs: the job's own graphs, the
/// second opinion, folders.
class JobTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void J2_theJobsOwnGraphsAreShownAsTheyAreInTheLog();
  void J2_aGraphIsSearched();
  void escapeClosesTheJobsOwnGraphs();
  void aLogOfSeveralGraphsOpensItsTree();
  void oneActionLeadsToTheBackwardOfTheThirdGraph();
  void J2_aBackwardOpLeadsToTheForwardByItsLineOfPython();
  void J2_eachCommandSaysWhyItIsNotThere();
  void J15_theSecondOpinionAgreesOnGpt();
  void J15_theSecondOpinionNamesTheOpOfLostPrecision();
  void J15_theSecondOpinionIsCancelled();
  void J15_whatCannotBeComparedIsSaid();
  void J2_aFolderIsOpenedFromTheMenu();
  void J15_commandsAreAboutTheChosenCompileOfTheChosenRank();
};

// Holds J2, J3: joint, forward and backward are the texts of the log, with the job's own split.
void JobTest::J2_theJobsOwnGraphsAreShownAsTheyAreInTheLog() {
  if (!QFileInfo::exists(job("gpt"))) QSKIP("no samples of jobs");
  OpenJob open(job("gpt/trace"));
  QVERIFY(open.opened);
  for (const auto* name : {"job-graphs", "second-opinion", "job-passes"})
    QVERIFY(open.tree->actions().contains(command(open.f, name)));  // which its context menu shows
  open.tree->setFocus();
  open.f.press(Qt::Key_J, Qt::ControlModifier);
  auto* graphs = open.graphs();
  QVERIFY(graphs);
  QVERIFY(graphs->title().startsWith(QStringLiteral("0/0  language_step")));
  const auto* tabs = graphs->findChild<QTabWidget*>(QStringLiteral("job-texts"));
  QCOMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("joint"));
  const auto log = jobs::openJobLog(job("gpt/trace").toStdString());
  const auto choice = jobs::chooseCompile(log, "0/0");
  QCOMPARE(static_cast<std::size_t>(tabs->count()), choice.attempt->graphs.size());
  int compared = 0;
  for (int i = 0; i < tabs->count(); ++i) {
    const auto& graph = choice.attempt->graphs[static_cast<std::size_t>(i)];
    QVERIFY(tabs->tabText(i).startsWith(toQt(std::string(jobs::name(graph.kind)))));
    if (graph.kind != jobs::GraphKind::joint && graph.kind != jobs::GraphKind::forward &&
        graph.kind != jobs::GraphKind::backward)
      continue;
    graphs->showGraph(static_cast<std::size_t>(i));
    auto* view = qobject_cast<QPlainTextEdit*>(tabs->widget(i));
    const auto expected = toQt(jobs::payloadText(log, graph.payload));
    QTRY_COMPARE(view->toPlainText(), expected);
    QVERIFY(view->isReadOnly());
    ++compared;
  }
  QCOMPARE(compared, 3);
  graphs->showGraph(jobs::GraphKind::joint, 330);
  open.picture(*graphs, "job-graphs");
  // Another theme has other colours; the cursor stays.
  const auto ink = [&] {
    auto cursor = OpenJob::text(*graphs)->document()->find(QStringLiteral("# File:"));
    return cursor.isNull() ? QColor() : cursor.charFormat().foreground().color();
  };
  QCOMPARE(ink(), open.f.theme().colors().comment);
  open.f.theme().choose(Theme::Choice::dark);
  QTRY_COMPARE(ink(), open.f.theme().colors().comment);
  QCOMPARE(OpenJob::text(*graphs)->textCursor().blockNumber(), 329);
  open.picture(*graphs, "job-graphs-dark");
  open.f.picture(QStringLiteral("job-dark"));
  // The graph that is chosen in the tree comes to the front of the same window.
  open.tree->setCurrentIndex(open.row(*open.tree->model(), QStringLiteral("forward")));
  command(open.f, "job-graphs")->trigger();
  QCOMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("forward"));
  QCOMPARE(open.f.window().findChildren<JobGraphsWindow*>().size(), 1);
  // So does the one that is double clicked, as the compile is open.
  open.tree->setCurrentIndex(open.row(*open.tree->model(), QStringLiteral("backward")));
  QTest::keyClick(open.tree, Qt::Key_Return);
  QTRY_COMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("backward"));
  // The listing's title says that it is not that one.
  const auto titles = open.f.window().listings().findChildren<QLabel*>();
  QVERIFY(std::any_of(titles.begin(), titles.end(),
                      [](const QLabel* label) { return label->text().contains(QStringLiteral("derived here")); }));
  // It keeps its log when another file opens, and closes by its key.
  QVERIFY(open.f.open(QString::fromStdString(sourcePath("tests/data/models/mlp/model.pt2"))));
  QVERIFY(OpenJob::text(*graphs)->toPlainText().contains(QStringLiteral("def forward")));
  QTest::keyClick(OpenJob::text(*graphs), Qt::Key_W, Qt::ControlModifier);
  QTRY_VERIFY(open.f.window().findChildren<JobGraphsWindow*>().isEmpty());
}

// From the line to find in, the first Esc leads back to the text.
void JobTest::escapeClosesTheJobsOwnGraphs() {
  OpenJob open(QString::fromStdString(sourcePath("resources/samples/graph_break/trace")));
  QVERIFY(open.opened);
  open.tree->setFocus();
  open.f.press(Qt::Key_J, Qt::ControlModifier);
  auto* graphs = open.graphs();
  QVERIFY(graphs);
  auto* find = graphs->findChild<QLineEdit*>(QStringLiteral("job-find"));
  QTest::keyClick(OpenJob::text(*graphs), Qt::Key_F, Qt::ControlModifier);
  QTRY_VERIFY(find->hasFocus());
  QTest::keyClick(find, Qt::Key_Escape);
  QTRY_VERIFY(OpenJob::text(*graphs)->hasFocus());
  QTest::keyClick(OpenJob::text(*graphs), Qt::Key_Escape);
  QTRY_VERIFY(open.f.window().findChildren<JobGraphsWindow*>().isEmpty());
}

void JobTest::aLogOfSeveralGraphsOpensItsTree() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(QString::fromStdString(sourcePath("resources/samples/graph_break/trace"))));
  auto* dock = f.window().findChild<QDockWidget*>(QStringLiteral("dock-job"));
  QTRY_VERIFY(!dock->visibleRegion().isEmpty());
  auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("job"));
  QTRY_VERIFY(tree->model()->rowCount() > 0);
  // The title names the graph that was chosen.
  OpenRequest request = f.controller().document()->request;
  request.data.compile = "1/0";
  f.controller().open(request);
  QTRY_VERIFY_WITH_TIMEOUT(f.window().windowTitle().contains(QStringLiteral("compile 1/0")), 20000);
  // What belongs to jobs is in one menu.
  const auto* menu = f.window().menu("job");
  QVERIFY(menu->actions().contains(command(f, "second-opinion")) && menu->actions().contains(command(f, "save-plan")));
}

void JobTest::oneActionLeadsToTheBackwardOfTheThirdGraph() {
  QTemporaryDir folder;
  QFile log(folder.filePath(QStringLiteral("three.log")));
  QVERIFY(log.open(QIODevice::WriteOnly));
  int frame = 0;
  for (const auto* name : {"nograd", "stepped", "detach"}) {
    QFile one(QString::fromStdString(sourcePath("tests/data/jobs/") + name + ".log"));
    QVERIFY(one.open(QIODevice::ReadOnly));
    log.write(one.readAll().replace("\"frame_id\": 0", "\"frame_id\": " + QByteArray::number(frame++)));
  }
  log.close();
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(log.fileName()));
  auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("job"));
  QTRY_VERIFY(!tree->viewport()->visibleRegion().isEmpty() && tree->model()->rowCount() > 0);
  const auto process = tree->model()->index(0, 0);
  QTRY_COMPARE(tree->model()->rowCount(process), 3);
  const auto third = tree->visualRect(tree->model()->index(2, 0, process)).center();
  QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, third);
  QTest::mouseDClick(tree->viewport(), Qt::LeftButton, {}, third);
  QTRY_VERIFY_WITH_TIMEOUT(f.window().windowTitle().contains(QStringLiteral("compile 2/0")), 20000);
  auto& backward = f.listing(TraceKind::backward);
  QTRY_VERIFY(backward.rowCount() > 0);
  QTRY_VERIFY(!backward.viewport()->visibleRegion().isEmpty());
}

void JobTest::J2_aGraphIsSearched() {
  if (!QFileInfo::exists(job("gpt"))) QSKIP("no samples of jobs");
  OpenJob open(job("gpt/trace"));
  QVERIFY(open.opened);
  open.tree->setCurrentIndex(open.row(*open.tree->model(), QStringLiteral("backward")));
  command(open.f, "job-graphs")->trigger();
  auto* graphs = open.graphs();
  QVERIFY(graphs);
  auto* view = OpenJob::text(*graphs);
  auto* find = graphs->findChild<QLineEdit*>(QStringLiteral("job-find"));
  const auto* line = graphs->findChild<QLabel*>(QStringLiteral("job-line"));
  QTest::keyClick(view, Qt::Key_F, Qt::ControlModifier);
  QVERIFY(find->hasFocus());
  QTest::keyClicks(find, QStringLiteral("aten.mm.default"));
  QTest::keyClick(find, Qt::Key_Return);
  QCOMPARE(view->textCursor().selectedText(), QStringLiteral("aten.mm.default"));
  const int first = view->textCursor().position();
  QVERIFY(line->text().startsWith(QStringLiteral("Line %1 of").arg(view->textCursor().blockNumber() + 1)));
  QTest::keyClick(find, Qt::Key_F3);
  const int second = view->textCursor().position();
  QVERIFY(second > first);
  QTest::keyClick(find, Qt::Key_F3, Qt::ShiftModifier);
  QCOMPARE(view->textCursor().position(), first);
  find->setText(QStringLiteral("no such op"));
  QTest::keyClick(find, Qt::Key_Return);
  QCOMPARE(line->text(), QStringLiteral("'no such op' does not occur in this graph"));
}

// Holds J2: links between the job's own backward and forward go by line of Python, and the window says so.
void JobTest::J2_aBackwardOpLeadsToTheForwardByItsLineOfPython() {
  OpenJob open(QString::fromStdString(sourcePath("resources/samples/lost_precision/trace")));
  QVERIFY(open.opened);
  open.tree->setCurrentIndex(open.row(*open.tree->model(), QStringLiteral("backward")));
  command(open.f, "job-graphs")->trigger();
  auto* graphs = open.graphs();
  QVERIFY(graphs);
  const auto* line = graphs->findChild<QLabel*>(QStringLiteral("job-line"));
  const auto* tabs = graphs->findChild<QTabWidget*>(QStringLiteral("job-texts"));
  const auto here = [&] { return OpenJob::text(*graphs)->textCursor().block().text().trimmed(); };
  graphs->showGraph(jobs::GraphKind::backward, 11);
  QVERIFY(here().startsWith(QStringLiteral("mm_1:")));
  QTest::keyClick(OpenJob::text(*graphs), Qt::Key_G);
  QTRY_COMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("forward"));
  QVERIFY2(here().startsWith(QStringLiteral("mm:")), qPrintable(here()));
  QVERIFY2(line->text().endsWith(QStringLiteral("linked by line of Python: /job/train.py:99")),
           qPrintable(line->text()));
  QTest::keyClick(OpenJob::text(*graphs), Qt::Key_G);
  QCOMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("backward"));
  QVERIFY(here().startsWith(QStringLiteral("mm_1:")));
  // An input of the graph has no line of Python.
  graphs->showGraph(jobs::GraphKind::backward, 4);
  QTest::keyClick(OpenJob::text(*graphs), Qt::Key_G);
  QCOMPARE(line->text(), QStringLiteral("There is no op at the cursor"));
}

void JobTest::J2_eachCommandSaysWhyItIsNotThere() {
  WindowFixture f(liveEngine());
  const auto reason = [&](const char* name) { return command(f, name)->statusTip(); };
  for (const auto* name : {"job-graphs", "second-opinion", "job-passes"}) {
    QVERIFY(!command(f, name)->isEnabled());
    QCOMPARE(reason(name), QStringLiteral("No file is open"));
  }
  QVERIFY(f.open(QString::fromStdString(sourcePath("tests/data/models/mlp/model.pt2"))));
  for (const auto* name : {"job-graphs", "second-opinion", "job-passes"}) {
    QTRY_COMPARE(reason(name), QStringLiteral("The open file is not a log of torch.compile"));
    QVERIFY(!command(f, name)->isEnabled());
  }
  if (!QFileInfo::exists(job("gpt"))) QSKIP("no samples of jobs");
  QVERIFY(f.open(job("gpt/trace")));
  for (const auto* name : {"job-graphs", "second-opinion", "job-passes"}) QTRY_VERIFY(command(f, name)->isEnabled());
}

// Holds J15: the job's own backward of a compile against the derived one, in the background.
void JobTest::J15_theSecondOpinionAgreesOnGpt() {
  if (!QFileInfo::exists(job("gpt"))) QSKIP("no samples of jobs");
  OpenJob open(job("gpt/trace"));
  QVERIFY(open.opened);
  QVERIFY(open.ask());
  QCOMPARE(open.summary(), QStringLiteral("\u2713 0/0: the job's backward agrees with the derived one"));
  QTRY_VERIFY(open.findings->isVisible());
  QCOMPARE(open.detail(QStringLiteral("judged")), QStringLiteral("41 gradients"));
  open.f.picture(QStringLiteral("job-opinion-agrees"));
}

void JobTest::J15_theSecondOpinionNamesTheOpOfLostPrecision() {
  const auto sample = QString::fromStdString(sourcePath("resources/samples/lost_precision"));
  OpenJob open(sample + QStringLiteral("/trace"));
  QVERIFY(open.opened);
  auto request = open.f.controller().document()->request;
  request.data.weights = (sample + QStringLiteral("/model.safetensors")).toStdString();
  request.data.batch = (sample + QStringLiteral("/batch.safetensors")).toStdString();
  open.f.controller().reopen(request);
  QTRY_VERIFY(open.f.controller().document() && !open.f.controller().document()->request.data.batch.empty());
  QTRY_VERIFY(open.tree->model()->rowCount() > 0);
  QVERIFY(open.ask());
  // The sentence of the command line.
  const auto detail = open.detail(QStringLiteral("primals_2 (b.weight)"));
  QVERIFY2(detail.startsWith(QStringLiteral("primals_2 (b.weight) (derivative): off by 0.021")), qPrintable(detail));
  QVERIFY2(detail.contains(QStringLiteral("from mm_1 (torch.ops.aten.mm.default), line 11 of the backward graph")),
           qPrintable(detail));
  QVERIFY2(open.summary().startsWith(QStringLiteral("\u2717 0/0: fail: ") + detail), qPrintable(open.summary()));
  QCOMPARE(open.detail(QStringLiteral("op")), QStringLiteral("line 11 of the job's backward"));
  QVERIFY(open.detail(QStringLiteral("Python")).startsWith(QStringLiteral("/job/train.py:99: return")));
  open.f.picture(QStringLiteral("job-opinion"));
  // Enter on the finding leads to the op in the listing: the mm of line 99 that makes the gradient of b.weight.
  open.findings->setFocus();
  open.findings->setCurrentIndex(open.row(*open.findings->model(), QStringLiteral("primals_2 (b.weight)")));
  QTest::keyClick(open.findings, Qt::Key_Return);
  const auto op = open.f.selection().op();
  QVERIFY(op);
  const auto& document = *open.f.analysis().document;
  QCOMPARE(document.opName(op), std::string("torch.ops.aten.mm.default"));
  const auto& backward = open.f.analysis().backward.ops;
  QVERIFY(std::find(backward.begin(), backward.end(), op) != backward.end());
  QCOMPARE(document.meta(document.outputs(op)[0]).sizes, (std::vector<std::int64_t>{64, 64}));
  // Enter on its op leads to that line of the job's own backward.
  open.findings->setFocus();
  open.findings->setCurrentIndex(open.row(*open.findings->model(), QStringLiteral("op")));
  QTest::keyClick(open.findings, Qt::Key_Return);
  auto* graphs = open.graphs();
  QVERIFY(graphs);
  QTRY_COMPARE(OpenJob::text(*graphs)->textCursor().blockNumber(), 10);
  QVERIFY(OpenJob::text(*graphs)->textCursor().block().text().contains(QStringLiteral("mm_1")));
  open.picture(*graphs, "job-graphs-line");
}

void JobTest::J15_theSecondOpinionIsCancelled() {
  if (!QFileInfo::exists(job("gpt"))) QSKIP("no samples of jobs");
  OpenJob open(job("gpt/trace"));
  QVERIFY(open.opened);
  command(open.f, "second-opinion")->trigger();
  QVERIFY(open.summary().startsWith(QStringLiteral("Comparing")));
  open.f.press(Qt::Key_F5, Qt::ShiftModifier);
  QTRY_COMPARE(open.summary(), QStringLiteral("Cancelled"));
  QVERIFY(open.f.quiet());
  QVERIFY(!open.findings->isVisible());
  QVERIFY(open.ask());
  QVERIFY(open.summary().startsWith(QStringLiteral("\u2713")));
}

void JobTest::J15_whatCannotBeComparedIsSaid() {
  QFile sample(QString::fromStdString(sourcePath("tests/data/jobs/both.log")));
  QVERIFY(sample.open(QIODevice::ReadOnly));
  auto log = sample.readAll();
  const QByteArray op = "torch.ops.aten.mul.Tensor(";
  const auto at = log.indexOf(op, log.indexOf("aot_backward_graph"));
  QVERIFY(at > 0);
  log.replace(at, op.size(), "torch.ops.mine.unknown.default(");
  QTemporaryDir folder;
  QFile file(folder.filePath(QStringLiteral("opaque.log")));
  QVERIFY(file.open(QIODevice::WriteOnly) && file.write(log) == log.size());
  file.close();
  OpenJob open(file.fileName());
  QVERIFY(open.opened);
  QVERIFY(open.ask());
  QVERIFY2(open.summary().contains(QStringLiteral("not possible")), qPrintable(open.summary()));
  QVERIFY(open.detail(QStringLiteral("not judged")).contains(QStringLiteral("mine.unknown")));
}

void JobTest::J2_aFolderIsOpenedFromTheMenu() {
  if (!QFileInfo::exists(job("ranks"))) QSKIP("no samples of jobs");
  WindowFixture f(liveEngine());
  User user(f);
  user.clickMenu({QStringLiteral("File"), QStringLiteral("Open Folder...")});
  QFileDialog* dialog = nullptr;
  QTRY_VERIFY((dialog = f.window().findChild<QFileDialog*>()) && dialog->isVisible());
  QCOMPARE(dialog->windowTitle(), QStringLiteral("Open Folder"));
  auto* line = dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"));
  line->setText(job("ranks/trace"));  // typing would open the list of a completer over it
  QTest::keyClick(line, Qt::Key_Return);
  QTRY_VERIFY_WITH_TIMEOUT(f.controller().document(), 30000);
  f.raise("dock-job");
  const auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("job"));
  QTRY_COMPARE(tree->model()->rowCount(), 2);
  // The compile that is the model is the one that is chosen: the first with a backward.
  QCOMPARE(tree->currentIndex().data().toString(), QStringLiteral("5/0"));
  QVERIFY(tree->currentIndex().data(Qt::FontRole).value<QFont>().bold());
}

void JobTest::J15_commandsAreAboutTheChosenCompileOfTheChosenRank() {
  if (!QFileInfo::exists(job("ranks"))) QSKIP("no samples of jobs");
  OpenJob open(job("ranks/trace"));
  QVERIFY(open.opened);
  const auto& model = *open.tree->model();
  const auto rank = model.index(1, 0);
  QCOMPARE(rank.data().toString(), QStringLiteral("rank 1"));
  const auto found = model.match(model.index(0, 0, rank), Qt::DisplayRole, QStringLiteral("6/0"));
  QCOMPARE(found.size(), 1);
  open.tree->setCurrentIndex(found[0]);
  QVERIFY(open.ask());
  QCOMPARE(open.summary(), QStringLiteral("\u2713 6/0: the job's backward agrees with the derived one"));
  QVERIFY(open.f.controller().document()->request.data.compile.empty());  // the model stays
  open.f.press(Qt::Key_J, Qt::ControlModifier);
  auto* graphs = open.graphs();
  QVERIFY(graphs);
  QVERIFY2(graphs->title().startsWith(QStringLiteral("6/0 of rank 1  ")), qPrintable(graphs->title()));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::JobTest)
#include "job_test.moc"
