#include <QClipboard>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QDialogButtonBox>
#include <QHelpEvent>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QLockFile>
#include <QPushButton>
#include <QRegularExpression>
#include <QTest>
#include <QThreadPool>
#include <QTimer>
#include <QToolTip>
#include <thread>

#include "tests/views/panels.h"
#include "tests/views/window_fixture.h"
#include "views/dialogs/export_dialog.h"
#include "views/parts/history_memory.h"
#include "views/settings/keymap.h"
#include "views/text/format.h"
#include "views/window/graph_pane.h"
#include "views/window/session_keeper.h"

namespace retrograd::views {

/// What the window once got wrong, by the numbers of the findings: questions that replace others, copying, paths, keys in texts, seeds, menus over a reload.
class DefectsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void aReplacedQuestionIsNotHeardOf();
  void savingTwoValuesWritesBoth();
  void whatAClosedFileDidNotAnswerIsAskedAgain();
  void copyByMenuAndByKeyIsTheSame();
  void treesAreCopiedByMenuAndByKey();
  void theExportDialogKeepsWhatWasChosen();
  void aSecondInstanceLeavesTheSessionAlone();
  void textsNameTheKeysOfNow();
  void seedsHaveAllTheirBits();
  void theTooltipPromisesWhatAClickDoes();
  void menusGoWithTheirDocument();
  void dialogsGoWithTheirDocument();
  void aMenuMayOutliveItsWindow();
  void breakpointsKeepTheirOrder();
  void lettersSearchInTrees();
  void lettersChooseInBoxes();
};

