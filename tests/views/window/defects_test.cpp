#include <QClipboard>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QToolTip>

#include "tests/views/menus.h"
#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "views/dialogs/export_dialog.h"
#include "views/parts/history_memory.h"
#include "views/settings/keymap.h"
#include "views/text/format.h"

namespace retrograd::views {

/// What the window once got wrong, by the numbers of the findings: copying, paths, keys in texts, seeds, tooltips,
/// letters that are typed.
class DefectsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void copyByMenuAndByKeyIsTheSame();
  void treesAreCopiedByMenuAndByKey();
  void theExportDialogKeepsWhatWasChosen();
  void textsNameTheKeysOfNow();
  void seedsHaveAllTheirBits();
  void theTooltipPromisesWhatAClickDoes();
  void lettersSearchInTrees();
  void lettersChooseInBoxes();
};

namespace {

QString clipboard() { return QApplication::clipboard()->text(); }

void type(QWidget* widget, const QString& text) {
  widget->setFocus();
  QTest::keyClick(widget, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(widget, text);
}

QString tipAt(QWidget* viewport, const QPoint& at) {
  QHelpEvent event(QEvent::ToolTip, at, viewport->mapToGlobal(at));
  QApplication::sendEvent(viewport, &event);
  return event.isAccepted() && QToolTip::isVisible() ? QToolTip::text() : QString();
}

}  // namespace

// Several lines are copied by the menu as by the key.
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
  const auto first = view.rowRect(view.cursorRow() - 2);
  withMenu(view.viewport(), QPoint(first.height() + 58, first.center().y()),
           [](QMenu& menu) { clickEntry(menu, QStringLiteral("Copy")); });
  QCOMPARE(clipboard(), byKey);
  QCOMPARE(f.selection().op(),
           f.analysis().forward.ops[1]);  // the commands of the menu are for the line that was clicked
  // A line next to them is copied alone.
  const auto other = view.rowRect(view.cursorRow() + 2);
  withMenu(view.viewport(), QPoint(other.height() + 58, other.center().y()),
           [](QMenu& menu) { clickEntry(menu, QStringLiteral("Copy")); });
  QVERIFY(!clipboard().contains(QLatin1Char('\n')) && !byKey.contains(clipboard()));
}

// So are those of the trees of the docks.
void DefectsTest::treesAreCopiedByMenuAndByKey() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  for (const auto& [dock, name] :
       {std::pair("dock-why", "inspector"), {"dock-modules", "modules"}, {"dock-values", "values"}}) {
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
    const auto first = row.siblingAtColumn(tree->header()->logicalIndex(0));  // as the columns are
    QVERIFY2(byKey.startsWith(first.data().toString() + QLatin1Char('\t')), qPrintable(byKey));
    QApplication::clipboard()->clear();
    withMenu(tree->viewport(), at, [](QMenu& menu) { clickEntry(menu, QStringLiteral("Copy")); });
    QTRY_COMPARE(clipboard(), byKey);
  }
}

// Neither another format nor a reload puts back the path that someone typed.
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

// No text names a key that a preset took away.
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

  // Keys of the program's own that no command has any more: whatever the window says while a run is under way names
  // none of them.
  f.press(Qt::Key_C);
  QTRY_VERIFY(f.execution().running);
  QSet<QString> gone, present;
  for (const auto* action : f.window().findChildren<QAction*>()) {
    const auto own = action->property("ownKey").value<QKeySequence>();
    if (own.count() > 0 && own != action->shortcut() && own.toString().size() > 1)
      gone << own.toString(QKeySequence::NativeText);
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

// Numbers of 64 bits come through the window whole.
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
  QCOMPARE(dialog->findChild<QLineEdit*>(QStringLiteral("inputs-seed"))->text(),
           QStringLiteral("18446744073709551615"));
  // The amount of memory next to it.
  QCOMPARE(bytesFromText(QStringLiteral("2305843009213693953")), std::optional<std::int64_t>(2305843009213693953));
  QCOMPARE(bytesFromText(QStringLiteral("1.5 KiB")), std::optional<std::int64_t>(1536));
  QVERIFY(!bytesFromText(QStringLiteral("9999999 T")));
}

// Only where a click sets a breakpoint does the tooltip say so.
void DefectsTest::theTooltipPromisesWhatAClickDoes() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& view = f.listing(TraceKind::backward);
  const auto row = view.rowOf(f.analysis().backward.ops[4]);
  const auto rect = view.rowRect(row);
  const int line = rect.height() / static_cast<int>(1 + view.shownCode(row).breaks.size());
  const QPoint left(line / 2, rect.top() + line / 2), right(line * 7 / 6, rect.top() + line / 2);
  const auto promise = QStringLiteral("set a breakpoint");
  QVERIFY2(!tipAt(view.viewport(), right).contains(promise), qPrintable(QToolTip::text()));
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, right);
  QVERIFY(breakpoints(f).empty());
  QVERIFY2(tipAt(view.viewport(), left).contains(promise), qPrintable(QToolTip::text()));
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, left);
  QCOMPARE(breakpoints(f).size(), std::size_t(1));
}

// A letter that is typed into a tree searches there, and runs no command.
void DefectsTest::lettersSearchInTrees() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:12")));
  front(f, "dock-modules");
  QVERIFY(f.quiet());
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

// The same of the boxes to choose from.
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

WINDOW_TEST(retrograd::views::DefectsTest)
#include "defects_test.moc"
