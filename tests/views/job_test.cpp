#include <QAbstractItemModelTester>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTemporaryFile>
#include <QTest>
#include <QTextBlock>
#include <QToolButton>
#include <QTreeView>

#include <sys/stat.h>

#include <numeric>

#include "tests/support/source_path.h"
#include "tests/views/user.h"
#include "views/jobs/job_dock.h"
#include "views/jobs/job_graphs_window.h"
#include "views/jobs/job_passes_window.h"
#include "views/jobs/recorded_dock.h"
#include "views/jobs/save_plan_dock.h"
#include "views/models/values_model.h"
#include "views/text/format.h"

namespace retrograd::views {

/// What the window does with the log of a training job, over the real engine and real logs: the job's own graphs, the second opinion, folders.
class JobTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void J2_theJobsOwnGraphsAreShownAsTheyStandInTheLog();
  void J2_aGraphIsSearched();
  void J2_aBackwardOpLeadsToTheForwardByItsLineOfPython();
  void J2_eachCommandSaysWhyItIsNotThere();
  void J15_theSecondOpinionAgreesOnGpt();
  void J15_theSecondOpinionNamesTheOpOfLostPrecision();
  void J15_theSecondOpinionIsCancelled();
  void J15_whatCannotBeComparedIsSaid();
  void J2_aFolderIsOpenedFromTheMenu();
  void J15_commandsAreAboutTheChosenCompileOfTheChosenRank();
  void J12_recordedNumbersNameTheSecondGelu();
  void J12_aDroppedRecordingIsLookedAtInTheBackground();
  void J3_thePassesOfACompileAreAChainOfDifferences();
  void J9_collectivesArePassedOverWhereTheirValuesAreGiven();
  void J6_theSavePlanNamesTheLayerThatSavesMore();
  void J6_theSavePlanSaysWhyThereIsNone();
};

namespace {

QString job(const char* name) { return QString::fromStdString(sourcePath((std::string("../shared/cases/jobs/") + name).c_str())); }

QAction* command(WindowFixture& f, const char* name) { return f.window().findChild<QAction*>(QStringLiteral("action-") + QLatin1String(name)); }

/// A log that is open, with the panel Job in front.
struct OpenJob {
  explicit OpenJob(const QString& path) : f(liveEngine()) {
    opened = f.open(path);
    f.raise("dock-job");
    tree = f.window().findChild<QTreeView*>(QStringLiteral("job"));
    findings = f.window().findChild<QTreeView*>(QStringLiteral("job-opinion"));
    opened = opened && QTest::qWaitFor([this] { return tree->model()->rowCount() > 0; }, 30000);
  }
  QModelIndex row(const QAbstractItemModel& model, const QString& text) const {
    const auto found = model.match(model.index(0, 0), Qt::DisplayRole, text, 1, Qt::MatchExactly | Qt::MatchRecursive);
    return found.isEmpty() ? QModelIndex() : found.front();
  }
  QString detail(const QString& what) const { return row(*findings->model(), what).siblingAtColumn(1).data().toString(); }
  QString summary() { return f.window().panel<JobDock>().summary(); }
  /// The window of the job's own graphs, once its text is there.
  JobGraphsWindow* graphs() {
    JobGraphsWindow* window = nullptr;
    const auto there = [&] {
      window = f.window().findChild<JobGraphsWindow*>();
      return window && text(*window) && !text(*window)->toPlainText().isEmpty();
    };
    return QTest::qWaitFor(there, 30000) ? window : nullptr;
  }
  static QPlainTextEdit* text(JobGraphsWindow& window) {
    return qobject_cast<QPlainTextEdit*>(window.findChild<QTabWidget*>(QStringLiteral("job-texts"))->currentWidget());
  }
  static void picture(QWidget& window, const char* name) {
    const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES");
    if (!folder.isEmpty() && standsStill(window)) window.grab().save(QStringLiteral("%1/%2.png").arg(folder, QLatin1String(name)));
  }
  /// Presses the button of the panel and waits for its answer.
  bool ask() {
    for (auto* button : f.window().panel<JobDock>().findChildren<QToolButton*>())
      if (button->defaultAction() == command(f, "second-opinion")) QTest::mouseClick(button, Qt::LeftButton);
    return QTest::qWaitFor([this] { return !summary().isEmpty() && !summary().startsWith(QStringLiteral("Comparing")); }, 60000);
  }