namespace {

/// Checks of gradients go on until they are let go or cancelled.
class HeldEngine : public FakeEngine {
 public:
  GradientCheck checkGradients(const Analysis& analysis, const std::vector<BoundSymbolId>& ops, const Progress& progress) override {
    ++begun;
    while (!released) {
      progress.check();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return FakeEngine::checkGradients(analysis, ops, progress);
  }
  std::vector<DeviceStatus> devices() override {
    while (holdsDevices) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return FakeEngine::devices();
  }
  std::atomic<int> begun = 0;
  std::atomic<bool> released = false, holdsDevices = false;
};

QAction* action(MainWindow& window, const char* name) { return window.findChild<QAction*>(QLatin1String("action-") + QLatin1String(name)); }

template <class T>
T* child(WindowFixture& f, const char* name) {
  return f.window().findChild<T*>(QLatin1String(name));
}

/// Opens the widget's context menu with the mouse and hands it to `use` while it is open.
void withMenu(QWidget* widget, const QPoint& at, const std::function<void(QMenu&)>& use) {
  bool used = false;
  QTest::mouseClick(widget, Qt::RightButton, Qt::NoModifier, at);
  QTimer::singleShot(0, widget, [&] {
    auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
    QVERIFY(menu);
    used = true;
    use(*menu);
    if (auto* popup = QApplication::activePopupWidget()) popup->close();
  });
  QContextMenuEvent event(QContextMenuEvent::Mouse, at, widget->mapToGlobal(at));
  QApplication::sendEvent(widget, &event);
  QVERIFY(used);
}

/// Clicks the entry with this text, whatever key stands behind it.
void clickEntry(QMenu& menu, const QString& text) {
  for (auto* entry : menu.actions())
    if (entry->text().section(QLatin1Char('\t'), 0, 0).remove(QLatin1Char('&')) == text) {
      QVERIFY2(entry->isEnabled(), qPrintable(text));
      return QTest::mouseClick(&menu, Qt::LeftButton, Qt::NoModifier, menu.actionGeometry(entry).center());
    }
  QFAIL(qPrintable(QStringLiteral("no entry ") + text));
}

QString clipboard() { return QApplication::clipboard()->text(); }

/// The window in front, as a window manager leaves it when a dialog closes.
void toFront(WindowFixture& f) { QApplication::setActiveWindow(&f.window()); }

void type(QWidget* widget, const QString& text) {
  widget->setFocus();
  QTest::keyClick(widget, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(widget, text);
}

QString makeFile(const QTemporaryDir& folder, const QString& name) {
  QFile file(folder.filePath(name));
  if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write");
  file.write("x");
  return file.fileName();
}

QString tipAt(QWidget* viewport, const QPoint& at) {
  QHelpEvent event(QEvent::ToolTip, at, viewport->mapToGlobal(at));
  QApplication::sendEvent(viewport, &event);
  return event.isAccepted() && QToolTip::isVisible() ? QToolTip::text() : QString();
}

}  // namespace

// Holds W2: a question that replaces another one does not get the first one's "cancelled".
void DefectsTest::aReplacedQuestionIsNotHeardOf() {
  const auto engine = std::make_shared<HeldEngine>();
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  front(f, "dock-checks");
  auto* range = child<QLineEdit>(f, "checks-range");
  const auto* summary = child<QLabel>(f, "checks-summary");
  range->setFocus();
  QTest::keyClick(range, Qt::Key_Return);
  QTRY_COMPARE(engine->begun.load(), 1);
  QTest::keyClick(range, Qt::Key_Return);
  QTRY_COMPARE(engine->begun.load(), 2);  // the worker has told what came of the first one by now
  QCoreApplication::processEvents();
  QCOMPARE(summary->text(), QStringLiteral("Checking..."));
  // One that is cancelled is heard of.
  action(f.window(), "stop")->trigger();
  QTRY_COMPARE(summary->text(), QStringLiteral("Cancelled"));
  engine->released = true;
  QTest::keyClick(range, Qt::Key_Return);
  QTRY_VERIFY2(summary->text().startsWith(QChar(0x2713)), qPrintable(summary->text()));
}

// Holds W2: what is to be done, other than what is to be answered, is not replaced at all.
void DefectsTest::savingTwoValuesWritesBoth() {
  const auto engine = std::make_shared<HeldEngine>();
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  front(f, "dock-checks");
  auto* range = child<QLineEdit>(f, "checks-range");
  range->setFocus();
  QTest::keyClick(range, Qt::Key_Return);
  QTRY_COMPARE(engine->begun.load(), 1);
  const QTemporaryDir folder;
  QStringList said;
  const auto inputs = f.analysis().joint.inputs;
  for (int i : {0, 1})
    f.controller().questions().saveValue(inputs[static_cast<std::size_t>(i)], folder.filePath(QStringLiteral("%1.npy").arg(i)),
                                         [&](const QString& problem) { said << problem; });
  engine->released = true;
  QTRY_COMPARE(said, QStringList({QString(), QString()}));
  for (int i : {0, 1}) QVERIFY(QFile::exists(folder.filePath(QStringLiteral("%1.npy").arg(i))));
}

// Holds W2: a question whose document goes before it is answered is asked again of the next one.
void DefectsTest::whatAClosedFileDidNotAnswerIsAskedAgain() {
  const auto engine = std::make_shared<HeldEngine>();
  WindowFixture f(engine);
  engine->holdsDevices = true;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.press(Qt::Key_W, Qt::ControlModifier);
  QTRY_VERIFY(!f.controller().document());
  engine->holdsDevices = false;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QTRY_VERIFY(f.window().findChild<QAction*>(QStringLiteral("action-device-cpu")));
}

// Holds W5: several lines are copied by the menu as by the key.
void DefectsTest::copyByMenuAndByKeyIsTheSame() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& view = f.listing(TraceKind::forward);
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  for (int i = 0; i < 2; ++i) QTest::keyClick(&view, Qt::Key_Down, Qt::ShiftModifier);
  QTest::keyClick(&view, Qt::Key_C, Qt::ControlModifier);
  const auto byKey = clipboard();
  QCOMPARE(byKey.split(QLatin1Char('\n')).size(), 3);
  QApplication::clipboard()->clear();
  QVERIFY(f.selection().op() != f.analysis().forward.ops[1]);
  const auto first = view.rowRect(view.cursor() - 2);
  withMenu(view.viewport(), QPoint(first.height() + 58, first.center().y()), [](QMenu& menu) { clickEntry(menu, QStringLiteral("Copy")); });
  QCOMPARE(clipboard(), byKey);
  QCOMPARE(f.selection().op(), f.analysis().forward.ops[1]);  // the commands of the menu are for the line that was clicked
  // A line beside them is copied alone.
  const auto other = view.rowRect(view.cursor() + 2);
  withMenu(view.viewport(), QPoint(other.height() + 58, other.center().y()), [](QMenu& menu) { clickEntry(menu, QStringLiteral("Copy")); });
  QVERIFY(!clipboard().contains(QLatin1Char('\n')) && !byKey.contains(clipboard()));
}

// Holds W5 in the trees of the docks.
void DefectsTest::treesAreCopiedByMenuAndByKey() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  for (const auto& [dock, name] : {std::pair("dock-inspector", "inspector"), {"dock-modules", "modules"}, {"dock-values", "values"}}) {
    toFront(f);
    front(f, dock);
    auto* tree = child<QTreeView>(f, name);
    QTRY_VERIFY(tree->model()->rowCount() > 0);
    const auto row = tree->model()->index(0, 0);
    const auto at = tree->visualRect(row).center();
    QTest::mouseClick(tree->viewport(), Qt::LeftButton, Qt::NoModifier, at);
    QVERIFY(f.quiet());  // no number comes between the two copies
    QVERIFY2(tree->hasFocus(), name);
    QTest::keyClick(tree, Qt::Key_C, Qt::ControlModifier);
    const auto byKey = clipboard();
    QVERIFY2(byKey.startsWith(row.data().toString() + QLatin1Char('\t')), qPrintable(byKey));
    QApplication::clipboard()->clear();
    withMenu(tree->viewport(), at, [](QMenu& menu) { clickEntry(menu, QStringLiteral("Copy")); });
    QTRY_COMPARE(clipboard(), byKey);
  }
}

