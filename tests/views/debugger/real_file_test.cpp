#include <QDropEvent>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QPushButton>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>
#include <limits>

#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/docks/checks_dock.h"
#include "views/docks/compare_dock.h"
#include "views/docks/findings_dock.h"
#include "views/docks/why_dock.h"
#include "views/models/inspector_model.h"
#include "views/text/format.h"

namespace retrograd::views {

/// The real window over the real engine: an archive from disk, read, derived and run through LibTorch.
class RealFileTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void clickOnBackwardOpSelectsItsForwardOrigin();
  void stepsOverTheBorderAndBack();
  void valuesOfTheSelectedOpShow();
  void theSourceOfTheSampleIsNextToIt();
  void recomputingIsAdoptedAndRuns();
  void walkFindsAFilledNan();
  void gradientsAreCheckedAndRunsCompared();
  void savedParametersCostNothing();
  void valuesAreWritten();
  void plantedNansLeadToTheirRoots();
  void textFileIsRefusedWithoutLosingTheDocument();
  void aSessionOpensAsItWasSaved();
  void aSavedSessionKeepsThePartitionAndTheNotes();
  void aSessionThatCannotBeSavedIsReported();
  void J2_thePanelJobListsRanksCompilesAndGraphs();
  void J13_droppedWeightsAndBatchAreBound();
};

namespace {

QString archive() { return QString::fromStdString(sourcePath("tests/data/models/mlp/model.pt2")); }

/// The first gradient op whose computation op has a forward op.
BoundSymbolId gradientOp(const Analysis& analysis) {
  for (auto op : analysis.backward.ops)
    if (analysis.document->boundSymbol(op).origin.role == Role::gradient &&
        analysis.links.forwardOf(*analysis.document, op))
      return op;
  return {};
}

}  // namespace

void RealFileTest::clickOnBackwardOpSelectsItsForwardOrigin() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(archive()));
  QVERIFY2(f.analysis().derived(), qPrintable(f.window().messages().text()));
  const auto op = gradientOp(f.analysis());
  QVERIFY(op);
  f.click(TraceKind::backward, op);
  QCOMPARE(f.selection().op(), op);
  const auto forward = f.analysis().links.forwardOf(*f.analysis().document, op);
  QCOMPARE(f.selection().relation(forward), Relation::origin);
  for (auto kind : {TraceKind::joint, TraceKind::forward})
    QVERIFY(f.listing(kind).isRowVisible(f.listing(kind).rowOf(forward)));
  f.press(Qt::Key_G);
  QCOMPARE(f.selection().op(), forward);
  f.press(Qt::Key_G);
  QCOMPARE(f.selection().op(), op);
}

void RealFileTest::stepsOverTheBorderAndBack() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(archive()));
  QVERIFY2(f.execution().available, qPrintable(f.execution().unavailableReason));
  const auto border = f.execution().forwardSize;
  QVERIFY(border > 0);
  f.click(TraceKind::forward, f.analysis().forward.ops.back());
  f.press(Qt::Key_F10, Qt::ControlModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, border - 1);
  f.press(Qt::Key_F11);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, border + 1);
  QVERIFY(f.window().positionText().startsWith(QStringLiteral("backward 1/")));
  f.press(Qt::Key_F11, Qt::ControlModifier | Qt::ShiftModifier);
  f.press(Qt::Key_F11, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, border - 1);
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::end);
  QCOMPARE(f.execution().position, f.execution().size);
}

void RealFileTest::valuesOfTheSelectedOpShow() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(archive()));
  std::shared_ptr<const ValueReport> report;
  QObject::connect(&f.controller().questions(), &Questions::valuesReady, &f.window(),
                   [&](const std::shared_ptr<const ValueReport>& r) { report = r; });
  const auto op = f.analysis().forward.ops[1];
  f.click(TraceKind::forward, op);
  QVERIFY(QTest::qWaitFor([&] { return report && report->op == op && report->detail; }, 10000));
  QVERIFY(report->detail->contents.data);  // wherever execution is
  QCOMPARE(report->position, std::size_t(0));
  f.press(Qt::Key_F11);
  f.press(Qt::Key_F11);
  QVERIFY(
      QTest::qWaitFor([&] { return report->position == 2 && report->detail && report->detail->contents.data; }, 10000));
  const auto& detail = *report->detail;
  QCOMPARE(detail.statistics.elements, detail.contents.meta.elements());
  std::int64_t counted = 0;
  for (auto count : detail.histogram) counted += count;
  QCOMPARE(counted, detail.statistics.elements - detail.statistics.nan - detail.statistics.inf);
}

