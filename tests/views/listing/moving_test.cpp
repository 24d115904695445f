#include <QAbstractButton>
#include <QAction>
#include <QApplication>
#include <QMenu>
#include <QTest>
#include <QToolButton>
#include <QTreeView>

#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/docks/pin_button.h"
#include "views/session/own_names.h"

namespace retrograd::views {

/// The list of jumps, Esc as back, and docks that are pinned.
class MovingTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void theListLeadsToAnyJump();
  void theListStaysShort();
  void escapeLeadsBack();
  void aPinnedDockStays();
  void whatAPinnedDockSelectsIsSelected();
  void referencesAreWalkedWhilePinned();
  void questionsEndThePin();
  void aPinOutlivesReading();
  void pinsHaveAKeyAndSayWhyNot();
  void theTitleSaysWhatAPanelShows();
};

namespace {

QMenu& jumps(WindowFixture& f) {
  auto& menu = *f.window().findChild<QMenu*>(QStringLiteral("jumps"));
  Q_EMIT menu.aboutToShow();
  return menu;
}

int checkedAt(const QMenu& menu) {
  for (int i = 0; i < menu.actions().size(); ++i)
    if (menu.actions()[i]->isChecked()) return i;
  return -1;
}

QDockWidget& dock(WindowFixture& f, const char* name) {
  return *f.window().findChild<QDockWidget*>(QStringLiteral("dock-") + QLatin1String(name));
}
PinButton& pin(WindowFixture& f, const char* name) { return *dock(f, name).findChild<PinButton*>(); }
QTreeView& tree(WindowFixture& f, const char* name) { return *f.window().findChild<QTreeView*>(QLatin1String(name)); }

/// All texts of a tree's rows.
QString shown(const QTreeView& view, const QModelIndex& below = {}) {
  QString all;
  for (int row = 0; row < view.model()->rowCount(below); ++row) {
    for (int column = 0; column < view.model()->columnCount(below); ++column)
      all += view.model()->index(row, column, below).data().toString() + QLatin1Char('|');
    all += QLatin1Char('\n') + shown(view, view.model()->index(row, 0, below));
  }
  return all;
}

void front(WindowFixture& f, const char* name) {
  f.raise(dock(f, name).objectName().toLatin1().constData());
  QVERIFY(QTest::qWaitFor([&] {
    return !pin(f, name).isHidden() && pin(f, name).width() > 0;
  }));  // the title bar is laid out with the dock
}

}  // namespace

void MovingTest::theListLeadsToAnyJump() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QCOMPARE(jumps(f).actions().size(), 1);
  QVERIFY(!jumps(f).actions()[0]->isEnabled());
  const auto& ops = f.analysis().forward.ops;
  f.click(TraceKind::forward, ops[0]);
  for (int i : {2, 4}) f.window().jumpTo(ops[static_cast<std::size_t>(i)]);
  f.click(TraceKind::forward, ops[5]);  // no jump: not in the list
  QCOMPARE(jumps(f).actions().size(), 3);
  QCOMPARE(checkedAt(jumps(f)), 0);
  QVERIFY2(jumps(f).actions()[2]->text().startsWith(QStringLiteral("#%1 forward ").arg(ops[0].index)),
           qPrintable(jumps(f).actions()[2]->text()));
  QVERIFY(jumps(f).actions()[0]->text().startsWith(
      QStringLiteral("#%1 forward ").arg(ops[5].index)));  // where one really is
  jumps(f).actions()[2]->trigger();
  QCOMPARE(f.selection().op(), ops[0]);
  QCOMPARE(checkedAt(jumps(f)), 2);
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_Right, Qt::AltModifier);
  QCOMPARE(f.selection().op(), ops[2]);
  QCOMPARE(checkedAt(jumps(f)), 1);
  jumps(f).actions()[0]->trigger();
  QCOMPARE(f.selection().op(), ops[5]);
  if (const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES"); !folder.isEmpty()) {
    jumps(f).popup(f.window().mapToGlobal(QPoint(100, 100)));
    jumps(f).grab().save(folder + QStringLiteral("/jumps.png"));
    jumps(f).close();
  }
  QVERIFY(f.open(QStringLiteral("synthetic:2")));
  QCOMPARE(jumps(f).actions().size(), 1);
}

void MovingTest::theListStaysShort() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:30")));
  const auto& ops = f.analysis().forward.ops;
  f.selection().select(ops[0]);
  for (std::size_t i = 1; i < 60; ++i) f.window().jumpTo(ops[i]);
  QCOMPARE(jumps(f).actions().size(), 20);
  QCOMPARE(checkedAt(jumps(f)), 0);
  for (int i = 0; i < 15; ++i) jumps(f).actions().last()->trigger();  // to the oldest in the list, again and again
  QCOMPARE(f.selection().op(), ops[0]);
  QCOMPARE(checkedAt(jumps(f)), 19);
}