// Holds W8: neither another format nor a reload puts back the path that someone typed.
void DefectsTest::theExportDialogKeepsWhatWasChosen() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.press(Qt::Key_X, Qt::ControlModifier | Qt::ShiftModifier);
  auto* dialog = f.window().findChild<ExportDialog*>();
  QTRY_VERIFY(dialog->isVisible());
  auto* path = dialog->findChild<QLineEdit*>(QStringLiteral("export-path"));
  auto* format = dialog->findChild<QComboBox*>(QStringLiteral("export-format"));
  auto* computation = dialog->findChild<QAbstractButton*>(QStringLiteral("export-computation"));
  QVERIFY(path->text().endsWith(QStringLiteral("synthetic:3.svg")));
  type(path, QStringLiteral("/nowhere/mine.svg"));
  QTest::mouseClick(computation, Qt::LeftButton, Qt::NoModifier, QPoint(8, computation->height() / 2));
  QVERIFY(computation->isChecked());
  const auto before = f.controller().document();
  f.controller().reload();
  QTRY_VERIFY(f.controller().document() != before);
  QCOMPARE(path->text(), QStringLiteral("/nowhere/mine.svg"));
  QVERIFY(computation->isChecked());
  format->setFocus();
  QTest::keyClicks(format, QStringLiteral("pn"));
  QCOMPARE(format->currentText(), QStringLiteral("PNG"));
  QCOMPARE(path->text(), QStringLiteral("/nowhere/mine.png"));
  // An ending of their own stays; what was never named follows the format and the file.
  type(path, QStringLiteral("/nowhere/mine.picture"));
  QTest::keyClick(format, Qt::Key_Up);
  QCOMPARE(path->text(), QStringLiteral("/nowhere/mine.picture"));
  QVERIFY(f.open(QStringLiteral("synthetic:5")));
  QVERIFY2(path->text().contains(QStringLiteral("synthetic:5")), qPrintable(path->text()));
}

