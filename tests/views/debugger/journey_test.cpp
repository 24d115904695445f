#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QFileDialog>
#include <QLineEdit>
#include <QListView>
#include <QPlainTextEdit>
#include <QTest>

#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/user.h"
#include "views/dialogs/export_dialog.h"
#include "views/window/diff_window.h"

/// A step of a journey; what comes after one that failed says nothing.
#define SEES(step)                          \
  do {                                      \
    step;                                   \
    if (QTest::currentTestFailed()) return; \
  } while (false)

namespace retrograd::views {

/// The journeys that the program is made for, on a real model, by the mouse and by the keyboard alone: from opening a
/// file to taking a trace along. What counts is what the window shows.
class JourneyTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void byMouse();
  void byKeyboard();

 private:
  // What is to be seen, by whichever way one came.
  void seesTheFile(User& user);
  void seesTheOriginOf(User& user, const QString& backwardLine, TraceKind forward);
  void seesWhoNeeds(User& user, const QString& value);
  void seesTheChoice(User& user);
  void seesBothTraces(User& user, QWidget& window);
  void seesRecomputation(User& user);
  void seesTheRun(User& user, TraceKind at);
  void seesTheExport(User& user);

  QString exported() const { return folder_->filePath(QStringLiteral("tiny_gpt.txt")); }

  std::unique_ptr<QTemporaryDir> folder_;
  qint64 savedBefore_ = 0;
};

namespace {

const QString sample = QStringLiteral("tiny_gpt.pt2");

QString samplesFolder() { return QString::fromStdString(sourcePath("resources/samples")); }

/// "linear_8" of a line that ends in "forward: linear_8".
QString originIn(const QString& line) {
  return line.section(QStringLiteral("forward: "), 1, 1)
      .section(QLatin1Char(' '), 0, 0)
      .section(QLatin1Char(','), 0, 0);
}

/// What the op of a line makes.
QString madeIn(const QString& line) { return line.section(QStringLiteral(" = "), 0, 0).trimmed(); }

/// "saves 154.5 KiB" in a title, in bytes.
qint64 savedIn(const QString& title) {
  const auto words = title.section(QStringLiteral("saves "), 1, 1).split(QLatin1Char(' '));
  if (words.size() < 2) return -1;
  return static_cast<qint64>(words[0].toDouble() * (words[1] == QStringLiteral("KiB")   ? 1024
                                                    : words[1] == QStringLiteral("MiB") ? 1 << 20
                                                                                        : 1));
}

}  // namespace

void JourneyTest::init() {
  folder_ = std::make_unique<QTemporaryDir>();
  QDir::setCurrent(samplesFolder());  // where the dialog begins
}

void JourneyTest::seesTheFile(User& user) {
  QTRY_VERIFY_WITH_TIMEOUT(user.title(TraceKind::forward).contains(QStringLiteral("saves")), 60000);
  QVERIFY(user.front()->windowTitle().contains(sample));
  for (auto kind : {TraceKind::joint, TraceKind::forward, TraceKind::backward})
    QVERIFY(user.title(kind).contains(QStringLiteral(" ops")));
  QTRY_VERIFY(user.label(QStringLiteral("position")).startsWith(QStringLiteral("forward 0/")));
  savedBefore_ = savedIn(user.title(TraceKind::forward));
  QVERIFY(savedBefore_ > 0);
}

void JourneyTest::seesTheOriginOf(User& user, const QString& backwardLine, TraceKind forward) {
  const auto operation = originIn(backwardLine);
  QVERIFY2(!operation.isEmpty(), qPrintable(backwardLine));
  const auto marked = user.lines(forward, {QStringLiteral("origin of the selected op")});
  QVERIFY2(!marked.isEmpty(), "the origin is on the screen, and marked");
  for (const auto& line : marked)
    QVERIFY2(line.contains(QStringLiteral("of: ") + operation) || line.startsWith(operation),
             qPrintable(line + QStringLiteral("  for  ") + backwardLine));
}

void JourneyTest::seesWhoNeeds(User& user, const QString& value) {
  QTRY_VERIFY(!user.rows(QStringLiteral("references")).isEmpty());
  const auto rows = user.rows(QStringLiteral("references"));
  QVERIFY2(rows.first().startsWith(value), qPrintable(rows.first()));
  QVERIFY2(!rows.filter(QStringLiteral("saved for")).isEmpty(), qPrintable(rows.join(QLatin1Char('\n'))));
}