void MovingTest::escapeLeadsBack() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  const auto& ops = f.analysis().forward.ops;
  f.click(TraceKind::forward, ops[0]);
  f.window().jumpTo(ops[3]);
  f.window().jumpTo(ops[6]);
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F, Qt::ControlModifier);  // the line to find text in uses it
  f.press(Qt::Key_Escape);
  QCOMPARE(f.selection().op(), ops[6]);
  f.press(Qt::Key_Escape);
  QCOMPARE(f.selection().op(), ops[3]);
  f.press(Qt::Key_Escape);  // once: further is Alt+Left
  QCOMPARE(f.selection().op(), ops[3]);
  f.window().jumpTo(ops[6]);
  front(f, "why");
  tree(f, "inspector").setFocus();
  f.press(Qt::Key_Escape);
  QCOMPARE(f.selection().op(), ops[3]);
  f.window().jumpTo(ops[6]);
  f.click(TraceKind::forward, ops[1]);
  f.press(Qt::Key_Escape);  // not where the jump led
  QCOMPARE(f.selection().op(), ops[1]);
  f.window().jumpTo(ops[3]);
  f.window().messages().show(MessageBar::Kind::note, QStringLiteral("a message goes first"));
  f.press(Qt::Key_Escape);
  QVERIFY(!f.window().messages().isVisible());
  QCOMPARE(f.selection().op(), ops[3]);
}

void MovingTest::aPinnedDockStays() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  const auto& ops = f.analysis().forward.ops;
  for (const auto* name : {"why", "references", "values"}) {
    front(f, name);
    f.click(TraceKind::forward, ops[1]);
    QTRY_VERIFY(!shown(tree(f, name)).isEmpty());
    // What a dock asks the worker for may come late on a busy machine.
    if (qstrcmp(name, "values") == 0)
      QTRY_VERIFY_WITH_TIMEOUT(shown(tree(f, name)).contains(QStringLiteral("present")), 20000);
    QVERIFY(f.quiet());
    const auto before = shown(tree(f, name));
    auto& button = pin(f, name);
    const auto title = dock(f, name).windowTitle();
    QVERIFY2(button.isVisible() && !button.isChecked(), name);
    QTest::mouseClick(&button, Qt::LeftButton);
    QVERIFY(button.isChecked());
    QVERIFY2(dock(f, name).windowTitle().contains(
                 QString::fromStdString(f.analysis().document->displayName(f.analysis().document->outputs(ops[1])[0]))),
             qPrintable(dock(f, name).windowTitle()));
    f.click(TraceKind::forward, ops[5]);
    QCOMPARE(f.selection().op(), ops[5]);
    QVERIFY(f.quiet());
    QCOMPARE(shown(tree(f, name)), before);
    f.picture(QStringLiteral("pinned-") + QLatin1String(name));
    f.theme().choose(Theme::Choice::dark);
    f.picture(QStringLiteral("pinned-dark-") + QLatin1String(name));
    f.theme().choose(Theme::Choice::light);
    QTest::mouseClick(&button, Qt::LeftButton);  // follows again, at once
    QCOMPARE(dock(f, name).windowTitle(), title);
    QTRY_VERIFY(shown(tree(f, name)) != before);
  }
}

void MovingTest::whatAPinnedDockSelectsIsSelected() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  const auto& ops = f.analysis().forward.ops;
  front(f, "values");
  f.click(TraceKind::forward, ops[1]);
  QTRY_VERIFY(tree(f, "values").model()->rowCount() > 1);
  f.window().findChild<QAction*>(QStringLiteral("action-pin-values"))->trigger();
  f.click(TraceKind::forward, ops[5]);
  const auto before = shown(tree(f, "values"));
  const auto first = tree(f, "values").model()->index(0, 0);
  QTest::mouseClick(tree(f, "values").viewport(), Qt::LeftButton, Qt::NoModifier,
                    tree(f, "values").visualRect(first).center());
  QCOMPARE(f.selection().op(), ops[5]);
  QCOMPARE(f.selection().value(), f.analysis().document->operands(ops[1])[0]);
  QCOMPARE(tree(f, "values").currentIndex().row(), 0);
  QCOMPARE(tree(f, "values").model()->rowCount(), before.count(QLatin1Char('\n')));
}

