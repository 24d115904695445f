#include <QAbstractItemModelTester>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QLabel>
#include <QPushButton>
#include <QTableWidget>
#include <QTest>
#include <QTreeView>

#include "core/trace/source.h"
#include "tests/views/menus.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/dialogs/source_dialog.h"
#include "views/docks/source_dock.h"
#include "views/models/source_model.h"
#include "views/settings/editor.h"

namespace retrograd::views {

/// The Python source behind an op: found, shown, walked, opened in an editor.
class SourceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { folder_ = std::make_unique<QTemporaryDir>(); }
  void namesLeadToPaths();
  void aChosenFileMakesAMapping();
  void editorsAreGivenWords();
  void filesAreReadWithCare();
  void modelsHoldTogether();
  void theStackAndItsLine();
  void linesLeadToOps();
  void aMissingFileIsFound();
  void anotherVersionIsNoticed();
  void theEditorIsStarted();
  void settingsAreEdited();
  void commandsSayWhyNot();
  void aLineIsCopied();
  void aLineWithoutAnOpSaysSo();

 private:
  QString at(const QString& name) const { return folder_->filePath(name); }
  QString model() const { return at(QStringLiteral("synthetic3.pt2")); }
  void write(const QString& name, const QByteArray& content) {
    QDir().mkpath(QFileInfo(at(name)).absolutePath());
    QFile file(at(name));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
  }
  /// The two files that the synthetic model names, as its stacks say they are.
  void writeSources(const QString& folder = {}) {
    QByteArray model;
    for (int line = 1; line <= 40; ++line)
      model += line >= 31 && line <= 33 ? "        x = relu(self.linear(x))\n" : "# line\n";
    write(folder + QStringLiteral("model.py"), model);
    write(folder + QStringLiteral("train.py"),
          QByteArray(11 * 2, '#').replace("##", "#\n") + "    return self.layers(x)\n");
  }

  std::unique_ptr<QTemporaryDir> folder_;
};

namespace {

QTreeView& stack(WindowFixture& f) { return *f.window().findChild<QTreeView*>(QStringLiteral("source-stack")); }
QTreeView& text(WindowFixture& f) { return *f.window().findChild<QTreeView*>(QStringLiteral("source-text")); }
QLabel& notice(WindowFixture& f) { return *f.window().findChild<QLabel*>(QStringLiteral("source-notice")); }
QLabel& path(WindowFixture& f) { return *f.window().findChild<QLabel*>(QStringLiteral("source-path")); }
SourceLinesModel& lines(WindowFixture& f) { return *static_cast<SourceLinesModel*>(text(f).model()); }
QAction& command(WindowFixture& f, const char* name) {
  return *f.window().findChild<QAction*>(QStringLiteral("action-") + QLatin1String(name));
}
QString message(WindowFixture& f) {
  return f.window().messages().isVisible() ? f.window().messages().text() : QString();
}

}  // namespace

void SourceTest::namesLeadToPaths() {
  SourcePaths paths({{QStringLiteral("/users/ann"), QStringLiteral("/src")},
                     {QStringLiteral("/users/ann/lib"), QStringLiteral("/lib")}});
  const auto found = paths.candidates(QStringLiteral("/users/ann/lib/a/m.py"), QStringLiteral("/models"));
  QCOMPARE(found, (QStringList{QStringLiteral("/lib/a/m.py"), QStringLiteral("/src/lib/a/m.py"),
                               QStringLiteral("/users/ann/lib/a/m.py"), QStringLiteral("/models/users/ann/lib/a/m.py"),
                               QStringLiteral("/models/ann/lib/a/m.py"), QStringLiteral("/models/lib/a/m.py"),
                               QStringLiteral("/models/a/m.py"), QStringLiteral("/models/m.py")}));
  QCOMPARE(paths.candidates(QStringLiteral("/users/anna/m.py"), {}),
           QStringList{QStringLiteral("/users/anna/m.py")});              // whole folders only
  QCOMPARE(paths.candidates(QStringLiteral("m.py"), {}), QStringList());  // next to no model
  QCOMPARE(paths.candidates(QStringLiteral("../../etc/m.py"), QStringLiteral("/models")),
           (QStringList{QStringLiteral("/models/etc/m.py"), QStringLiteral("/models/m.py")}));
  QCOMPARE(paths.candidates(QStringLiteral("C:\\work\\m.py"), QStringLiteral("/models")).last(),
           QStringLiteral("/models/m.py"));
  QCOMPARE(paths.candidates(QStringLiteral("<eval_with_key>.3>"), QStringLiteral("/models")), QStringList());
}