void JourneyTest::seesTheChoice(User& user) {
  QTRY_VERIFY_WITH_TIMEOUT(user.label(QStringLiteral("what-if")).contains(QStringLiteral("is recomputed")), 60000);
  const auto verdict = user.label(QStringLiteral("what-if"));
  for (const auto* word : {"saved: ", "peak: ", "time: ", "ops run again: 0 \u2192 "})
    QVERIFY2(verdict.contains(QString::fromUtf8(word)), qPrintable(verdict));
}

void JourneyTest::seesBothTraces(User& user, QWidget& window) {
  QTRY_VERIFY_WITH_TIMEOUT(user.label(QStringLiteral("diff-summary")).contains(QStringLiteral("the same")), 60000);
  QVERIFY(user.label(QStringLiteral("diff-summary")).contains(QStringLiteral("only on the right")));
  const auto* details = window.findChild<QPlainTextEdit*>(QStringLiteral("diff-details"));
  QVERIFY2(details->toPlainText().contains(QStringLiteral("\u25c0")) ||
               details->toPlainText().contains(QStringLiteral("\u25b6")),
           qPrintable(details->toPlainText()));
}

void JourneyTest::seesRecomputation(User& user) {
  QTRY_VERIFY_WITH_TIMEOUT(
      user.label(QStringLiteral("what-if")).isEmpty() && savedIn(user.title(TraceKind::forward)) != savedBefore_,
      60000);
  QVERIFY(savedIn(user.title(TraceKind::forward)) < savedBefore_);
  QVERIFY(savedIn(user.title(TraceKind::forward)) > 0);
}

/// The arrow is on the side that the tool bar shows, and on no other.
void JourneyTest::seesTheRun(User& user, TraceKind at) {
  const auto word = at == TraceKind::forward ? QStringLiteral("forward ") : QStringLiteral("backward ");
  QTRY_VERIFY2(user.label(QStringLiteral("position")).startsWith(word),
               qPrintable(user.label(QStringLiteral("position"))));
  const auto other = at == TraceKind::forward ? TraceKind::backward : TraceKind::forward;
  QTRY_COMPARE(user.lines(at, {QStringLiteral("runs next")}).size(), 1);
  QVERIFY(user.lines(other, {QStringLiteral("runs next")}).isEmpty());
  QCOMPARE(user.lines(TraceKind::joint, {QStringLiteral("runs next")}).size(), 1);
}

void JourneyTest::seesTheExport(User& user) {
  QTRY_VERIFY_WITH_TIMEOUT(user.status().startsWith(QStringLiteral("Written: ")), 60000);
  QFile file(exported());
  QVERIFY(file.open(QIODevice::ReadOnly));
  const auto page = file.readAll();
  QVERIFY(page.contains("def forward(") && page.contains("aten.gelu_backward"));
}