void RealFileTest::theSourceOfTheSampleIsNextToIt() {
  WindowFixture f(liveEngine());
  const auto model = QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2"));
  QVERIFY(f.open(model));
  f.window().findChild<QAction*>(QStringLiteral("action-source"))->trigger();
  const auto* path = f.window().findChild<QLabel*>(QStringLiteral("source-path"));
  const auto* notice = f.window().findChild<QLabel*>(QStringLiteral("source-notice"));
  f.selection().select(f.analysis().backward.ops.front());
  QTRY_COMPARE(path->text(), QStringLiteral("tiny_gpt.py"));  // next to the model
  QVERIFY2(path->toolTip().contains(QStringLiteral("resources/samples/tiny_gpt.py")), qPrintable(path->toolTip()));
  QTRY_VERIFY2(!notice->isVisible(), qPrintable(notice->text()));  // the line is as it was at export
  f.picture(QStringLiteral("source-sample"));
}

void RealFileTest::recomputingIsAdoptedAndRuns() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(archive()));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  const auto before = f.controller().document();
  WhySaved chosen;
  for (std::size_t i = 0; i < before->analysis->backward.savedCount; ++i) {
    const auto why = whySaved(*before->analysis, before->analysis->backward.inputs[i]);
    if (why.maker && why.storageBytes > 0 && why.recompute.impossible.empty()) chosen = why;
  }
  QVERIFY(chosen.maker);
  f.selection().select(chosen.maker, chosen.value);
  f.window().actions().recompute->trigger();
  QVERIFY(QTest::qWaitFor([&] { return !f.window().panel<WhyDock>().verdict().isEmpty(); }, 30000));
  QVERIFY2(f.window().panel<WhyDock>().verdict().contains(QStringLiteral("measured")),
           qPrintable(f.window().panel<WhyDock>().verdict()));
  f.picture(QStringLiteral("what-if-asked"));
  QTest::mouseClick(f.window().findChild<QPushButton*>(QStringLiteral("what-if-adopt")), Qt::LeftButton);
  QVERIFY(QTest::qWaitFor([&] { return f.controller().document() != before && !f.controller().opening(); }, 30000));
  QVERIFY(before->saved.contains(chosen.value));
  QVERIFY(!f.analysis().request.partition.recompute.empty());
  QCOMPARE(f.analysis().inputSource, before->analysis->inputSource);
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::end);
  f.picture(QStringLiteral("what-if-adopted"));
  // Back again: what is recomputed now can be saved.
  BoundSymbolId again;
  for (auto op : f.analysis().backward.ops)
    if (f.analysis().document->boundSymbol(op).recomputed) again = op;
  QVERIFY(again);
  f.selection().select(again);
  QVERIFY(f.window().actions().save->isEnabled());
  f.window().actions().save->trigger();
  QVERIFY(QTest::qWaitFor([&] { return !f.window().panel<WhyDock>().verdict().isEmpty(); }, 30000));
}

void RealFileTest::walkFindsAFilledNan() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(archive()));
  f.window().actions().checkRun->trigger();
  QVERIFY(QTest::qWaitFor([&] { return f.window().panel<FindingsDock>().summary().contains(QStringLiteral("finite")); },
                          30000));
  const auto op = f.analysis().forward.ops[1];
  f.click(TraceKind::forward, op);
  f.press(Qt::Key_F11);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  const auto value = f.analysis().document->outputs(op)[0];
  f.controller().questions().fillValue(value, std::numeric_limits<double>::quiet_NaN());
  f.selection().select(op, value);
  QVERIFY(QTest::qWaitFor([&] { return f.window().actions().walkToRoot->isEnabled(); }, 30000));
  f.window().actions().walkToRoot->trigger();
  auto* model = f.window().findChild<QTreeView*>(QStringLiteral("findings"))->model();
  QVERIFY(QTest::qWaitFor([&] { return model->rowCount() == 2; }, 30000));
  QCOMPARE(model->index(0, 0).data(opRole).toInt(), op.index);
}