void SourceTest::aChosenFileMakesAMapping() {
  const auto check = [](const char* file, const char* chosen, const char* from, const char* to) {
    const PathMapping mapping = mappingFor(QLatin1String(file), QLatin1String(chosen));
    QCOMPARE(mapping.from, QLatin1String(from));
    QCOMPARE(mapping.to, QLatin1String(to));
    QCOMPARE(SourcePaths({mapping}).candidates(QLatin1String(file), {}).first(), QLatin1String(chosen));
  };
  check("/users/ann/proj/pkg/m.py", "/src/proj/pkg/m.py", "/users/ann", "/src");
  check("/a/m.py", "/b/other.py", "/a/m.py", "/b/other.py");
  check("m.py", "/b/m.py", "m.py", "/b/m.py");
  check("pkg/m.py", "/b/pkg/m.py", "pkg", "/b/pkg");
  check("/xpkg/m.py", "/b/ypkg/m.py", "/xpkg", "/b/ypkg");
}

void SourceTest::editorsAreGivenWords() {
  const auto path = QStringLiteral("/a b/$(rm x);%l \"m.py");
  QCOMPARE(editorArguments(QStringLiteral("code -g %f:%l"), path, 7),
           (QStringList{QStringLiteral("code"), QStringLiteral("-g"), path + QStringLiteral(":7")}));
  QCOMPARE(editorArguments(QStringLiteral("\"/opt/my editor\" +%l"), path, -3),
           (QStringList{QStringLiteral("/opt/my editor"), QStringLiteral("+1"), path}));
  QCOMPARE(editorArguments(QStringLiteral("%f 100%%"), path, 1),
           (QStringList{QStringLiteral("%f"), QStringLiteral("100%"), path}));  // a model names no program
  QVERIFY(editorArguments({}, path, 1).isEmpty());
}

void SourceTest::filesAreReadWithCare() {
  write(QStringLiteral("a.py"), "one\r\n\ttwo\nx\ty");
  write(QStringLiteral("big.py"), QByteArray(100, 'x'));
  write(QStringLiteral("binary.py"), QByteArray("a\0b", 3));
  write(QStringLiteral("empty.py"), {});
  const auto read = readSource({at(QStringLiteral("none.py")), folder_->path(), at(QStringLiteral("a.py"))});
  QCOMPARE(read.path, at(QStringLiteral("a.py")));
  QCOMPARE(read.lines,
           (QStringList{QStringLiteral("one"), QStringLiteral("        two"), QStringLiteral("x       y")}));
  QVERIFY(readSource({at(QStringLiteral("big.py"))}, 99).problem.contains(QStringLiteral("larger")));
  QVERIFY(readSource({at(QStringLiteral("big.py"))}, 100).problem.isEmpty());
  QVERIFY(readSource({at(QStringLiteral("binary.py"))}).problem.contains(QStringLiteral("binary file")));
  QVERIFY(readSource({at(QStringLiteral("empty.py"))}).problem.contains(QStringLiteral("empty")));
  QVERIFY(readSource({QStringLiteral("/dev/zero")}).path.isEmpty());
}