void JourneyTest::byKeyboard() {
  WindowFixture f(liveEngine());
  User user(f);
  const auto ctrl = Qt::ControlModifier, shift = Qt::ShiftModifier;

  // Open a file.
  user.press(Qt::Key_O, ctrl);
  QTRY_VERIFY(user.front()->inherits("QFileDialog"));
  user.type(samplesFolder() + QLatin1Char('/') + sample);
  user.press(Qt::Key_Return);
  SEES(seesTheFile(user));
  QCOMPARE(user.focus(), QStringLiteral("Forward listing"));

  // From a backward op to its origin, and back.
  user.press(Qt::Key_Tab);
  QCOMPARE(user.focus(), QStringLiteral("Backward listing"));
  QVERIFY(user.pressUntil(Qt::Key_Down, {QStringLiteral(" = aten.mm("), QStringLiteral("forward: linear")}));
  const auto gradient = user.line();
  SEES(seesTheOriginOf(user, gradient, TraceKind::forward));
  SEES(seesTheOriginOf(user, gradient, TraceKind::joint));
  user.press(Qt::Key_G);
  QCOMPARE(user.focus(), QStringLiteral("Forward listing"));
  QVERIFY2(user.line().contains(QStringLiteral("of: ") + originIn(gradient)), qPrintable(user.line()));
  QVERIFY(!user.lines(TraceKind::backward, {QStringLiteral("comes from the selected op")}).isEmpty());
  user.press(Qt::Key_G);
  QCOMPARE(user.line(), gradient);
  user.press(Qt::Key_Left, Qt::AltModifier);
  QCOMPARE(user.focus(), QStringLiteral("Forward listing"));

  // From a saved tensor to its user.
  QVERIFY(user.pressUntil(
      Qt::Key_Up, {QStringLiteral("saved "), QStringLiteral("aten._unsafe_view"), QStringLiteral("of: linear_6")}));
  const auto saved = user.line();
  user.press(Qt::Key_X);
  SEES(seesWhoNeeds(user, madeIn(saved)));
  QVERIFY(user.pressUntil(Qt::Key_BracketRight, {QStringLiteral("aten.gelu_backward"), madeIn(saved)}));
  QCOMPARE(user.focus(), QStringLiteral("Backward listing"));
  QVERIFY(user.pressUntil(Qt::Key_Left, {madeIn(saved) + QStringLiteral(" = ")}, Qt::AltModifier));
  QCOMPARE(user.line().section(QLatin1Char(','), 0, 0), saved.section(QLatin1Char(','), 0, 0));

  // The backward of one module.
  const auto all = user.title(TraceKind::backward);
  user.press(Qt::Key_L, ctrl | shift);
  user.type(QStringLiteral("role:gradient module:blocks.1.narrow"));
  user.press(Qt::Key_Return);
  QTRY_VERIFY(user.title(TraceKind::backward).contains(QStringLiteral(" of ")));
  QTRY_COMPARE(user.focus(), QStringLiteral("Forward listing"));
  QVERIFY(!user.lines(TraceKind::backward, {QStringLiteral("forward: linear_7")}).isEmpty());
  QVERIFY(user.lines(TraceKind::backward, {QStringLiteral("forward: linear_8")}).isEmpty());
  user.press(Qt::Key_K, ctrl | shift);
  QTRY_COMPARE(user.title(TraceKind::backward), all);

  // Before and after recomputation.
  QVERIFY2(user.line().startsWith(madeIn(saved)), qPrintable(user.line()));
  user.press(Qt::Key_R, ctrl | shift);
  SEES(seesTheChoice(user));
  user.press(Qt::Key_C, Qt::AltModifier);
  QTRY_VERIFY(qobject_cast<DiffWindow*>(QApplication::activeWindow()));
  auto* compared = QApplication::activeWindow();
  QTRY_VERIFY_WITH_TIMEOUT(!user.label(QStringLiteral("diff-summary")).isEmpty(), 60000);
  user.press(Qt::Key_F8);
  SEES(seesBothTraces(user, *compared));
  user.press(Qt::Key_W, ctrl);
  QVERIFY(!compared->isVisible());
  user.press(Qt::Key_O, Qt::AltModifier);
  SEES(seesRecomputation(user));
  QVERIFY2(user.focus().endsWith(QStringLiteral("listing")), qPrintable(user.focus()));

  // Over the border and back.
  for (int steps = 0; steps < 300 && !user.label(QStringLiteral("position")).startsWith(QStringLiteral("backward "));
       ++steps) {
    user.press(Qt::Key_F10);
    QVERIFY(f.settle());
  }
  SEES(seesTheRun(user, TraceKind::backward));
  user.press(Qt::Key_F10, ctrl | shift);
  QVERIFY(f.settle());
  SEES(seesTheRun(user, TraceKind::forward));
  user.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QTRY_COMPARE(user.status(), QStringLiteral("At the end of the backward"));
  user.press(Qt::Key_F10, ctrl | shift);
  QVERIFY(f.settle());
  QCOMPARE(user.status(), QString());

  // Taking it along.
  user.press(Qt::Key_X, ctrl | shift);
  QTRY_VERIFY(qobject_cast<ExportDialog*>(user.front()));
  QCOMPARE(user.focus(), QStringLiteral("Format"));
  user.type(QStringLiteral("text"));
  user.press(Qt::Key_I, Qt::AltModifier);
  QCOMPARE(user.focus(), QStringLiteral("File to write"));
  user.press(Qt::Key_A, ctrl);
  user.type(exported());
  user.press(Qt::Key_Return);
  SEES(seesTheExport(user));
}