// Holds W9: while one instance of the program opens the last session, another one that starts does not take it for failed and clear it.
void DefectsTest::aSecondInstanceLeavesTheSessionAlone() {
  WindowFixture f;
  const QTemporaryDir folder;
  auto& session = SessionKeeper::of(f.window().shared().settings).session();
  WindowRecord record;
  record.request.path = makeFile(folder, QStringLiteral("synthetic3")).toStdString();
  session.save({record});
  f.window().shared().settings->sync();
  QSettings settingsOfOther(f.window().shared().settings->fileName(), QSettings::IniFormat);
  LastSession other(&settingsOfOther);
  other.beginRestoring();
  f.window().shared().settings->sync();
  QVERIFY(!session.failedToRestore() && session.isRestoredElsewhere());
  QVERIFY(reopenLastSession(f.window().shared()).isEmpty());
  QCOMPARE(session.windows().size(), std::size_t(1));
  // Nor does closing its window, which has no file.
  f.window().setAttribute(Qt::WA_DeleteOnClose, false);
  f.window().close();
  QCoreApplication::processEvents();
  QCOMPARE(session.windows().size(), std::size_t(1));
  f.window().shared().settings->sync();
  settingsOfOther.sync();
  QVERIFY(other.failedToRestore());  // as the next start would find it, should this one end here
  other.endRestoring();
  f.window().shared().settings->sync();
  QVERIFY(!session.failedToRestore() && !session.isRestoredElsewhere());
  const auto windows = reopenLastSession(f.window().shared());
  QCOMPARE(windows.size(), 1);
  QTRY_VERIFY(windows.front()->context().controller->document());
  delete windows.front();
}

// Holds W10: no text names a key that a preset took away.
void DefectsTest::textsNameTheKeysOfNow() {
  const auto engine = std::make_shared<FakeEngine>();
  engine->opTime = std::chrono::milliseconds(20);
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic:200")));
  front(f, "dock-notes");
  const auto hint = [&] {
    for (const auto* label : child<QDockWidget>(f, "dock-notes")->findChildren<QLabel*>())
      if (label->text().startsWith(QStringLiteral("No notes"))) return label->text();
    return QString();
  };
  QVERIFY2(hint().contains(QStringLiteral("N  names")), qPrintable(hint()));
  auto& keymap = Keymap::of(f.window().shared().settings);
  keymap.setPreset(KeyPreset::gdb);
  QVERIFY2(hint().contains(QStringLiteral("F2  names")), qPrintable(hint()));
  keymap.choose(QStringLiteral("comment"), {});
  QVERIFY2(hint().contains(QStringLiteral("Marks > Comment")), qPrintable(hint()));

  // Keys of the program's own that no command has any more: whatever the window says while a run is under way names none of them.
  f.press(Qt::Key_C);
  QTRY_VERIFY(f.execution().running);
  QSet<QString> gone, present;
  for (const auto* action : f.window().findChildren<QAction*>()) {
    const auto own = action->property("ownKey").value<QKeySequence>();
    if (own.count() > 0 && own != action->shortcut() && own.toString().size() > 1) gone << own.toString(QKeySequence::NativeText);
    present << action->shortcut().toString(QKeySequence::NativeText);
  }
  gone.subtract(present);
  QVERIFY(gone.contains(QStringLiteral("Shift+F5")) && gone.contains(QStringLiteral("F10")));
  QStringList texts;
  for (const auto* object : f.window().findChildren<QObject*>())
    for (const auto* name : {"text", "toolTip", "statusTip", "placeholderText", "accessibleDescription"})
      if (const auto text = object->property(name); text.isValid()) texts << text.toString();
  QVERIFY(texts.filter(QStringLiteral("stop it first (K)")).size() > 1);
  for (const auto& key : gone) {
    const QRegularExpression named(QStringLiteral("(?<![\\w+])%1(?!\\w)").arg(QRegularExpression::escape(key)));
    for (const auto& text : texts) QVERIFY2(!text.contains(named), qPrintable(key + QStringLiteral(": ") + text));
  }
  f.press(Qt::Key_K);
  QVERIFY(f.settle());
}