void SourceTest::modelsHoldTogether() {
  FramesModel frames;
  QAbstractItemModelTester framesTester(&frames, QAbstractItemModelTester::FailureReportingMode::QtTest);
  frames.set({{"train.py", 12, "main", "step()"},
              {"model.py", 31, "forward", "self.linear(x)"},
              {"/usr/lib/python3-packages/torch/nn/modules/linear.py", 125, "forward", "F.linear()"}});
  QCOMPARE(frames.rowCount(), 3);
  QCOMPARE(frames.shownRow(), 1);
  QCOMPARE(frames.index(0, FramesModel::place).data().toString(), QStringLiteral("linear.py:125"));
  QVERIFY(frames.index(0, 0).data(Qt::FontRole).value<QFont>().italic() &&
          !frames.index(1, 0).data(Qt::FontRole).isValid());
  frames.set({});
  QCOMPARE(frames.shownRow(), -1);
  SourceLinesModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  model.set({QStringLiteral("a"), QStringLiteral("bcd")}, {{2, {BoundSymbolId(4), BoundSymbolId(5)}}});
  model.setCurrent(2);
  QCOMPARE(model.width(), 3);
  QCOMPARE(model.index(1, SourceLinesModel::ops).data().toString(), QStringLiteral("2"));
  QVERIFY(model.index(1, 0).data(SourceLinesModel::currentRole).toBool() &&
          !model.index(0, 0).data(SourceLinesModel::currentRole).toBool());
  QVERIFY(model.opsAt(0).empty());
  model.setCurrent(7);
  QCOMPARE(model.currentRow(), -1);
}

void SourceTest::theStackAndItsLine() {
  writeSources();
  WindowFixture f;
  QVERIFY(f.open(model()));
  QVERIFY(f.quiet());
  f.selection().select({});
  f.press(Qt::Key_U, Qt::ControlModifier);
  QVERIFY(stack(f).isVisible());
  QVERIFY2(notice(f).isVisible() && notice(f).text().contains(QStringLiteral("Select an op")),
           qPrintable(notice(f).text()));
  f.picture(QStringLiteral("source-empty"));
  f.click(TraceKind::forward, f.analysis().forward.ops[4]);
  QTRY_COMPARE(lines(f).currentRow(), 31);
  QCOMPARE(path(f).text(), QStringLiteral("model.py"));  // next to the model
  QVERIFY(!notice(f).isVisible() && text(f).isVisible());
  QCOMPARE(stack(f).model()->rowCount(), 2);
  QCOMPARE(stack(f).currentIndex().row(), 0);
  QVERIFY(text(f).viewport()->rect().intersects(text(f).visualRect(lines(f).index(31, 0))));
  f.picture(QStringLiteral("source"));
  f.theme().choose(Theme::Choice::dark);
  f.picture(QStringLiteral("source-dark"));
  f.theme().choose(Theme::Choice::light);
  // A frame further out, and an op of the backward, which has the stack of what it comes from.
  stack(f).setFocus();
  f.press(Qt::Key_Down);
  QTRY_COMPARE(path(f).text(), QStringLiteral("train.py"));
  QTRY_COMPARE(lines(f).currentRow(), 11);
  f.selection().select(f.analysis().backward.ops.front());
  QTRY_COMPARE(lines(f).currentRow(), 32);
}