void JourneyTest::byMouse() {
  WindowFixture f(liveEngine());
  User user(f);
  auto& window = f.window();

  // Open a file.
  SEES(user.clickMenu({QStringLiteral("File"), QStringLiteral("Open...")}));
  auto* dialog = window.findChild<QFileDialog*>();
  QVERIFY(dialog && dialog->isVisible());
  auto* files = dialog->findChild<QListView*>(QStringLiteral("listView"));
  if (!files->isVisible()) user.click(dialog->findChild<QWidget*>(QStringLiteral("listModeButton")));
  const auto file = [&] {
    for (int row = 0; row < files->model()->rowCount(files->rootIndex()); ++row)
      if (const auto index = files->model()->index(row, 0, files->rootIndex()); index.data().toString() == sample)
        return index;
    return QModelIndex();
  };
  QTRY_VERIFY(file().isValid());
  files->scrollTo(file());
  QTRY_VERIFY(files->visualRect(file()).isValid());
  user.click(files->viewport(), files->visualRect(file()).center());
  QTest::mouseDClick(files->viewport(), Qt::LeftButton, Qt::NoModifier, files->visualRect(file()).center());
  SEES(seesTheFile(user));

  // From a backward op to its origin, and back.
  QVERIFY(user.clickLine(TraceKind::backward, {QStringLiteral(" = aten.mm("), QStringLiteral("forward: linear")}));
  const auto gradient = user.line();
  SEES(seesTheOriginOf(user, gradient, TraceKind::forward));
  SEES(seesTheOriginOf(user, gradient, TraceKind::joint));
  SEES(user.clickTool(QStringLiteral("Origin and Back")));
  QCOMPARE(user.focus(), QStringLiteral("Forward listing"));
  QVERIFY2(user.line().contains(QStringLiteral("of: ") + originIn(gradient)), qPrintable(user.line()));
  SEES(user.clickTool(QStringLiteral("Origin and Back")));
  QCOMPARE(user.line(), gradient);

  // From a saved tensor to its user.
  QVERIFY(
      user.clickLine(TraceKind::forward,
                     {QStringLiteral("saved "), QStringLiteral("aten._unsafe_view"), QStringLiteral("of: linear_6")},
                     QStringLiteral("linear_6")));
  const auto saved = user.line();
  SEES(user.clickMenu({QStringLiteral("Go"), QStringLiteral("References")}));
  SEES(seesWhoNeeds(user, madeIn(saved)));
  SEES(user.doubleClickRow(*window.findChild<QTreeView*>(QStringLiteral("references")), QStringLiteral("saved for")));
  QCOMPARE(user.focus(), QStringLiteral("Backward listing"));
  QVERIFY2(user.line().contains(QStringLiteral("aten.gelu_backward")) && user.line().contains(madeIn(saved)),
           qPrintable(user.line()));

  // The backward of one module.
  const auto all = user.title(TraceKind::backward);
  SEES(user.clickMenu({QStringLiteral("View"), QStringLiteral("Filter"), QStringLiteral("Only Its Module")}));
  QTRY_VERIFY(user.title(TraceKind::backward).contains(QStringLiteral(" of ")));
  QVERIFY(user.lines(TraceKind::backward, {QStringLiteral("forward: linear_8")}).isEmpty());
  SEES(user.clickMenu({QStringLiteral("View"), QStringLiteral("Filter"), QStringLiteral("Clear")}));
  QTRY_COMPARE(user.title(TraceKind::backward), all);

  // Before and after recomputation.
  QVERIFY(user.clickLine(TraceKind::forward, {madeIn(saved) + QStringLiteral(" = ")}));
  QTRY_VERIFY_WITH_TIMEOUT(user.label(QStringLiteral("why-sentence")).contains(QStringLiteral("is saved, ")), 60000);
  SEES(user.clickButton(window, QStringLiteral("Recompute It")));
  SEES(seesTheChoice(user));
  SEES(user.clickButton(window, QStringLiteral("Compare Traces")));
  auto* compared = window.findChild<DiffWindow*>();
  QVERIFY(compared->isVisible());
  QTRY_VERIFY_WITH_TIMEOUT(!user.label(QStringLiteral("diff-summary")).isEmpty(), 60000);
  SEES(user.clickButton(*compared, QStringLiteral("Next \u2193")));
  SEES(seesBothTraces(user, *compared));
  compared->close();  // by the frame of the window manager
  SEES(user.clickButton(window, QStringLiteral("Adopt")));
  SEES(seesRecomputation(user));

  // Over the border and back.
  for (int steps = 0; steps < 300 && !user.label(QStringLiteral("position")).startsWith(QStringLiteral("backward "));
       ++steps) {
    SEES(user.clickTool(QStringLiteral("Step Over (F10")));
    QVERIFY(f.settle());
  }
  SEES(seesTheRun(user, TraceKind::backward));
  SEES(user.clickTool(QStringLiteral("Step Back")));
  QVERIFY(f.settle());
  SEES(seesTheRun(user, TraceKind::forward));

  // Taking it along.
  window.shared().settings->setValue(QStringLiteral("export/folder"), folder_->path());  // where the last export went
  SEES(user.clickMenu({QStringLiteral("File"), QStringLiteral("Export...")}));
  auto* exporting = window.findChild<ExportDialog*>();
  QVERIFY(exporting->isVisible());
  SEES(user.choose(exporting->findChild<QComboBox*>(QStringLiteral("export-format")), QStringLiteral("TEXT")));
  SEES(user.clickButton(*exporting, QStringLiteral("Export")));
  SEES(seesTheExport(user));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::JourneyTest)
#include "journey_test.moc"
