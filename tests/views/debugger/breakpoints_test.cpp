#include <QApplication>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QStatusBar>
#include <QTest>
#include <QTreeView>

#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "views/models/breakpoints_model.h"

namespace retrograd::views {

/// Breakpoints in words: made, switched, walked, kept with the file; with real mouse and key events.
class BreakpointsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void breakpointIsAddedInWords();
  void aBreakpointNamesItsOpInANarrowPanel();
  void wordsThatDoNotParseSayWhy();
  void aConditionAloneProposesAnyOp();
  void aConditionIsEditedInItsPlace();
  void breakpointsSwitchAndGoByKey();
  void conditionsSurviveAReload();
  void breakpointsAreKeptWithTheFile();
  void watchesAreKeptWithTheFile();
};

void BreakpointsTest::breakpointIsAddedInWords() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  addBreakpoint(f, QStringLiteral("kind mm after 1"));
  QVERIFY(QTest::qWaitFor([&] { return breakpoints(f).size() == 1; }, 5000));
  QVERIFY(f.window().findChild<QLineEdit*>(QStringLiteral("breakpoint-words"))->text().isEmpty());
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::breakpoint);
  // The first mm is let pass; the backward has two a layer.
  QCOMPARE(f.execution().current, f.analysis().backward.ops[4]);
  QVERIFY(f.execution().hit.has_value());
  QVERIFY(f.window().statusBar()->currentMessage().contains(QStringLiteral("kind mm after 1")));
  QCOMPARE(f.execution().hits, (std::vector<std::int64_t>{2}));
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("breakpoints"));
  QCOMPARE(table->model()->index(0, BreakpointsModel::hits).data().toString(), QStringLiteral("2, first 1 pass"));
}

// By the op's number and by its call, which is in sight at 1280 pixels.
void BreakpointsTest::aBreakpointNamesItsOpInANarrowPanel() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  f.window().resize(1280, 720);
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-breakpoints");
  const auto op = f.analysis().backward.ops[4];
  f.click(TraceKind::backward, op);
  f.press(Qt::Key_F9);
  const auto* table = f.window().findChild<QTreeView*>(QStringLiteral("breakpoints"));
  QTRY_COMPARE(table->model()->rowCount(), 1);
  QVERIFY(table->model()
              ->index(0, BreakpointsModel::where)
              .data()
              .toString()
              .startsWith(QStringLiteral("#%1 ").arg(op.index)));
  // So does the message of a stop.
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QVERIFY2(f.window().statusBar()->currentMessage().contains(QStringLiteral("'#%1 ").arg(op.index)),
           qPrintable(f.window().statusBar()->currentMessage()));
  const auto room = [&] {
    return table->viewport()->width() - table->header()->sectionViewportPosition(BreakpointsModel::columns - 1);
  };
  QTRY_VERIFY(room() > 24 * table->fontMetrics().averageCharWidth());
}

void BreakpointsTest::wordsThatDoNotParseSayWhy() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  addBreakpoint(f, QStringLiteral("kind conv2d"));
  auto* problem = f.window().findChild<QLabel*>(QStringLiteral("breakpoint-problem"));
  QVERIFY(QTest::qWaitFor([&] { return problem->isVisible(); }, 5000));
  QVERIFY(problem->text().contains(QStringLiteral("the traces hold no op of this name")));
  QVERIFY(breakpoints(f).empty());
  auto* line = f.window().findChild<QLineEdit*>(QStringLiteral("breakpoint-words"));
  QCOMPARE(line->text(), QStringLiteral("kind conv2d"));  // to be fixed
  QTest::keyClick(line, Qt::Key_Backspace);
  QVERIFY(!problem->isVisible());
}

void BreakpointsTest::aConditionAloneProposesAnyOp() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  for (const auto* words : {"norm > 1", "if norm > 1"}) {
    f.window().findChild<QLineEdit*>(QStringLiteral("breakpoint-words"))->clear();
    addBreakpoint(f, QLatin1String(words));
    const auto* problem = f.window().findChild<QLabel*>(QStringLiteral("breakpoint-problem"));
    QTRY_VERIFY(problem->isVisible());
    QVERIFY2(problem->text().contains(QStringLiteral("did you mean 'any if norm > 1'?")), qPrintable(problem->text()));
  }
  f.window().findChild<QLineEdit*>(QStringLiteral("breakpoint-words"))->clear();
  addBreakpoint(f, QStringLiteral("any if norm > 1"));
  QTRY_COMPARE(breakpoints(f).size(), std::size_t(1));
}