void RealFileTest::gradientsAreCheckedAndRunsCompared() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(archive()));
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  f.window().actions().checkGradient->trigger();
  QVERIFY(QTest::qWaitFor([&] { return f.window().panel<ChecksDock>().summary().contains(QStringLiteral("is right")); },
                          60000));
  f.picture(QStringLiteral("checks"));
  const auto linear = f.analysis().computation().trace.ops[0];
  f.selection().select(linear, f.analysis().document->operands(linear)[1]);
  f.window().actions().terms->trigger();
  QVERIFY(QTest::qWaitFor(
      [&] { return f.window().panel<ChecksDock>().summary().contains(QStringLiteral("the sum of")); }, 60000));
  const auto weight = f.analysis().document->operands(linear)[1];
  QVERIFY(besideOf(f.analysis(), weight).valid());
  QCOMPARE(besideOf(f.analysis(), besideOf(f.analysis(), weight)), weight);
  f.window().actions().compare->trigger();
  QVERIFY(QTest::qWaitFor(
      [&] { return f.window().panel<CompareDock>().summary().contains(QStringLiteral("agree in")); }, 60000));
  f.window().findChild<QLineEdit*>(QStringLiteral("compare-tolerance"))->setText(QStringLiteral("1e-12"));
  f.window().actions().compare->trigger();
  QVERIFY(QTest::qWaitFor(
      [&] { return f.window().panel<CompareDock>().summary().contains(QStringLiteral("diverge at")); }, 60000));
  f.picture(QStringLiteral("compare"));
}

void RealFileTest::savedParametersCostNothing() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(archive()));
  const auto& document = *f.analysis().document;
  const auto& saved = f.controller().document()->saved;
  BoundSymbolId reader;
  for (auto op : f.analysis().backward.ops)
    for (auto operand : document.operands(op))
      if (saved.contains(operand) && document.storage(operand).external) reader = op;
  QVERIFY(reader);
  std::int64_t bytes = 0;  // what is saved for this op alone
  for (auto operand : document.operands(reader))
    if (const auto& storage = document.storage(operand); saved.contains(operand) && !storage.external)
      bytes += storage.bytes;
  InspectorModel model;
  model.show(f.controller().document(), reader);
  bool found = false;
  for (int row = 0; row < model.rowCount(); ++row) {
    const auto section = model.index(row, 0);
    if (section.data().toString() != QStringLiteral("Reads saved")) continue;
    for (int i = 0; i < model.rowCount(section); ++i)
      found = found || model.index(i, 1, section).data().toString().startsWith(QStringLiteral("there anyway: "));
    QCOMPARE(section.siblingAtColumn(1).data().toString(), bytesText(bytes));
  }
  QVERIFY(found);
}

void RealFileTest::valuesAreWritten() {
  QTemporaryDir folder;
  WindowFixture f(liveEngine());
  QVERIFY(f.open(archive()));
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  const auto linear = f.analysis().computation().trace.ops[0];
  const auto weight = f.analysis().document->operands(linear)[1];
  QString problem = QStringLiteral("none yet");
  const auto done = [&](const QString& text) { problem = text; };
  for (const char* name : {"weight.npy", "weight.safetensors"}) {
    problem = QStringLiteral("none yet");
    f.controller().questions().saveValue(weight, folder.filePath(QLatin1String(name)), done);
    QVERIFY(QTest::qWaitFor([&] { return problem.isEmpty(); }, 10000));
    QVERIFY(QFile(folder.filePath(QLatin1String(name))).size() >= f.analysis().document->meta(weight).bytes());
  }
  f.controller().questions().saveValue(weight, QStringLiteral("/no/such/folder/weight.npy"), done);
  QVERIFY(QTest::qWaitFor([&] { return !problem.isEmpty(); }, 10000));
}

void RealFileTest::plantedNansLeadToTheirRoots() {
  WindowFixture f(liveEngine());
  for (const char* file : {"log_of_zero", "zero_over_zero", "half_overflow"}) {
    QVERIFY(f.open(QString::fromStdString(sourcePath("tests/data/planted/%1.txt")).arg(QLatin1String(file))));
    f.window().actions().checkRun->trigger();
    auto* model = f.window().findChild<QTreeView*>(QStringLiteral("findings"))->model();
    QVERIFY(QTest::qWaitFor([&] { return model->rowCount() == 2; }, 30000));
    const auto& document = *f.analysis().document;
    const BoundSymbolId root(model->index(0, 0).data(opRole).toInt());
    const auto forward = OriginLinks::origin(document, root);
    QCOMPARE(document.displayName(document.outputs(forward)[0]), std::string("planted"));
    f.picture(QStringLiteral("planted-") + QLatin1String(file));
  }
}

void RealFileTest::textFileIsRefusedWithoutLosingTheDocument() {
  QTemporaryDir folder;
  const auto path = folder.filePath(QStringLiteral("notes.pt2"));
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write("def forward(x): return x\n");
  file.close();
  WindowFixture f(liveEngine());
  QVERIFY(f.open(archive()));
  const auto before = f.controller().document();
  f.open(path);
  QCOMPARE(f.controller().document(), before);
  QVERIFY(f.window().messages().isVisible());
  QVERIFY(f.window().messages().text().contains(QStringLiteral("notes.pt2")));
}