void SourceTest::linesLeadToOps() {
  writeSources();
  WindowFixture f;
  QVERIFY(f.open(model()));
  f.press(Qt::Key_U, Qt::ControlModifier);
  f.selection().select(f.analysis().forward.ops[0]);
  QTRY_COMPARE(lines(f).currentRow(), 30);
  QCOMPARE(lines(f).index(31, SourceLinesModel::ops).data().toString(), QStringLiteral("2"));
  QCOMPARE(lines(f).index(5, SourceLinesModel::ops).data().toString(), QString());
  text(f).setFocus();
  QCOMPARE(text(f).currentIndex().row(), 30);
  const auto& computation = f.analysis().file.computation.trace.ops;
  const auto& tables = *f.analysis().document;
  f.press(Qt::Key_Down);
  f.press(Qt::Key_Return);
  QCOMPARE(OriginLinks::origin(tables, f.selection().op()), computation[2]);
  QVERIFY(f.listing(TraceKind::forward).rowOf(f.selection().op()) >= 0);  // the computation is hidden
  QTRY_COMPARE(lines(f).currentRow(), 31);
  f.press(Qt::Key_Return);
  QCOMPARE(OriginLinks::origin(tables, f.selection().op()), computation[3]);
  f.press(Qt::Key_Return);  // and round again
  QCOMPARE(OriginLinks::origin(tables, f.selection().op()), computation[2]);
  f.press(Qt::Key_Left, Qt::AltModifier);
  QCOMPARE(OriginLinks::origin(tables, f.selection().op()), computation[3]);
}

void SourceTest::aMissingFileIsFound() {
  writeSources(QStringLiteral("elsewhere/"));
  WindowFixture f;
  QVERIFY(f.open(model()));
  f.press(Qt::Key_U, Qt::ControlModifier);
  f.selection().select(f.analysis().forward.ops[0]);
  QTRY_VERIFY2(notice(f).text().contains(QStringLiteral("model.py is not there")), qPrintable(notice(f).text()));
  QVERIFY(notice(f).text().contains(at(QStringLiteral("model.py"))));
  f.picture(QStringLiteral("source-missing"));
  f.window().panel<SourceDock>().useFile(at(QStringLiteral("elsewhere/model.py")));
  QTRY_COMPARE(path(f).text(), QStringLiteral("elsewhere/model.py"));
  QTRY_COMPARE(lines(f).currentRow(), 30);
  QVERIFY(SourcePaths::load(*f.window().shared().settings)
              .mappings()
              .contains(PathMapping{QStringLiteral("model.py"), at(QStringLiteral("elsewhere/model.py"))}));
}

void SourceTest::anotherVersionIsNoticed() {
  write(QStringLiteral("model.py"), QByteArray("# short\n").repeated(31));
  WindowFixture f;
  QVERIFY(f.open(model()));
  f.press(Qt::Key_U, Qt::ControlModifier);
  f.selection().select(f.analysis().forward.ops[0]);
  QTRY_VERIFY2(notice(f).text().contains(QStringLiteral("x = relu(self.linear(x))")), qPrintable(notice(f).text()));
  QVERIFY(notice(f).isVisible() && text(f).isVisible());
  QCOMPARE(lines(f).currentRow(), 30);
  f.selection().select(f.analysis().forward.ops[3]);  // its line is beyond the end
  QTRY_COMPARE(lines(f).currentRow(), -1);
  QVERIFY(notice(f).isVisible() && notice(f).text().contains(QStringLiteral("32")));
}