// Holds W11: numbers of 64 bits come through the window whole.
void DefectsTest::seedsHaveAllTheirBits() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  const auto openInputs = [&] {
    toFront(f);
    f.press(Qt::Key_I, Qt::ControlModifier);
    return child<QDialog>(f, "inputs-dialog");
  };
  auto* dialog = openInputs();
  QVERIFY(dialog);
  auto* seed = dialog->findChild<QLineEdit*>(QStringLiteral("inputs-seed"));
  auto* use = dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Ok);
  QCOMPARE(seed->text(), QStringLiteral("0"));
  for (const auto* wrong : {"", "-1", "1.5", "18446744073709551616", "seed"}) {
    type(seed, QLatin1String(wrong));
    if (!*wrong) seed->clear();
    QVERIFY2(!use->isEnabled() && use->toolTip().contains(QStringLiteral("18446744073709551615")), wrong);
  }
  type(seed, QStringLiteral("18446744073709551615"));
  QVERIFY(use->isEnabled());
  const auto before = f.controller().document();
  QTest::mouseClick(use, Qt::LeftButton);
  QTRY_VERIFY(f.controller().document() != before);
  QCOMPARE(f.controller().document()->request.seed, std::numeric_limits<std::uint64_t>::max());
  QTRY_VERIFY(!child<QDialog>(f, "inputs-dialog"));
  dialog = openInputs();
  QVERIFY(dialog);
  QCOMPARE(dialog->findChild<QLineEdit*>(QStringLiteral("inputs-seed"))->text(), QStringLiteral("18446744073709551615"));
  // The amount of memory beside it.
  QCOMPARE(bytesFromText(QStringLiteral("2305843009213693953")), std::optional<std::int64_t>(2305843009213693953));
  QCOMPARE(bytesFromText(QStringLiteral("1.5 KiB")), std::optional<std::int64_t>(1536));
  QVERIFY(!bytesFromText(QStringLiteral("9999999 T")));
}

// Holds W12: only where a click sets a breakpoint does the tooltip say so.
void DefectsTest::theTooltipPromisesWhatAClickDoes() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& view = f.listing(TraceKind::backward);
  const auto row = view.rowOf(f.analysis().backward.ops[4]);
  const auto rect = view.rowRect(row);
  const QPoint left(rect.height() / 2, rect.center().y()), right(rect.height() * 7 / 6, rect.center().y());
  const auto promise = QStringLiteral("set a breakpoint");
  QVERIFY2(!tipAt(view.viewport(), right).contains(promise), qPrintable(QToolTip::text()));
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, right);
  QVERIFY(breakpoints(f).empty());
  QVERIFY2(tipAt(view.viewport(), left).contains(promise), qPrintable(QToolTip::text()));
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, left);
  QCOMPARE(breakpoints(f).size(), std::size_t(1));
}

// Holds W14: a menu that is open while the file is read again closes, as its entries are for ids that are no longer good.
void DefectsTest::menusGoWithTheirDocument() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  front(f, "dock-modules");
  auto* modules = child<QTreeView>(f, "modules");
  const auto row = modules->visualRect(modules->model()->index(0, 0)).center();
  QTest::mouseClick(modules->viewport(), Qt::LeftButton, Qt::NoModifier, row);
  auto& view = f.listing(TraceKind::forward);
  const auto line = view.rowRect(view.rowOf(f.analysis().forward.ops[1])).center();
  for (auto [widget, at] : {std::pair<QWidget*, QPoint>(view.viewport(), line), {modules->viewport(), row}}) {
    const auto before = f.controller().document();
    withMenu(widget, at, [&](QMenu&) {
      f.controller().reload();
      QTRY_VERIFY(f.controller().document() != before);
      QVERIFY(!QApplication::activePopupWidget());
    });
    f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  }
}

// Holds W14 for dialogs that are about an op or a value.
void DefectsTest::dialogsGoWithTheirDocument() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  for (const auto& [name, open] : {std::pair<const char*, std::function<void()>>("fill", [&] { action(f.window(), "fill")->trigger(); }),
                                   {"save-contents", [&] { action(f.window(), "save-contents")->trigger(); }},
                                   {"inputs", [&] { f.press(Qt::Key_I, Qt::ControlModifier); }},
                                   {"comment", [&] { f.press(Qt::Key_Semicolon); }}}) {
    toFront(f);
    f.click(TraceKind::forward, f.analysis().forward.ops[1]);
    f.selection().selectValue(f.analysis().joint.inputs[0]);
    QTRY_VERIFY2(action(f.window(), name)->isEnabled(), name);
    open();
    const auto dialogs = [&] {
      int count = 0;
      for (const auto* dialog : f.window().findChildren<QDialog*>()) count += dialog->isVisible();
      return count;
    };
    QTRY_COMPARE(dialogs(), 1);
    const auto before = f.controller().document();
    f.controller().reload();
    QTRY_VERIFY(f.controller().document() != before);
    QTRY_COMPARE(dialogs(), 0);
  }
}