void MovingTest::referencesAreWalkedWhilePinned() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  front(f, "references");
  f.click(TraceKind::forward, f.analysis().forward.ops[2]);
  QTRY_VERIFY(tree(f, "references").model()->rowCount() > 0);
  QTest::mouseClick(&pin(f, "references"), Qt::LeftButton);
  QVERIFY(pin(f, "references").isChecked());
  const auto before = shown(tree(f, "references"));
  f.listing(TraceKind::forward).setFocus();
  QSet<int> seen;
  for (int i = 0; i < 12; ++i) {
    f.press(Qt::Key_BracketRight);
    QVERIFY(f.quiet());
    seen.insert(f.selection().op().index);
  }
  QVERIFY2(seen.size() >= 3, qPrintable(QString::number(seen.size())));
  QCOMPARE(shown(tree(f, "references")), before);
}

void MovingTest::questionsEndThePin() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  const auto& ops = f.analysis().forward.ops;
  front(f, "references");
  f.click(TraceKind::forward, ops[1]);
  QTest::mouseClick(&pin(f, "references"), Qt::LeftButton);
  f.click(TraceKind::forward, ops[5]);
  QVERIFY(pin(f, "references").isChecked());
  f.press(Qt::Key_X);  // asks about what is selected
  QVERIFY(!pin(f, "references").isChecked());
  const auto name =
      QString::fromStdString(f.analysis().document->displayName(f.analysis().document->outputs(ops[5])[0]));
  QTRY_VERIFY2(shown(tree(f, "references")).startsWith(name), qPrintable(shown(tree(f, "references"))));
}

void MovingTest::aPinOutlivesReading() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  front(f, "why");
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  QTest::mouseClick(&pin(f, "why"), Qt::LeftButton);
  f.click(TraceKind::forward, f.analysis().forward.ops[5]);
  const auto before = shown(tree(f, "inspector"));
  const auto title = dock(f, "why").windowTitle();
  const auto document = f.controller().document();
  f.controller().reload();
  QTRY_VERIFY(f.controller().document() != document && !f.controller().opening());
  QVERIFY(pin(f, "why").isChecked());
  QCOMPARE(shown(tree(f, "inspector")), before);
  QCOMPARE(dock(f, "why").windowTitle(), title);
  QVERIFY(f.open(QStringLiteral("synthetic:2")));  // another file
  QVERIFY(!pin(f, "why").isChecked());
  f.click(TraceKind::forward, f.analysis().forward.ops[0]);
  QVERIFY(!shown(tree(f, "inspector")).isEmpty());
}

void MovingTest::pinsHaveAKeyAndSayWhyNot() {
  WindowFixture f;
  auto* action = f.window().findChild<QAction*>(QStringLiteral("action-pin-why"));
  QVERIFY(!action->isEnabled() && action->toolTip().contains(QStringLiteral("No file is open")));
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QVERIFY(f.quiet());
  f.selection().select({});
  QVERIFY(!action->isEnabled() && action->toolTip().contains(QStringLiteral("Nothing is selected")));
  front(f, "why");
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  f.press(Qt::Key_P, Qt::ShiftModifier);  // the focus is in a listing
  QVERIFY(!action->isChecked());
  tree(f, "inspector").setFocus();
  f.press(Qt::Key_P, Qt::ShiftModifier);
  QVERIFY(action->isChecked() && pin(f, "why").isChecked());
  f.press(Qt::Key_P, Qt::ShiftModifier);
  QVERIFY(!action->isChecked());
}

// Beside the dock's own name, which its tab and the menu keep; as a pin's title while it is pinned.
void MovingTest::theTitleSaysWhatAPanelShows() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  const auto& ops = f.analysis().forward.ops;
  const auto& document = *f.analysis().document;
  const auto called = [&](BoundSymbolId op) { return nameOf(document, document.outputs(op)[0], nullptr); };
  auto& inspector = dock(f, "why");
  const auto* shown = inspector.findChild<ElidedLabel*>(QStringLiteral("shown"), Qt::FindDirectChildrenOnly);
  QVERIFY(shown);
  front(f, "why");
  f.selection().select(ops[0]);
  QCOMPARE(shown->text(), called(ops[0]));
  f.selection().select(ops[1]);
  QCOMPARE(shown->text(), called(ops[1]));
  QVERIFY(called(ops[0]) != called(ops[1]));
  QCOMPARE(inspector.windowTitle(), QStringLiteral("Why"));
  QCOMPARE(inspector.toggleViewAction()->text(), QStringLiteral("Why"));
  QVERIFY(QTest::qWaitFor([&] { return shown->isVisible() && shown->width() > 0; }));
  QVERIFY(shown->geometry().right() < pin(f, "why").x());
  pin(f, "why").click();
  f.selection().select(ops[0]);
  QCOMPARE(shown->text(), QString());
  QVERIFY(inspector.windowTitle().contains(called(ops[1])));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::MovingTest)
#include "moving_test.moc"