// A double click, and F2 in whatever column; what is typed goes into the condition and to no command.
void BreakpointsTest::aConditionIsEditedInItsPlace() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  addBreakpoint(f, QStringLiteral("kind mm"));
  QTRY_COMPARE(breakpoints(f).size(), std::size_t(1));
  const auto selected = f.selection().op();
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("breakpoints"));
  const auto edit = [&](const QString& words) {
    auto* editor = qobject_cast<QLineEdit*>(QApplication::focusWidget());
    QVERIFY(editor && table->isAncestorOf(editor));
    editor->selectAll();
    QTest::keyClicks(editor, words);
    QTest::keyClick(editor, Qt::Key_Return);
    QTRY_COMPARE(QApplication::focusWidget(), table);
  };
  const auto at = table->visualRect(table->model()->index(0, BreakpointsModel::condition)).center();
  QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, at);
  QTest::mouseDClick(table->viewport(), Qt::LeftButton, {}, at);
  edit(QStringLiteral("norm > 10 after 2"));
  QCOMPARE(breakpoints(f)[0].when, Breakpoint::When::norm);
  QCOMPARE(breakpoints(f)[0].limit, 10.0);
  QCOMPARE(breakpoints(f)[0].skip, 2);
  QCOMPARE(breakpoints(f)[0].text, std::string("mm"));
  QCOMPARE(f.selection().op(), selected);
  const auto* problem = f.window().findChild<QLabel*>(QStringLiteral("breakpoint-problem"));
  table->setCurrentIndex(table->model()->index(0, BreakpointsModel::where));
  f.press(Qt::Key_F2);
  edit(QStringLiteral("norm"));
  QVERIFY(problem->isVisible());
  QCOMPARE(breakpoints(f)[0].limit, 10.0);
  f.press(Qt::Key_F2);
  edit(QStringLiteral(" "));
  QVERIFY(!problem->isVisible());
  QCOMPARE(breakpoints(f)[0].when, Breakpoint::When::always);
  QCOMPARE(breakpoints(f)[0].skip, 0);
}

void BreakpointsTest::breakpointsSwitchAndGoByKey() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto op = f.analysis().backward.ops[4];
  f.click(TraceKind::backward, op);
  f.press(Qt::Key_F9);
  f.click(TraceKind::forward, f.analysis().forward.ops[0]);
  front(f, "dock-breakpoints");
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("breakpoints"));
  QCOMPARE(table->model()->rowCount(), 1);
  table->setFocus();
  table->setCurrentIndex(table->model()->index(0, 1));
  f.press(Qt::Key_Space);
  QVERIFY(!breakpoints(f)[0].enabled);
  QCOMPARE(f.window().context().execution->mark(op), BreakpointMark::disabled);
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::end);
  table->setFocus();
  f.press(Qt::Key_Return);
  QCOMPARE(f.selection().op(), op);
  table->setFocus();
  f.press(Qt::Key_Delete);
  QVERIFY(breakpoints(f).empty());
}

void BreakpointsTest::conditionsSurviveAReload() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto value = outputOf(f.analysis(), f.analysis().forward.ops[4]);
  const auto name = QString::fromStdString(f.analysis().document->displayName(value));
  addBreakpoint(f, QStringLiteral("value %1 if norm > 2").arg(name));
  QVERIFY(QTest::qWaitFor([&] { return breakpoints(f).size() == 1; }, 5000));
  f.click(TraceKind::forward, f.analysis().forward.ops[4]);
  f.press(Qt::Key_T, Qt::ControlModifier);
  const auto before = f.controller().document();
  f.press(Qt::Key_R, Qt::ControlModifier);
  QVERIFY(QTest::qWaitFor([&] { return f.controller().document() != before; }, 5000));
  QCOMPARE(breakpoints(f).size(), std::size_t(1));
  QCOMPARE(breakpoints(f)[0].limit, 2.0);
  const auto now = f.analysis().forward.ops[4];
  QCOMPARE(breakpoints(f)[0].value, outputOf(f.analysis(), now));
  QCOMPARE(f.window().context().execution->mark(now), BreakpointMark::conditional);
  QCOMPARE(f.window().context().execution->watches(), std::vector{outputOf(f.analysis(), now)});
}

void BreakpointsTest::breakpointsAreKeptWithTheFile() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  addBreakpoint(f, QStringLiteral("kind mm if nan"));
  addBreakpoint(f, QStringLiteral("module layers.1 after 2"));
  QTRY_COMPARE(breakpoints(f).size(), std::size_t(2));
  f.controller().marks().enableBreakpoint(1, false);
  QVERIFY(f.open(QStringLiteral("synthetic2")));
  QVERIFY(f.quiet());
  QCOMPARE(breakpoints(f).size(), std::size_t(0));  // they are the other file's
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QTRY_COMPARE(breakpoints(f).size(), std::size_t(2));
  QTRY_COMPARE(
      std::count_if(breakpoints(f).begin(), breakpoints(f).end(), [](const Breakpoint& b) { return b.enabled; }), 1);
  for (const auto& b : breakpoints(f)) QCOMPARE(b.enabled, b.when == Breakpoint::When::nan);
  f.controller().marks().removeBreakpoint(0);
  f.controller().marks().removeBreakpoint(0);
  QVERIFY(f.open(QStringLiteral("synthetic2")));
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QVERIFY(f.quiet());
  QCOMPARE(breakpoints(f).size(), std::size_t(0));
}

void BreakpointsTest::watchesAreKeptWithTheFile() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto watches = [&] { return f.window().context().execution->watches(); };
  const auto gradient = outputOf(f.analysis(), f.analysis().backward.ops[4]);
  const auto forward = outputOf(f.analysis(), f.analysis().forward.ops[1]);
  const auto name = f.analysis().document->displayName(gradient);
  f.controller().marks().addWatch(gradient);
  f.controller().marks().addWatch(forward);
  QVERIFY(f.open(QStringLiteral("synthetic2")));
  QVERIFY(f.quiet());
  QCOMPARE(watches().size(), std::size_t(0));  // they are the other file's
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QTRY_COMPARE(watches().size(), std::size_t(2));
  QCOMPARE(f.analysis().document->displayName(watches()[0]), name);
  for (auto value : watches()) f.controller().marks().removeWatch(value);
  QVERIFY(f.open(QStringLiteral("synthetic2")));
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QVERIFY(f.quiet());
  QCOMPARE(watches().size(), std::size_t(0));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::BreakpointsTest)
#include "breakpoints_test.moc"