  WindowFixture f;
  QTreeView* tree = nullptr;
  QTreeView* findings = nullptr;
  bool opened = false;
};

}  // namespace

// Holds J2, J3: joint, forward and backward are the texts of the log, with the job's own split.
void JobTest::J2_theJobsOwnGraphsAreShownAsTheyStandInTheLog() {
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
    if (graph.kind != jobs::GraphKind::joint && graph.kind != jobs::GraphKind::forward && graph.kind != jobs::GraphKind::backward) continue;
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
  // It keeps its log when another file opens, and closes by its key.
  QVERIFY(open.f.open(QString::fromStdString(sourcePath("tests/data/models/mlp/model.pt2"))));
  QVERIFY(OpenJob::text(*graphs)->toPlainText().contains(QStringLiteral("def forward")));
  QTest::keyClick(OpenJob::text(*graphs), Qt::Key_W, Qt::ControlModifier);
  QTRY_VERIFY(open.f.window().findChildren<JobGraphsWindow*>().isEmpty());
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
  QVERIFY2(line->text().endsWith(QStringLiteral("linked by line of Python: /job/train.py:99")), qPrintable(line->text()));
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
  QCOMPARE(open.detail(QStringLiteral("compared")), QStringLiteral("gradients by value: 41, None in both: 2"));
  QVERIFY(open.detail(QStringLiteral("values")).startsWith(QStringLiteral("drawn")));
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
  QCOMPARE(open.summary(), QStringLiteral("\u2717 0/0: the job's backward DIFFERS from the derived one"));
  QVERIFY2(open.detail(QStringLiteral("primals_2 (b.weight)")).startsWith(QStringLiteral("off by 0.021")),
           qPrintable(open.detail(QStringLiteral("primals_2 (b.weight)"))));
  QCOMPARE(open.detail(QStringLiteral("op")), QStringLiteral("mm_1 (torch.ops.aten.mm.default), line 11 of the job's backward"));
  QVERIFY(open.detail(QStringLiteral("Python")).startsWith(QStringLiteral("/job/train.py:99: return")));
  QVERIFY(open.detail(QStringLiteral("values")).isEmpty());
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
  QCOMPARE(document.meta(document.value(document.outputs(op)[0]).meta).sizes, (std::vector<std::int64_t>{64, 64}));
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
  if (!QFileInfo::exists(job("tp"))) QSKIP("no samples of jobs");
  OpenJob open(job("tp/trace"));
  QVERIFY(open.opened);
  QVERIFY(open.ask());
  QVERIFY2(open.summary().endsWith(QStringLiteral("no second opinion is possible")), qPrintable(open.summary()));
  QVERIFY(open.detail(QStringLiteral("not compared")).contains(QStringLiteral("_c10d_functional.all_reduce")));
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

void JobTest::J12_recordedNumbersNameTheSecondGelu() {
  const auto folder = job("debugmode/");
  if (!QFileInfo::exists(folder + QStringLiteral("model.pt2"))) QSKIP("the samples of jobs are not there");
  WindowFixture f(liveEngine());
  auto* next = command(f, "next-difference");
  QVERIFY(!command(f, "load-recorded")->isEnabled());
  QVERIFY(f.open(folder + QStringLiteral("model.pt2")));
  auto request = f.window().context().controller->document()->request;
  request.data.weights = (folder + QStringLiteral("model.safetensors")).toStdString();
  request.data.batch = (folder + QStringLiteral("batch.safetensors")).toStdString();
  const auto before = f.window().context().controller->document();
  f.window().context().controller->reopen(request);
  QTRY_VERIFY_WITH_TIMEOUT(f.window().context().controller->document() && f.window().context().controller->document() != before, 60000);
  QVERIFY(command(f, "load-recorded")->isEnabled());
  QVERIFY(!next->isEnabled());

  auto& dock = f.window().panel<RecordedDock>();
  f.raise("dock-recorded");
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("recorded"));
  const QAbstractItemModelTester tester(table->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  const auto answered = [&] { return !dock.summary().isEmpty() && !dock.summary().startsWith(QStringLiteral("Comparing")); };
  dock.load(folder + QStringLiteral("perturbed.json"));
  QVERIFY(QTest::qWaitFor(answered, 60000));
  QVERIFY2(dock.summary().contains(QStringLiteral("first difference is aten::gelu")), qPrintable(dock.summary()));
  QVERIFY2(dock.summary().contains(QStringLiteral("blocks.1")), qPrintable(dock.summary()));
  const auto gelu = table->currentIndex().siblingAtColumn(0);
  QVERIFY2(gelu.data().toString().contains(QStringLiteral("aten::gelu")), qPrintable(gelu.data().toString()));
  QVERIFY(next->isEnabled());
  next->trigger();
  QCOMPARE(f.window().context().selection->op().index, gelu.data(opRole).toInt());
  f.picture("recorded-numbers");
  next->trigger();
  QVERIFY(table->currentIndex().row() > gelu.row());

  dock.load(folder + QStringLiteral("clean.json"));
  QVERIFY(QTest::qWaitFor(answered, 60000));
  QVERIFY2(dock.summary().contains(QStringLiteral("agree")), qPrintable(dock.summary()));
  QVERIFY(!next->isEnabled());

  QFile whole(QString::fromStdString(sourcePath("tests/fuzz/seeds/recorded/clean.json")));
  QTemporaryFile damaged;
  QVERIFY(whole.open(QIODevice::ReadOnly) && damaged.open());
  damaged.write(whole.readAll().left(2000));
  damaged.close();
  dock.load(damaged.fileName());
  QVERIFY(QTest::qWaitFor(answered, 60000));
  QVERIFY2(dock.summary().startsWith(QStringLiteral("! ")), qPrintable(dock.summary()));
  QVERIFY2(dock.summary().contains(QFileInfo(damaged).fileName()), qPrintable(dock.summary()));

  dock.load(folder + QStringLiteral("model.safetensors"));
  QVERIFY(QTest::qWaitFor(answered, 60000));
  QVERIFY2(dock.summary().startsWith(QStringLiteral("! ")), qPrintable(dock.summary()));
  QCOMPARE(table->model()->rowCount(), 0);
}

// Holds J3: the graphs of one compile, each next to the one that its pass was given; an op is followed along them.
void JobTest::J3_thePassesOfACompileAreAChainOfDifferences() {
  if (!QFileInfo::exists(job("gpt"))) QSKIP("no samples of jobs");
  OpenJob open(job("gpt/trace"));
  QVERIFY(open.opened);
  open.tree->setCurrentIndex(open.row(*open.tree->model(), QStringLiteral("post-grad")));
  open.tree->setFocus();
  open.f.press(Qt::Key_P, Qt::ControlModifier | Qt::AltModifier);
  JobPassesWindow* passes = nullptr;
  QTRY_VERIFY_WITH_TIMEOUT((passes = open.f.window().findChild<JobPassesWindow*>()) && !passes->summary().isEmpty(), 60000);
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
          return list->currentIndex().row() == row && shown && shown->right.title == chain[row] && !passes->summary().isEmpty();
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
  const auto name = QString::fromStdString(forward.right.analysis->document->displayName(forward.right.analysis->document->outputs(op)[0]));
  passes->view().reveal(Side::right, op);
  QTest::keyClick(&passes->view(), Qt::Key_Down);
  QTest::keyClick(&passes->view(), Qt::Key_Up);
  for (const int row : {3, 4, 5, 6}) QVERIFY2(cell(row, Window::followed).startsWith(name + QStringLiteral(" = ")), qPrintable(cell(row, Window::followed)));
  QVERIFY2(cell(2, Window::followed).startsWith(QStringLiteral("replaced: ")), qPrintable(cell(2, Window::followed)));
  QVERIFY2(passes->details().contains(name), qPrintable(passes->details()));
  OpenJob::picture(*passes, "job-passes");
  // Its row comes to the cursor in the next pass.
  QTest::keyClick(&passes->view(), Qt::Key_Down, Qt::AltModifier);
  QVERIFY(at(5));
  const auto [side, here] = view.opUnderCursor();
  const auto& next = *view.rows().comparison();
  QVERIFY(here);
  QCOMPARE(QString::fromStdString(next.of(side).analysis->document->displayName(next.of(side).analysis->document->outputs(here)[0])), name);
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

// The file's beginning decides whether it is a recording. Here that comes late, from a pipe: the window goes on meanwhile.
void JobTest::J12_aDroppedRecordingIsLookedAtInTheBackground() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(QString::fromStdString(sourcePath("tests/data/models/mlp/model.pt2"))));
  const auto recording = QString::fromStdString(sourcePath("tests/fuzz/seeds/recorded/clean.json"));
  const QTemporaryDir folder;
  const auto path = folder.filePath(QStringLiteral("norms.json"));
  QCOMPARE(mkfifo(qPrintable(path), 0600), 0);
  User(f).drop(path);  // comes back though nobody has written to the pipe yet
  const auto& dock = f.window().panel<RecordedDock>();
  QVERIFY(dock.summary().isEmpty());
  QFile pipe(path), whole(recording);
  QVERIFY(whole.open(QIODevice::ReadOnly) && pipe.open(QIODevice::WriteOnly));
  pipe.write(whole.read(4096));
  pipe.close();
  QVERIFY(QFile::remove(path) && QFile::copy(recording, path));
  QTRY_VERIFY_WITH_TIMEOUT(!dock.summary().isEmpty(), 30000);
  QVERIFY(QTest::qWaitFor([&] { return !dock.summary().startsWith(QStringLiteral("Comparing")); }, 60000));
  QVERIFY(f.controller().document()->request.path.ends_with("model.pt2"));
  // Other JSON is opened as any file is, which says what is wrong with it.
  QVERIFY(QFile::remove(path));
  QFile other(path);
  QVERIFY(other.open(QIODevice::WriteOnly) && other.write("{}") == 2);
  other.close();
  User(f).drop(path);
  QTRY_VERIFY_WITH_TIMEOUT(f.window().messages().text().contains(QStringLiteral("norms.json")), 30000);
}