void RealFileTest::aSessionOpensAsItWasSaved() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(QString::fromStdString(sourcePath("tests/data/sessions/mlp_format1.retrograd"))));
  QVERIFY2(f.analysis().derived(), qPrintable(f.window().messages().text()));
  QVERIFY(!f.analysis().sessionPath.empty());
  QVERIFY(f.analysis().marks.contains("breakpoints"));
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, f.execution().size);
}

// Holds J10, J13: weights and a batch that are dropped on an open trace are bound by name, of a log as of an archive.
void RealFileTest::J13_droppedWeightsAndBatchAreBound() {
  const auto job = QString::fromStdString(sourcePath("../shared/cases/jobs/gpt"));
  if (!QFileInfo::exists(job)) QSKIP("no samples of jobs");
  WindowFixture f(liveEngine());
  QVERIFY(f.open(job + QStringLiteral("/trace")));
  const auto drop = [&](const QString& name, const QString& second = {}) {
    QMimeData data;
    QList<QUrl> urls{QUrl::fromLocalFile(job + name)};
    if (!second.isEmpty()) urls << QUrl::fromLocalFile(job + second);
    data.setUrls(urls);
    QDragEnterEvent enter({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&f.window(), &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent event({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&f.window(), &event);
  };
  const auto& controller = *f.window().context().controller;
  drop(QStringLiteral("/model.safetensors"));
  QTRY_VERIFY(!controller.document()->request.data.weights.empty());
  drop(QStringLiteral("/batch.safetensors"));
  QTRY_VERIFY(!controller.document()->request.data.batch.empty());
  const auto& data = controller.document()->request.data;
  QVERIFY(QString::fromStdString(data.weights).endsWith(QStringLiteral("model.safetensors")));
  const auto& problems = controller.document()->analysis->problems;
  QVERIFY(std::any_of(problems.begin(), problems.end(),
                      [](const Problem& p) { return p.message.find("weights taken from it") != std::string::npos; }));
  f.picture(QStringLiteral("dropped"));
  // Both at once, and a batch while the weights are still being read.
  const auto hasBoth = [&] {
    const auto& now = controller.document()->request.data;
    return now.weights.ends_with("/model.safetensors") && now.batch.ends_with("/batch.safetensors");
  };
  for (const bool together : {true, false}) {
    QVERIFY(f.open(job + QStringLiteral("/trace")));
    QVERIFY(!hasBoth());
    if (together) {
      drop(QStringLiteral("/model.safetensors"), QStringLiteral("/batch.safetensors"));
    } else {
      QObject waits;
      int drops = 0;
      connect(&controller, &DocumentController::openingChanged, &waits, [&] {
        if (controller.opening() && drops++ == 0) drop(QStringLiteral("/batch.safetensors"));
      });
      drop(QStringLiteral("/model.safetensors"));
      QTRY_COMPARE(drops, 2);
    }
    QTRY_VERIFY_WITH_TIMEOUT(hasBoth() && !controller.opening(), 30000);
  }
}

// Holds J2, J3: the log that is open is a tree of ranks, compiles, attempts and graphs.
namespace {

/// Gives the command, and chooses the path in its dialog.
void saveSessionAs(WindowFixture& f, const QString& path, bool withWeights) {
  f.window().findChild<QAction*>(QStringLiteral("action-save-session"))->trigger();
  auto* dialog = f.window().findChild<QFileDialog*>(QStringLiteral("session-path"));
  QVERIFY(dialog);
  dialog->selectNameFilter(dialog->nameFilters().at(withWeights ? 1 : 0));
  Q_EMIT dialog->fileSelected(path);
  dialog->close();
}

}  // namespace

void RealFileTest::aSavedSessionKeepsThePartitionAndTheNotes() {
  const QTemporaryDir folder;
  const auto model = folder.filePath(QStringLiteral("model.pt2")),
             session = folder.filePath(QStringLiteral("mine.retrograd"));
  QVERIFY(QFile::copy(archive(), model));
  std::size_t saved = 0;
  {
    WindowFixture f(liveEngine());
    auto* save = f.window().findChild<QAction*>(QStringLiteral("action-save-session"));
    QVERIFY(!save->isEnabled());
    QVERIFY(f.open(model));
    QVERIFY(save->isEnabled());
    PartitionOptions all;
    all.recompute = {"all"};
    auto request = f.controller().document()->request;
    request.partition = all;
    f.controller().reopen(request);
    QVERIFY(f.quiet());
    QCOMPARE(f.analysis().request.partition.recompute, all.recompute);
    saved = f.analysis().backward.savedCount;
    f.window().context().notes->edit(f.analysis().backward.ops[0], {}, [](Note& note) { note.comment = "look here"; });
    saveSessionAs(f, session, true);
    QVERIFY(QTest::qWaitFor(
        [&] { return f.window().statusBar()->currentMessage().contains(QStringLiteral("mine.retrograd")); }, 20000));
  }
  QVERIFY(QFile::remove(model));  // its weights are inside
  WindowFixture f(liveEngine());
  QVERIFY(f.open(session));
  QCOMPARE(f.analysis().backward.savedCount, saved);
  QCOMPARE(f.analysis().request.partition.recompute, std::vector<std::string>{"all"});
  QVERIFY(f.controller().document()->noRunReason.isEmpty());
  const auto& notes = *f.window().context().notes;
  QTRY_VERIFY(notes.at(f.analysis().backward.ops[0]));
  QCOMPARE(notes.at(f.analysis().backward.ops[0])->comment, std::string("look here"));
}

void RealFileTest::aSessionThatCannotBeSavedIsReported() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(archive()));
  const auto refused = [&](const QString& path, const char* why) {
    saveSessionAs(f, path, false);
    QVERIFY2(QTest::qWaitFor([&] { return f.window().messages().text().contains(QLatin1String(why)); }, 20000),
             qPrintable(f.window().messages().text()));
  };
  const auto before = QFileInfo(archive()).size();
  refused(archive(), "is open here");
  QCOMPARE(QFileInfo(archive()).size(), before);
  refused(QStringLiteral("/proc/no-such-folder/mine.retrograd"), "/proc/no-such-folder");
}

void RealFileTest::J2_thePanelJobListsRanksCompilesAndGraphs() {
  const auto log = QString::fromStdString(sourcePath("../shared/cases/jobs/ranks/trace"));
  if (!QFileInfo::exists(log)) QSKIP("no samples of jobs");
  WindowFixture f(liveEngine());
  QVERIFY(f.open(log));
  f.raise("dock-job");
  auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("job"));
  const auto& model = *tree->model();
  QTRY_COMPARE(model.rowCount(), 2);
  QCOMPARE(model.index(0, 0).data().toString(), QStringLiteral("rank 0"));
  QCOMPARE(model.index(1, 0).data().toString(), QStringLiteral("rank 1"));
  QCOMPARE(model.index(0, 0, model.index(0, 0)).data().toString(), QStringLiteral("0/0"));
  for (int rank = 0; rank < 2; ++rank) {
    const auto below = [&](const QString& text) {
      return model.match(model.index(0, 0, model.index(rank, 0)), Qt::DisplayRole, text, -1,
                         Qt::MatchExactly | Qt::MatchRecursive);
    };
    for (const auto* kind : {"joint", "forward", "backward"}) {
      const auto found = below(QLatin1String(kind));
      QVERIFY2(!found.isEmpty(), kind);
      for (const auto& row : found) QVERIFY(row.siblingAtColumn(1).data().toInt() > 0);
    }
    const auto breaks = below(QStringLiteral("graph break"));
    QVERIFY(!breaks.isEmpty());
    QVERIFY(!breaks[0].siblingAtColumn(2).data().toString().isEmpty());
  }
  tree->expandRecursively(model.index(0, 0));
  f.picture(QStringLiteral("job"));
  const auto graphs = model.match(model.index(0, 0, model.index(1, 0)), Qt::DisplayRole, QStringLiteral("backward"), 1,
                                  Qt::MatchExactly | Qt::MatchRecursive);
  tree->setCurrentIndex(graphs[0]);
  tree->setFocus();
  QTest::keyClick(tree, Qt::Key_Return);
  QTRY_VERIFY(f.window().context().controller->document()->request.data.rank == 1);
  QVERIFY(!f.window().context().controller->document()->request.data.compile.empty());
  QVERIFY(f.open(archive()));
  f.raise("dock-job");  // the layout of a model has it elsewhere (W41)
  QTRY_COMPARE(model.rowCount(), 0);
  auto* hint = f.window().findChild<QLabel*>(QStringLiteral("job-empty"));
  QTRY_COMPARE(hint->text(), QStringLiteral("The open file is not a log of torch.compile"));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::RealFileTest)
#include "real_file_test.moc"
