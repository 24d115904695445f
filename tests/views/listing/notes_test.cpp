#include <QAbstractItemModelTester>
#include <QApplication>
#include <QContextMenuEvent>
#include <QDir>
#include <QFile>
#include <QLabel>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QTest>
#include <QTimer>
#include <QTreeView>

#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "views/content/line_notes.h"
#include "views/dialogs/note_dialog.h"
#include "views/docks/notes_dock.h"
#include "views/models/values_model.h"
#include "views/window/quick_open.h"

namespace retrograd::views {

/// Comments, names of one's own and bookmarks: made by keys, shown in listings and the dock, kept next to the model.
class NotesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void aCommentIsAtItsLine();
  void headersShowThoseOfTheirOperation();
  void aNameStandsForTheValue();
  void aNameIsReadInEveryPanel();
  void aNameIsGoneTo();
  void theMenuOfALineHasTheCommands();
  void bookmarksAreWalked();
  void theDockListsAndEdits();
  void notesComeBack();
  void aPlaceThatIsGoneIsShown();
  void whatCannotBeNextToTheModelIsKeptElsewhere();
  void whatCannotBeSavedIsNotLost();
  void aBrokenFileIsLeftAlone();
  void twoWindowsKeepBothChanges();
  void commandsSayWhyNot();

 private:
  QString model(int layers = 3) const { return folder_->filePath(QStringLiteral("synthetic%1.pt2").arg(layers)); }
  QString notesFile(int layers = 3) const { return model(layers) + QStringLiteral(".notes.json"); }
  QString elsewhere() const { return folder_->filePath(QStringLiteral("elsewhere")); }
  /// A window with the model, that keeps what cannot be next to it in a folder of the test's.
  bool open(WindowFixture& f, int layers = 3) {
    f.window().context().notes->setFolderElsewhere(elsewhere().toStdString());
    return f.open(model(layers));
  }
  /// Root may write anywhere, but not over a folder.
  void block() { QVERIFY(QDir().mkpath(notesFile() + QStringLiteral("/in the way"))); }

  std::unique_ptr<QTemporaryDir> folder_;
};