void SourceTest::theEditorIsStarted() {
  writeSources();
  write(QStringLiteral("editor"), "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$0.tmp\"\nmv \"$0.tmp\" \"$0.log\"\n");
  QFile::setPermissions(at(QStringLiteral("editor")), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  WindowFixture f;
  QVERIFY(f.open(model()));
  auto& settings = *f.window().shared().settings;
  setEditorCommand(settings, at(QStringLiteral("editor")) + QStringLiteral(" --goto %f:%l"));
  f.selection().select(f.analysis().forward.ops[3]);
  f.press(Qt::Key_U, Qt::ControlModifier | Qt::ShiftModifier);  // shows the dock, reads, then opens
  const auto log = at(QStringLiteral("editor.log"));
  QTRY_VERIFY(QFile::exists(log));
  QFile file(log);
  QVERIFY(file.open(QIODevice::ReadOnly));
  QCOMPARE(QString::fromUtf8(file.readAll()), QStringLiteral("--goto\n%1:32\n").arg(at(QStringLiteral("model.py"))));
  setEditorCommand(settings, at(QStringLiteral("no-editor")));
  command(f, "open-in-editor").trigger();
  QTRY_VERIFY2(message(f).contains(QStringLiteral("no-editor")), qPrintable(message(f)));
}

void SourceTest::settingsAreEdited() {
  writeSources(QStringLiteral("elsewhere/"));
  WindowFixture f;
  QVERIFY(f.open(model()));
  f.press(Qt::Key_U, Qt::ControlModifier);
  f.selection().select(f.analysis().forward.ops[0]);
  QTRY_VERIFY(notice(f).text().contains(QStringLiteral("is not there")));
  command(f, "source-settings").trigger();
  auto* dialog = f.window().findChild<SourceDialog*>();
  QVERIFY(dialog);
  auto* table = dialog->findChild<QTableWidget*>();
  for (auto* button : dialog->findChildren<QPushButton*>())
    if (button->text() == QStringLiteral("&Add"))
      QTest::mouseClick(button, Qt::LeftButton), QTest::mouseClick(button, Qt::LeftButton);
  QCOMPARE(table->rowCount(), 2);
  table->item(0, 0)->setText(QStringLiteral("model.py"));
  table->item(0, 1)->setText(at(QStringLiteral("elsewhere/model.py")));
  dialog->findChild<QComboBox*>()->setCurrentText(QStringLiteral("my-editor +%l %f"));
  if (const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES"); !folder.isEmpty())
    dialog->grab().save(folder + QStringLiteral("/source-dialog.png"));
  QCOMPARE(dialog->paths().mappings().size(), 1);  // an empty row is none
  dialog->accept();
  QTRY_COMPARE(path(f).text(), QStringLiteral("elsewhere/model.py"));
  QCOMPARE(editorCommand(*f.window().shared().settings), QStringLiteral("my-editor +%l %f"));
}

void SourceTest::commandsSayWhyNot() {
  WindowFixture f;
  QVERIFY(command(f, "open-in-editor").toolTip().contains(QStringLiteral("No file is open")));
  QVERIFY(f.open(model()));
  QVERIFY(f.quiet());
  f.selection().select({});
  QVERIFY(!command(f, "open-in-editor").isEnabled());
  QVERIFY(command(f, "find-source").toolTip().contains(QStringLiteral("No op is selected")));
  f.selection().select(f.analysis().forward.ops[0]);
  QVERIFY(command(f, "open-in-editor").isEnabled());
}

/// From the menu of a line, also of an op of the backward, which has the line of its origin.
void SourceTest::aLineIsCopied() {
  WindowFixture f;
  QVERIFY(f.open(model()));
  const auto backward = f.analysis().backward.ops[0];
  f.selection().select(backward);
  const auto* frame = shownFrame(sourceOf(*f.analysis().document, backward));
  QVERIFY(frame);
  auto& view = f.window().listings().listing(TraceKind::backward);
  withMenu(view.viewport(), view.rowRect(view.rowOf(backward)).center(),
           [](QMenu& menu) { clickEntry(menu, QStringLiteral("Copy Line of Python")); });
  QCOMPARE(QApplication::clipboard()->text(),
           QStringLiteral("%1:%2").arg(QString::fromStdString(frame->file)).arg(frame->line));
}

void SourceTest::aLineWithoutAnOpSaysSo() {
  WindowFixture f;
  QVERIFY(f.open(model()));
  auto& view = f.window().listings().listing(TraceKind::forward);
  view.setGrouping(Grouping::module);
  QVERIFY(view.isHeader(0));
  withMenu(view.viewport(), view.rowRect(0).center(), [](QMenu& menu) {
    for (auto* entry : menu.actions())
      if (entry->text().startsWith(QStringLiteral("Toggle Breakpoint"))) {
        QVERIFY(!entry->isEnabled());
        QCOMPARE(entry->toolTip(), QStringLiteral("There is no op in this line"));
        return;
      }
    QFAIL("no entry");
  });
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::SourceTest)
#include "source_test.moc"