// Holds W14: a window that closes under an open menu takes the menu along, once.
void DefectsTest::aMenuMayOutliveItsWindow() {
  WindowFixture f;
  const QPointer<MainWindow> window = new MainWindow(f.window().shared());
  window->show();
  window->openFile(QStringLiteral("synthetic:3"));
  QTRY_VERIFY(window->context().controller->document());
  auto& view = window->listings().listing(TraceKind::forward);
  const auto rect = view.rowRect(1);
  const QPoint at(rect.height() + 58, rect.center().y());
  bool closed = false;
  QTest::mouseClick(view.viewport(), Qt::RightButton, Qt::NoModifier, at);
  QTimer::singleShot(0, &f.window(), [&] {
    QVERIFY(QApplication::activePopupWidget());
    window->close();
    QTRY_VERIFY(!window);
    closed = true;
  });
  QContextMenuEvent event(QContextMenuEvent::Mouse, at, view.viewport()->mapToGlobal(at));
  QApplication::sendEvent(view.viewport(), &event);
  QVERIFY(closed);
}

// Holds W15: breakpoints come back in the order in which they were set, however many threads there are.
void DefectsTest::breakpointsKeepTheirOrder() {
  auto* pool = QThreadPool::globalInstance();
  const int threads = pool->maxThreadCount();
  pool->setMaxThreadCount(8);
  WindowFixture f;
  const auto order = [&] {
    std::vector<std::int64_t> skips;
    for (const auto& breakpoint : breakpoints(f)) skips.push_back(breakpoint.skip);
    return skips;
  };
  const QTemporaryDir folder;
  const auto path = makeFile(folder, QStringLiteral("synthetic300"));
  QVERIFY(f.open(path));
  constexpr int count = 60;
  std::vector<std::int64_t> wanted;
  for (int i = 1; i <= count; ++i) {
    wanted.push_back(i);
    // Now one that is found at once, now one for which the traces are walked.
    const auto words = i % 2 ? QStringLiteral("module layers.299 if nan after %1") : QStringLiteral("any if nan after %1");
    f.controller().marks().addBreakpoint(words.arg(i), [](const QString& problem) { QCOMPARE(problem, QString()); });
  }
  QTRY_COMPARE(breakpoints(f).size(), std::size_t(count));
  QCOMPARE(order(), wanted);
  for (int start = 0; start < 3; ++start) {
    f.controller().close();
    QVERIFY(f.open(path));
    QTRY_COMPARE(breakpoints(f).size(), std::size_t(count));
    QCOMPARE(order(), wanted);
  }
  pool->setMaxThreadCount(threads);
}

// Holds W16: a letter that is typed into a tree searches there, and runs no command.
void DefectsTest::lettersSearchInTrees() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:12")));
  front(f, "dock-modules");
  auto* tree = child<QTreeView>(f, "modules");
  tree->expandAll();
  tree->setFocus();
  QTest::keyClick(tree, Qt::Key_Home);
  const auto first = tree->currentIndex().data().toString();
  const auto shown = f.window().listings().isShown(TraceKind::computation);
  QCOMPARE(first, QStringLiteral("layers"));
  QTest::keyClicks(tree, QStringLiteral("li"));
  QCOMPARE(tree->currentIndex().data().toString(), QStringLiteral("linear"));
  QTest::keyClicks(tree, QStringLiteral("c"));
  QCOMPARE(f.window().listings().isShown(TraceKind::computation), shown);
  // Where nothing is searched in, it is the command's key.
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_C);
  QCOMPARE(f.window().listings().isShown(TraceKind::computation), !shown);
}

// Holds W16 for the boxes to choose from.
void DefectsTest::lettersChooseInBoxes() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  front(f, "dock-compare");
  auto* box = child<QComboBox>(f, "compare-precision");
  box->setFocus();
  const auto shown = f.window().listings().isShown(TraceKind::computation);
  QTest::keyClicks(box, QStringLiteral("b"));
  QVERIFY2(box->currentText().startsWith(QLatin1Char('b')), qPrintable(box->currentText()));
  QTest::keyClicks(box, QStringLiteral("c"));
  QCOMPARE(f.window().listings().isShown(TraceKind::computation), shown);
}

}  // namespace retrograd::views

QTEST_MAIN(retrograd::views::DefectsTest)
#include "defects_test.moc"