namespace {

NoteBook& notes(WindowFixture& f) { return *f.window().context().notes; }
QTreeView& table(WindowFixture& f) { return *f.window().findChild<QTreeView*>(QStringLiteral("notes")); }
QString message(WindowFixture& f) {
  return f.window().messages().isVisible() ? f.window().messages().text() : QString();
}

/// Presses the key, types into the dialog and accepts.
bool write(WindowFixture& f, Qt::Key key, const QString& text) {
  QApplication::setActiveWindow(&f.window());  // no window manager gives it back after a dialog
  f.listing(TraceKind::forward).setFocus();
  f.press(key);
  auto* dialog = f.window().findChild<NoteDialog*>();
  if (!dialog) return false;
  auto* edit = dialog->findChild<QWidget*>(QStringLiteral("note-text"));
  if (text.isEmpty()) QTest::keyClick(edit, Qt::Key_A, Qt::ControlModifier), QTest::keyClick(edit, Qt::Key_Delete);
  for (const auto c : text)
    QTest::keyClick(edit, c == QLatin1Char('\n') ? '\r' : c.toLatin1(),
                    c == QLatin1Char('\n') ? Qt::ShiftModifier : Qt::NoModifier);
  if (const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES"); !folder.isEmpty())
    dialog->grab().save(folder + QStringLiteral("/note-dialog.png"));
  QTest::keyClick(edit, Qt::Key_Return);
  QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  return true;
}

QString lineOf(WindowFixture& f, TraceKind kind, BoundSymbolId op) {
  return f.listing(kind).textAt(f.listing(kind).rowOf(op));
}

QStringList column(WindowFixture& f, int column) {
  QStringList all;
  const auto& model = *table(f).model();
  for (int row = 0; row < model.rowCount(); ++row) all << model.index(row, column).data().toString();
  return all;
}

QString content(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

}  // namespace

void NotesTest::init() { folder_ = std::make_unique<QTemporaryDir>(); }

void NotesTest::aCommentIsAtItsLine() {
  WindowFixture f;
  QVERIFY(open(f));
  const auto op = f.analysis().forward.ops[4];
  const auto before = lineOf(f, TraceKind::forward, op);
  f.selection().select(op);
  QVERIFY(write(f, Qt::Key_Semicolon, QStringLiteral("why\nhere")));
  for (auto kind : {TraceKind::forward, TraceKind::joint})
    QCOMPARE(lineOf(f, kind, op),
             QString(before).replace(QStringLiteral("  # "), QStringLiteral("  ; why \u23ce here  # ")));
  QCOMPARE(notes(f).at(op)->comment, std::string("why\nhere"));
  QTRY_VERIFY(content(notesFile()).contains(QStringLiteral("why\\nhere")));
  QTRY_VERIFY(!notes(f).unsaved());
  QVERIFY(write(f, Qt::Key_Semicolon, {}));
  QCOMPARE(lineOf(f, TraceKind::forward, op), before);
  QTRY_VERIFY(!QFile::exists(notesFile()));
}

void NotesTest::headersShowThoseOfTheirOperation() {
  WindowFixture f;
  QVERIFY(open(f));
  auto& forward = f.listing(TraceKind::forward);
  forward.setFocus();
  f.press(Qt::Key_Home);
  QVERIFY(forward.isHeader(0));
  const auto operation = f.selection().op();
  const auto before = forward.textAt(0);
  f.press(Qt::Key_B, Qt::ControlModifier);
  QVERIFY(forward.spokenAt(0).contains(QStringLiteral("bookmark")));
  notes(f).edit(operation, {}, [](Note& n) { n.comment = "the first"; });
  notes(f).edit({}, f.analysis().document->outputs(operation)[0], [](Note& n) { n.name = "hidden"; });
  QVERIFY2(forward.textAt(0).startsWith(QStringLiteral("hidden  ; the first  aten.linear")),
           qPrintable(forward.textAt(0)));
  auto& backward = f.listing(TraceKind::backward);
  int header = backward.rowCount() - 1;
  while (!backward.isHeader(header)) --header;
  QVERIFY2(backward.textAt(header).startsWith(QStringLiteral("backward of hidden  ; the first  ")),
           qPrintable(backward.textAt(header)));
  f.picture(QStringLiteral("notes-header"));
}

void NotesTest::aNameStandsForTheValue() {
  WindowFixture f;
  QVERIFY(open(f));
  const auto& tables = *f.analysis().document;
  const auto made = f.analysis().forward.ops[1], reader = f.analysis().forward.ops[2];
  const auto value = tables.outputs(made)[0];
  const auto own = QString::fromStdString(tables.displayName(value));
  f.selection().select(made);
  QVERIFY(write(f, Qt::Key_N, QStringLiteral("hidden")));
  QVERIFY2(lineOf(f, TraceKind::forward, made).startsWith(QStringLiteral("hidden = ")),
           qPrintable(lineOf(f, TraceKind::forward, made)));
  QVERIFY(lineOf(f, TraceKind::forward, reader).contains(QStringLiteral("(hidden)")));
  QVERIFY(lineOf(f, TraceKind::joint, reader).contains(QStringLiteral("(hidden)")));
  f.selection().select(reader, value);  // the value it reads, not the one it makes
  QVERIFY(write(f, Qt::Key_N, QStringLiteral("h")));
  QVERIFY(lineOf(f, TraceKind::forward, made).startsWith(QStringLiteral("h = ")));
  f.picture(QStringLiteral("notes-name"));
  QVERIFY(write(f, Qt::Key_N, {}));
  QVERIFY(lineOf(f, TraceKind::forward, made).startsWith(own + QStringLiteral(" = ")));
}

void NotesTest::aNameIsReadInEveryPanel() {
  WindowFixture f;
  QVERIFY(open(f));
  const auto& tables = *f.analysis().document;
  const auto made = f.analysis().forward.ops[1], reader = f.analysis().forward.ops[2];
  const auto value = tables.outputs(made)[0];
  const auto given = QString::fromStdString(tables.displayName(value));
  const auto both = QStringLiteral("hidden (%1)").arg(given);
  for (const auto* dock : {"dock-why", "dock-values", "dock-references"}) {
    front(f, dock);
    const auto* tree = f.window().findChild<QTreeView*>(QLatin1String(dock).mid(5));
    const auto text = [&] { return linesOf(*tree->model()).join(QLatin1Char('\n')); };
    f.selection().select(made, value);
    QTRY_VERIFY2(text().contains(given), dock);
    // As soon as it has the name, without another click.
    notes(f).edit({}, value, [](Note& n) { n.name = "hidden"; });
    QTRY_VERIFY2(text().contains(QStringLiteral("hidden")), dock);
    f.picture(QStringLiteral("own-name-") + QLatin1String(dock));
    notes(f).edit({}, value, [](Note& n) { n.name.clear(); });
    QTRY_VERIFY2(!text().contains(QStringLiteral("hidden")), dock);
  }
  notes(f).edit({}, value, [](Note& n) { n.name = "hidden"; });
  // Where it is read, too; both names where there is room for them.
  front(f, "dock-why");
  f.selection().select(reader);
  QTRY_VERIFY(linesOf(f, "inspector").filter(QStringLiteral("(hidden)")).size() > 0);
  QVERIFY2(linesOf(f, "inspector").filter(both).size() == 1,
           qPrintable(linesOf(f, "inspector").join(QLatin1Char('\n'))));
  f.selection().select(reader, value);
  QTRY_VERIFY(linesOf(f, "references").filter(both).size() == 1);
  const auto* values = f.window().findChild<QTreeView*>(QStringLiteral("values"))->model();
  QCOMPARE(values->index(0, ValuesModel::valueName).data().toString(), QStringLiteral("hidden"));
  QCOMPARE(values->index(0, ValuesModel::valueName).data(Qt::ToolTipRole).toString(), both);
  f.selection().select(made, value);
  f.window().findChild<QAction*>(QStringLiteral("action-pin-why"))->trigger();
  QCOMPARE(f.window().findChild<QDockWidget*>(QStringLiteral("dock-why"))->windowTitle(),
           QStringLiteral("Why (pinned: hidden)"));
}

void NotesTest::aNameIsGoneTo() {
  WindowFixture f;
  QVERIFY(open(f));
  const auto& tables = *f.analysis().document;
  const auto made = f.analysis().forward.ops[4];
  const auto value = tables.outputs(made)[0];
  const auto weight = f.analysis().computation().inputs.at(0).value;
  notes(f).edit({}, value, [](Note& n) { n.name = "hidden state"; });
  notes(f).edit({}, weight, [](Note& n) { n.name = "hidden weight"; });
  const auto places = [&](const QString& query) {
    f.press(Qt::Key_P, Qt::ControlModifier);
    QTest::keyClicks(&f.window().quickOpen().line(), query);
    return f.window().quickOpen().list().model();
  };
  const auto* model = places(QStringLiteral("hidden state"));
  QTRY_COMPARE(model->rowCount(), 1);
  QVERIFY2(model->index(0, 0)
               .data(GotoModel::detailRole)
               .toString()
               .startsWith(QString::fromStdString(tables.displayName(value))),
           "it tells the name of the trace");
  QTest::keyClick(&f.window().quickOpen().line(), Qt::Key_Return);
  QTRY_COMPARE(f.selection().op(), made);
  QCOMPARE(f.selection().value(), value);
  // A parameter leads to the first op that reads it. What someone named comes before all else.
  model = places(QStringLiteral("hidden weight"));
  QTRY_COMPARE(model->index(0, 0).data().toString(), QStringLiteral("hidden weight"));
  QTest::keyClick(&f.window().quickOpen().line(), Qt::Key_Return);
  QTRY_COMPARE(f.selection().value(), weight);
  QVERIFY(f.selection().op());
  model = places({});
  QTRY_VERIFY(model->rowCount() > 2);
  QCOMPARE(model->index(0, 0).data().toString(), QStringLiteral("hidden state"));
}

void NotesTest::theMenuOfALineHasTheCommands() {
  WindowFixture f;
  QVERIFY(open(f));
  const auto op = f.analysis().forward.ops[4];
  f.click(TraceKind::forward, op);
  QStringList entries;
  QTimer::singleShot(200, this, [&] {
    auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
    if (!menu) return;
    for (auto* entry : menu->actions()) {
      entries << entry->objectName();
      if (entry->objectName() == QStringLiteral("action-bookmark")) entry->trigger();
    }
    menu->close();
  });
  auto* viewport = f.listing(TraceKind::forward).viewport();
  QContextMenuEvent event(QContextMenuEvent::Keyboard, viewport->rect().center(),
                          viewport->mapToGlobal(viewport->rect().center()));
  QApplication::sendEvent(viewport, &event);
  for (const auto* name : {"action-comment", "action-rename", "action-bookmark"})
    QVERIFY2(entries.contains(QLatin1String(name)), name);
  QVERIFY(notes(f).at(op) && notes(f).at(op)->bookmark);
}

void NotesTest::bookmarksAreWalked() {
  WindowFixture f;
  QVERIFY(open(f));
  const auto& forward = f.analysis().forward.ops;
  const std::vector marked{forward[7], forward[2], f.analysis().backward.ops[3]};
  for (auto op : marked) {
    f.selection().select(op);
    f.press(Qt::Key_B, Qt::ControlModifier);
  }
  QVERIFY(f.listing(TraceKind::forward)
              .spokenAt(f.listing(TraceKind::forward).rowOf(marked[0]))
              .contains(QStringLiteral("bookmark")));
  f.selection().select(forward[0]);
  f.listing(TraceKind::forward).setFocus();
  for (auto op : {marked[1], marked[0], marked[2], marked[1]}) {
    f.press(Qt::Key_Period);
    QCOMPARE(f.selection().op(), op);
  }
  f.press(Qt::Key_Comma);
  QCOMPARE(f.selection().op(), marked[2]);
  f.press(Qt::Key_B, Qt::ControlModifier);
  QCOMPARE(notes(f).notes().size(), std::size_t(2));
}

void NotesTest::theDockListsAndEdits() {
  WindowFixture f;
  QVERIFY(open(f));
  f.window().findChild<QAction*>(QStringLiteral("action-notes"))->trigger();
  auto* dock = &f.window().panel<NotesDock>();
  const auto* hint = dock->findChild<QLabel*>(QStringLiteral("notes-empty"));
  QVERIFY(dock->isVisible() && hint->isVisible());  // what to do instead
  QAbstractItemModelTester tester(table(f).model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  f.picture(QStringLiteral("notes-empty"));
  const auto& forward = f.analysis().forward.ops;
  const auto value = f.analysis().document->outputs(forward[1])[0];
  notes(f).edit(f.analysis().backward.ops[0], {}, [](Note& n) { n.comment = "the first\nof the backward"; });
  notes(f).edit({}, value, [](Note& n) { n.name = "logits"; });
  notes(f).edit({}, f.analysis().joint.inputs[0], [](Note& n) { n.comment = "an input"; });
  notes(f).edit(forward[5], {}, [](Note& n) { n.bookmark = true; });
  QVERIFY(!hint->isVisible());
  QCOMPARE(column(f, NotesModel::where),
           (QStringList{QStringLiteral("input"), QStringLiteral("#%1 forward").arg(forward[1].index),
                        QStringLiteral("#%1 forward").arg(forward[5].index),
                        QStringLiteral("#%1 backward").arg(f.analysis().backward.ops[0].index)}));
  QCOMPARE(column(f, NotesModel::name)[1], QStringLiteral("logits"));
  QCOMPARE(column(f, NotesModel::comment)[3], QStringLiteral("the first \u23ce of the backward"));
  f.selection().select(forward[0]);
  table(f).setCurrentIndex(table(f).model()->index(1, 0));
  table(f).setFocus();
  f.picture(QStringLiteral("notes-dock"));
  f.theme().choose(Theme::Choice::dark);
  f.picture(QStringLiteral("notes-dock-dark"));
  f.theme().choose(Theme::Choice::light);
  QTest::keyClick(&table(f), Qt::Key_Return);
  QCOMPARE(f.selection().op(), forward[1]);
  QCOMPARE(f.selection().value(), value);
  table(f).setFocus();
  table(f).setCurrentIndex(table(f).model()->index(2, 0));
  QTest::keyClick(&table(f), Qt::Key_Space);
  QCOMPARE(table(f).model()->rowCount(), 3);  // it was nothing but a bookmark
  table(f).setCurrentIndex(table(f).model()->index(2, NotesModel::comment));
  QTest::keyClick(&table(f), Qt::Key_Return);
  auto* dialog = f.window().findChild<NoteDialog*>();
  QVERIFY(dialog);
  QCOMPARE(dialog->findChild<QPlainTextEdit*>()->toPlainText(), QStringLiteral("the first\nof the backward"));
  dialog->findChild<QPlainTextEdit*>()->setPlainText(QStringLiteral("changed"));
  dialog->accept();
  QCOMPARE(column(f, NotesModel::comment)[2], QStringLiteral("changed"));
  table(f).setCurrentIndex(table(f).model()->index(1, 0));
  QTest::keyClick(&table(f), Qt::Key_Delete);
  QCOMPARE(table(f).model()->rowCount(), 2);
  QVERIFY(notes(f).nameOf(value).isEmpty());
}

void NotesTest::notesComeBack() {
  {
    WindowFixture f;
    QVERIFY(open(f));
    notes(f).edit(f.analysis().backward.ops[3], {}, [](Note& n) { n.comment = std::string("again"); });
    notes(f).edit({}, f.analysis().document->outputs(f.analysis().forward.ops[1])[0],
                  [](Note& n) { n.name = std::string("brand"); });
    const auto before = f.controller().document();
    f.press(Qt::Key_R, Qt::ControlModifier);
    QTRY_VERIFY(f.controller().document() != before && !f.controller().opening());
    QTRY_COMPARE(notes(f).notes().size(), std::size_t(2));
    QCOMPARE(notes(f).at(f.analysis().backward.ops[3])->comment, std::string("again"));
    notes(f).edit(f.analysis().forward.ops[0], {}, [](Note& n) { n.bookmark = true; });
  }  // closed at once: what was noted last is written all the same
  WindowFixture f;
  QVERIFY(open(f));
  QTRY_COMPARE(notes(f).notes().size(), std::size_t(3));
  QVERIFY(lineOf(f, TraceKind::backward, f.analysis().backward.ops[3]).contains(QStringLiteral(")  ; again  # ")));
  QVERIFY(notes(f).at(f.analysis().forward.ops[0])->bookmark);
  QVERIFY(open(f, 2));  // another file has its own
  QVERIFY(f.quiet());
  QVERIFY(notes(f).notes().empty());
}

void NotesTest::aPlaceThatIsGoneIsShown() {
  {
    WindowFixture f;
    QVERIFY(open(f));
    notes(f).edit(f.analysis().forward.ops[8], {}, [](Note& n) { n.comment = "in the last layer"; });
    notes(f).edit(f.analysis().forward.ops[0], {}, [](Note& n) { n.comment = "in the first"; });
    QTRY_VERIFY(!notes(f).unsaved());
  }
  QVERIFY(QFile::copy(notesFile(3), notesFile(2)));  // as if the model had lost a layer
  WindowFixture f;
  QVERIFY(open(f, 2));
  QTRY_COMPARE(notes(f).notes().size(), std::size_t(2));
  f.window().findChild<QAction*>(QStringLiteral("action-notes"))->trigger();
  QCOMPARE(column(f, NotesModel::where),
           (QStringList{QStringLiteral("#%1 forward").arg(f.analysis().forward.ops[0].index), QStringLiteral("gone")}));
  QVERIFY2(column(f, NotesModel::what)[1].contains(QStringLiteral("forward")),
           qPrintable(column(f, NotesModel::what)[1]));
  f.picture(QStringLiteral("notes-lost"));
  // It stays in the file while others are changed, until it is removed.
  notes(f).edit(f.analysis().forward.ops[1], {}, [](Note& n) { n.bookmark = true; });
  QTRY_VERIFY(!notes(f).unsaved());
  QVERIFY(content(notesFile(2)).contains(QStringLiteral("in the last layer")));
  table(f).setCurrentIndex(table(f).model()->index(2, 0));
  table(f).setFocus();
  QTest::keyClick(&table(f), Qt::Key_Delete);
  QTRY_VERIFY(!notes(f).unsaved());
  QVERIFY(!content(notesFile(2)).contains(QStringLiteral("in the last layer")));
  QCOMPARE(notes(f).notes().size(), std::size_t(2));
}

void NotesTest::whatCannotBeNextToTheModelIsKeptElsewhere() {
  block();
  {
    WindowFixture f;
    QVERIFY(open(f));
    QTRY_VERIFY(message(f).contains(QStringLiteral("cannot be read")));
    notes(f).edit(f.analysis().forward.ops[0], {}, [](Note& n) { n.comment = "kept"; });
    QTRY_VERIFY2(message(f).contains(elsewhere()), qPrintable(message(f)));
    f.picture(QStringLiteral("notes-elsewhere"));
    QVERIFY(!notes(f).unsaved());
  }
  WindowFixture f;
  QVERIFY(open(f));
  QTRY_COMPARE(notes(f).notes().size(), std::size_t(1));
  QCOMPARE(notes(f).at(f.analysis().forward.ops[0])->comment, std::string("kept"));
}

void NotesTest::whatCannotBeSavedIsNotLost() {
  block();
  QFile inTheWay(elsewhere());
  QVERIFY(inTheWay.open(QIODevice::WriteOnly));
  WindowFixture f;
  QVERIFY(open(f));
  const auto op = f.analysis().forward.ops[0];
  notes(f).edit(op, {}, [](Note& n) { n.comment = "kept"; });
  QTRY_VERIFY(message(f).contains(QStringLiteral("could not be saved")));
  QVERIFY(notes(f).unsaved());
  QCOMPARE(notes(f).at(op)->comment, std::string("kept"));
  f.window().close();
  QVERIFY(f.window().isVisible());
  auto* box = f.window().findChild<QMessageBox*>();
  QVERIFY(box);
  box->reject();
  // Room again: the command that was disabled before writes them.
  QVERIFY(QDir(notesFile()).removeRecursively());
  auto* again = f.window().findChild<QAction*>(QStringLiteral("action-save-notes"));
  QVERIFY(again->isEnabled());
  again->trigger();
  QTRY_VERIFY(!notes(f).unsaved());
  QVERIFY(content(notesFile()).contains(QStringLiteral("kept")));
}

void NotesTest::aBrokenFileIsLeftAlone() {
  QFile file(notesFile());
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write("{ no notes");
  file.close();
  WindowFixture f;
  QVERIFY(open(f));
  QTRY_VERIFY(message(f).contains(QStringLiteral("cannot be read")));
  notes(f).edit(f.analysis().forward.ops[0], {}, [](Note& n) { n.bookmark = true; });
  QTRY_VERIFY(!notes(f).unsaved());
  QCOMPARE(content(notesFile()), QStringLiteral("{ no notes"));
}

void NotesTest::twoWindowsKeepBothChanges() {
  WindowFixture one, other;
  QVERIFY(open(one));
  QVERIFY(open(other));
  notes(one).edit(one.analysis().forward.ops[0], {}, [](Note& n) { n.comment = "of one"; });
  QTRY_VERIFY(!notes(one).unsaved());
  notes(other).edit(other.analysis().forward.ops[1], {}, [](Note& n) { n.comment = "of the other"; });
  QTRY_COMPARE(notes(other).notes().size(), std::size_t(2));
  QVERIFY(content(notesFile()).contains(QStringLiteral("of one")) &&
          content(notesFile()).contains(QStringLiteral("of the other")));
}

void NotesTest::commandsSayWhyNot() {
  WindowFixture f;
  const auto action = [&](const char* name) { return f.window().findChild<QAction*>(QLatin1String(name)); };
  QVERIFY(!action("action-comment")->isEnabled());
  QVERIFY(action("action-comment")->toolTip().contains(QStringLiteral("No file is open")));
  QVERIFY(open(f));
  QVERIFY(f.quiet());
  f.selection().select({});
  QVERIFY(action("action-bookmark")->toolTip().contains(QStringLiteral("No op is selected")));
  QVERIFY(!action("action-next-note")->isEnabled());
  f.selection().select(f.analysis().forward.ops[0]);
  for (const char* name : {"action-comment", "action-rename", "action-bookmark"}) QVERIFY(action(name)->isEnabled());
  f.press(Qt::Key_B, Qt::ControlModifier);
  QVERIFY(action("action-next-note")->isEnabled());
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::NotesTest)
#include "notes_test.moc"