// Holds J9: a collective does not run; what depends on it says so, and is computed where its value is given with the inputs.
void JobTest::J9_collectivesArePassedOverWhereTheirValuesAreGiven() {
  if (!QFileInfo::exists(job("tp"))) QSKIP("no samples of jobs");
  WindowFixture f(liveEngine());
  QVERIFY(f.open(job("tp/trace")));
  const auto valueNamed = [&](const std::string& name) {
    const auto& document = *f.analysis().document;
    for (const auto op : f.analysis().forward.ops)
      for (const auto output : document.outputs(op))
        if (document.displayName(output) == name) return std::pair(op, output);
    return std::pair(BoundSymbolId(), ValueId());
  };
  const auto shown = [&](const std::string& name) {
    const auto [op, value] = valueNamed(name);
    f.selection().select(op, value);
    const auto* values = f.window().findChild<QTreeView*>(QStringLiteral("values"));
    QString text;
    for (int row = 0; values && row < values->model()->rowCount(); ++row)
      for (int column = 0; column < values->model()->columnCount(); ++column) {
        const auto cell = values->model()->index(row, column);
        text += cell.data().toString() + QLatin1Char(' ') + cell.data(Qt::ToolTipRole).toString() + QLatin1Char('\n');
      }
    return text;
  };
  f.raise("dock-values");
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, f.execution().size);
  QTRY_VERIFY2(shown("sum_1").contains(QStringLiteral("depends on the opaque op torch.ops._c10d_functional.wait_tensor.default")), qPrintable(shown("sum_1")));
  // The long reason is elided, so that names and types stay in sight; its tooltip is whole.
  const auto* values = f.window().findChild<QTreeView*>(QStringLiteral("values"));
  QVERIFY(values->columnWidth(ValuesModel::state) < 20 * values->fontMetrics().averageCharWidth());
  f.picture(QStringLiteral("collective-absent"));
  // The dialog for inputs takes a file with the values.
  QTemporaryFile given;
  QVERIFY(given.open());
  std::vector<float> numbers(128);
  std::iota(numbers.begin(), numbers.end(), 0.F);
  const QByteArray bytes(reinterpret_cast<const char*>(numbers.data()), 512);
  const QByteArray head =
      R"({"wait_tensor":{"dtype":"F32","shape":[8,16],"data_offsets":[0,512]},"wait_tensor_1":{"dtype":"F32","shape":[8,16],"data_offsets":[512,1024]}})";
  const auto size = static_cast<quint64>(head.size());
  given.write(reinterpret_cast<const char*>(&size), 8);
  given.write(head + bytes + bytes);
  given.close();
  auto request = f.controller().document()->request;
  request.source = InputSource::file;
  request.inputFile = given.fileName().toStdString();
  const auto before = f.controller().document();
  f.controller().reopen(request);
  const auto isOpen = [&] { return f.controller().document() && f.controller().document() != before; };
  QVERIFY2(QTest::qWaitFor(isOpen, 5000), qPrintable(f.window().messages().text()));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QTRY_VERIFY2(shown("sum_1").contains(QStringLiteral("8128")) /* 0 + 1 + ... + 127 */, qPrintable(shown("sum_1")));
  f.picture(QStringLiteral("collective-given"));
}

// Holds J6: which policy each op had and what happened to it, over equal layers, where one layer of four differs.
void JobTest::J6_theSavePlanNamesTheLayerThatSavesMore() {
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
  QVERIFY2(dock.summary().endsWith(QStringLiteral("layers 0 to 3 (blocks.0 to blocks.3): equal, 6 ops each")), qPrintable(dock.summary()));
  const auto findings = model.index(0, 0);
  QCOMPARE(findings.data().toString(), QStringLiteral("Findings: 2"));
  const auto finding = model.index(1, 0, findings);
  QVERIFY2(finding.data().toString().startsWith(QStringLiteral("layer 1 (blocks.1): gelu_1 = aten.gelu: f32[4, 32], 512 bytes (/job/train.py:22) is saved")),
           qPrintable(finding.data().toString()));
  open.f.picture(QStringLiteral("save-plan"));
  // The sentence is seen whole: it has the lines that it needs in what is in sight of the tree.
  const auto place = tree->visualRect(finding);
  const int width = std::min(place.right(), tree->viewport()->width()) - place.left();
  const auto needed = tree->fontMetrics().boundingRect(QRect(0, 0, width, 1000), Qt::TextWordWrap, finding.data().toString());
  QVERIFY2(place.height() >= needed.height(), qPrintable(QStringLiteral("%1 of %2 pixels").arg(place.height()).arg(needed.height())));
  // A click and Enter on a finding lead to the op that makes the value.
  const auto named = [&] {
    return open.f.selection().op() ? open.f.analysis().document->displayName(open.f.analysis().document->outputs(open.f.selection().op())[0]) : std::string();
  };
  QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, tree->visualRect(finding).center());
  QCOMPARE(named(), std::string("gelu_1"));
  const auto section = open.row(model, QStringLiteral("Saved for the backward"));
  QVERIFY(section.isValid());
  QCOMPARE(section.siblingAtColumn(SavePlanRows::bytes).data().toString(), QStringLiteral("3072"));
  // One row stands for four layers; below it each layer has its own op, which the arrow keys reach.
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
  QVERIFY2(tree->currentIndex().data().toString().endsWith(QStringLiteral("layer 2 (blocks.2)")), qPrintable(tree->currentIndex().data().toString()));
  QTest::keyClick(tree, Qt::Key_Return);
  QVERIFY2(named().starts_with("addmm_"), named().c_str());
  QCOMPARE(QString::fromStdString(named()), tree->currentIndex().data().toString().section(QLatin1Char(' '), 0, 0));
  // The policies beside what happened, and the peak at four budgets, which rises with what is saved.
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
  const auto number = [&](int row, int column) { return budgets->model()->index(row, column).data().toString().toLongLong(); };
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

void JobTest::J6_theSavePlanSaysWhyThereIsNone() {
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

QTEST_MAIN(retrograd::views::JobTest)
#include "job_test.moc"
