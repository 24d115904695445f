#include <QAbstractButton>
#include <QAccessible>
#include <QDropEvent>
#include <QFile>
#include <QLineEdit>
#include <QMimeData>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>

#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/dialogs/inputs_dialog.h"

namespace retrograd::views {

/// Journeys through the window with real mouse and key events.
class WindowTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void clickOnBackwardOpLightsUpItsOrigin();
  void originKeyJumpsAndComesBack();
  void originKeyOnAHeadingOfTheBackwardLeadsToTheForward();
  void historyWalksJumps();
  void stepsOverTheBorderAndBack();
  void breakpointsStopAContinue();
  void stopsAtABadNumber();
  void runningOpIsNamedAndCanBeStopped();
  void blockedReaderLeavesTheWindowAlive();
  void failedOpenKeepsTheDocument();
  void changedFileIsReloadedWithItsBreakpoints();
  void disabledActionsSayWhy();
  void droppedFileOpens();
  void inputsDialogAsks();
  void everyWidgetHasAName();
  void devicesAreChosenOrSayWhyNot();
  void pictures();
};

namespace {

Role roleOf(const Analysis& analysis, BoundSymbolId op) { return analysis.document->boundSymbol(op).origin.role; }

}  // namespace

void WindowTest::clickOnBackwardOpLightsUpItsOrigin() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic200")));
  const auto op = f.analysis().backward.ops[2];  // mm of the last layer's linear
  f.click(TraceKind::backward, op);
  QCOMPARE(f.selection().op(), op);
  const auto origin = f.analysis().document->boundSymbol(op).origin.op;
  QCOMPARE(f.selection().relation(origin), Relation::origin);
  for (auto derived : f.analysis().links.derived(origin))
    if (roleOf(f.analysis(), derived) == Role::forward) QCOMPARE(f.selection().relation(derived), Relation::origin);
  // The origin is at the far end of forward and computation: both have scrolled there.
  f.window().listings().toggleAction(TraceKind::computation)->setChecked(true);
  auto& forward = f.listing(TraceKind::forward);
  QVERIFY(forward.isRowVisible(forward.rowOf(f.analysis().links.forwardOf(*f.analysis().document, op))));
  auto& joint = f.listing(TraceKind::joint);
  QVERIFY(joint.isRowVisible(joint.rowOf(f.analysis().links.forwardOf(*f.analysis().document, op))));
}

void WindowTest::originKeyJumpsAndComesBack() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic50")));
  const auto op = f.analysis().backward.ops[2];
  f.click(TraceKind::backward, op);
  f.press(Qt::Key_G);
  const auto forward = f.analysis().links.forwardOf(*f.analysis().document, op);
  QCOMPARE(f.selection().op(), forward);
  QVERIFY(f.listing(TraceKind::forward).hasFocus());
  f.press(Qt::Key_G);
  QCOMPARE(f.selection().op(), op);
  QVERIFY(f.listing(TraceKind::backward).hasFocus());
  // From a forward op that was not jumped to, the key leads to its first backward op.
  f.click(TraceKind::forward, f.analysis().forward.ops[2]);
  f.press(Qt::Key_G);
  QCOMPARE(f.analysis().document->boundSymbol(f.selection().op()).origin.op,
           f.analysis().document->boundSymbol(f.analysis().forward.ops[2]).origin.op);
  QCOMPARE(roleOf(f.analysis(), f.selection().op()), Role::gradient);
}

// At once, and back to what is below the heading; a heading of the forward leads to the backward as its ops do.
void WindowTest::originKeyOnAHeadingOfTheBackwardLeadsToTheForward() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  auto& backward = f.listing(TraceKind::backward);
  const auto& document = *f.analysis().document;
  int headings = 0;
  for (int row = 0; row < backward.rowCount(); ++row) {
    if (!backward.isHeader(row)) continue;
    const auto below = backward.opAt(row + 1);
    QTest::mouseClick(backward.viewport(), Qt::LeftButton, {}, backward.rowRect(row).center());
    QCOMPARE(backward.cursorRow(), row);
    const auto operation = f.selection().op();
    QCOMPARE(OriginLinks::origin(document, below), operation);
    f.press(Qt::Key_G);
    const auto forward = f.analysis().links.forwardOf(document, below);
    QVERIFY(forward);
    QCOMPARE(f.selection().op(), forward);
    QVERIFY(f.listing(TraceKind::forward).hasFocus());
    f.press(Qt::Key_G);
    QCOMPARE(f.selection().op(), below);
    QVERIFY(backward.hasFocus());
    ++headings;
  }
  QVERIFY(headings > 2);
}

void WindowTest::historyWalksJumps() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic50")));
  const auto op = f.analysis().backward.ops[2];
  f.click(TraceKind::backward, op);
  f.press(Qt::Key_G);
  const auto forward = f.selection().op();
  f.press(Qt::Key_Left, Qt::AltModifier);
  QCOMPARE(f.selection().op(), op);
  f.press(Qt::Key_Right, Qt::AltModifier);
  QCOMPARE(f.selection().op(), forward);
}

void WindowTest::stepsOverTheBorderAndBack() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto border = f.execution().forwardSize;
  QCOMPARE(border, std::size_t(9));
  f.listing(TraceKind::forward).setFocus();
  // linear and relu by three layers: six operations; asked for faster than they run.
  for (int i = 0; i < 6; ++i) f.press(Qt::Key_F10);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, border);
  QCOMPARE(f.execution().current, f.analysis().backward.ops.front());
  QVERIFY(f.window().positionText().startsWith(QStringLiteral("backward 0/18")));
  f.press(Qt::Key_F11);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, border + 2);
  f.press(Qt::Key_F11, Qt::ControlModifier | Qt::ShiftModifier);
  f.press(Qt::Key_F10, Qt::ControlModifier | Qt::ShiftModifier);
  f.press(Qt::Key_F10, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, border - 1);
  QVERIFY(f.window().positionText().startsWith(QStringLiteral("forward 8/9")));
  // To the cursor, in both directions.
  f.click(TraceKind::backward, f.analysis().backward.ops[7]);
  f.press(Qt::Key_F10, Qt::ControlModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, border + 7);
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  f.press(Qt::Key_F10, Qt::ControlModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, std::size_t(1));
}

void WindowTest::breakpointsStopAContinue() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto op = f.analysis().backward.ops[4];
  f.click(TraceKind::backward, op);
  f.press(Qt::Key_F9);
  QVERIFY(f.window().context().execution->hasBreakpoint(op));
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::breakpoint);
  QCOMPARE(f.execution().current, op);
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::end);
  f.press(Qt::Key_F5, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().current, op);
  // A click into the gutter takes it away.
  auto& view = f.listing(TraceKind::backward);
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier,
                    QPoint(5, view.rowRect(view.rowOf(op)).center().y()));
  QVERIFY(f.window().context().execution->breakpoints().empty());
}

void WindowTest::stopsAtABadNumber() {
  auto engine = std::make_shared<FakeEngine>();
  engine->badAt = 5;
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.window().actions().breakOnBad->trigger();
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::badNumber);
  QCOMPARE(f.execution().position, std::size_t(5));
  QVERIFY(f.execution().bad.contains(f.analysis().forward.ops[4]));
}

void WindowTest::runningOpIsNamedAndCanBeStopped() {
  auto engine = std::make_shared<FakeEngine>();
  engine->opTime = std::chrono::milliseconds(20);
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic100")));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(QTest::qWaitFor(
      [&] { return f.window().busy().isVisible() && f.window().busy().text().contains(QStringLiteral("aten.")); },
      5000));
  QVERIFY(!f.window().actions().stepOver->isEnabled());
  QVERIFY(f.window().actions().stepOver->toolTip().contains(QStringLiteral("stop it first")));
  f.press(Qt::Key_F5, Qt::ShiftModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::cancelled);
  QVERIFY(f.execution().position > 0 && f.execution().position < 100);
  // It goes on from there.
  const auto stopped = f.execution().position;
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, stopped + 1);
}

void WindowTest::blockedReaderLeavesTheWindowAlive() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic500")));
  const auto before = f.controller().document();
  f.window().openFile(QStringLiteral("block.pt2"));
  QVERIFY(QTest::qWaitFor([&] { return f.window().busy().isVisible(); }, 10000));
  QTRY_VERIFY(f.window().busy().text().contains(QStringLiteral("reading weights")));
  // The old document is still there and scrolls.
  auto& view = f.listing(TraceKind::joint);
  view.setFocus();
  f.press(Qt::Key_PageDown);
  f.press(Qt::Key_PageDown);
  f.press(Qt::Key_PageDown);
  QVERIFY(view.verticalScrollBar()->value() > 0);
  QCOMPARE(f.controller().document(), before);
  auto* cancel = f.window().findChild<QAbstractButton*>(QStringLiteral("busy-cancel"));
  QTest::mouseClick(cancel, Qt::LeftButton);
  QVERIFY(QTest::qWaitFor([&] { return !f.window().busy().isVisible(); }, 10000));
  QCOMPARE(f.controller().document(), before);
  QVERIFY(!f.window().messages().isVisible());
  // Another one, this time over a blocked one that nobody cancelled.
  f.window().openFile(QStringLiteral("block.pt2"));
  QVERIFY(f.open(QStringLiteral("synthetic7")));
  QCOMPARE(f.analysis().forward.ops.size(), std::size_t(21));
}

void WindowTest::failedOpenKeepsTheDocument() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto before = f.controller().document();
  QSignalSpy failed(&f.controller(), &DocumentController::openFailed);
  f.window().openFile(QStringLiteral("nonsense.onnx"));
  QVERIFY(QTest::qWaitFor([&] { return failed.count() == 1; }, 5000));
  QVERIFY(f.window().messages().isVisible());
  QVERIFY(f.window().messages().text().contains(QStringLiteral("nonsense.onnx")));
  QCOMPARE(f.controller().document(), before);
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_Escape);
  QVERIFY(!f.window().messages().isVisible());
}

void WindowTest::changedFileIsReloadedWithItsBreakpoints() {
  QTemporaryDir folder;
  const auto path = folder.filePath(QStringLiteral("synthetic3.pt2"));
  const auto write = [&](const QByteArray& content) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
  };
  write("one");
  WindowFixture f;
  QVERIFY(f.open(path));
  const auto op = f.analysis().backward.ops[8];
  f.click(TraceKind::backward, op);
  f.press(Qt::Key_F9);
  const auto before = f.controller().document();
  write("another content");
  auto* reload = f.window().findChild<QPushButton*>(QStringLiteral("file-notice-reload"));
  QTRY_VERIFY(reload->isVisible());
  QTest::mouseClick(reload, Qt::LeftButton);
  QVERIFY(QTest::qWaitFor([&] { return f.controller().document() != before; }, 10000));
  const auto now = f.analysis().backward.ops[8];
  QVERIFY(f.window().context().execution->hasBreakpoint(now));
  QCOMPARE(f.window().context().execution->breakpoints().size(), std::size_t(1));
  QCOMPARE(f.selection().op(), now);
}

void WindowTest::disabledActionsSayWhy() {
  WindowFixture f;
  auto& actions = f.window().actions();
  for (const auto* action : actions.all()) {
    if (action->isEnabled()) continue;
    QVERIFY2(!action->property("reason").toString().isEmpty(), qPrintable(action->objectName()));
    QVERIFY2(action->toolTip().contains(action->property("reason").toString()), qPrintable(action->objectName()));
  }
  QVERIFY(!actions.stepOver->isEnabled());
  QVERIFY(actions.stepOver->toolTip().contains(QStringLiteral("No file is open")));
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QVERIFY(actions.stepOver->isEnabled());
  QVERIFY(!actions.stepOverBack->isEnabled());
  QVERIFY(actions.stepOverBack->toolTip().contains(QStringLiteral("At the start")));
}

void WindowTest::droppedFileOpens() {
  WindowFixture f;
  QMimeData data;
  QTemporaryDir folder;
  data.setUrls({QUrl::fromLocalFile(folder.filePath(QStringLiteral("synthetic4")))});
  QDropEvent drop(QPointF(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  static_cast<QObject&>(f.window()).event(&drop);  // the drag manager wants a drag of its own before it delivers one
  QVERIFY(QTest::qWaitFor([&] { return f.controller().document() != nullptr; }, 5000));
  QCOMPARE(f.analysis().forward.ops.size(), std::size_t(12));
}

void WindowTest::inputsDialogAsks() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_I, Qt::ControlModifier);
  auto* dialog = f.window().findChild<InputsDialog*>();
  QVERIFY(dialog);
  auto* seed = dialog->findChild<QLineEdit*>(QStringLiteral("inputs-seed"));
  seed->setText(QStringLiteral("7"));
  const auto before = f.controller().document();
  QTest::keyClick(seed, Qt::Key_Return);
  QVERIFY(QTest::qWaitFor([&] { return f.controller().document() != before; }, 5000));
  QCOMPARE(f.controller().document()->request.seed, std::uint64_t(7));
  QVERIFY(f.controller().document()->request.drawn);
}

void WindowTest::devicesAreChosenOrSayWhyNot() {
  auto engine = std::make_shared<FakeEngine>();
  const Device gpu = deviceFromString("cuda:0"), second = deviceFromString("cuda:1");
  engine->deviceList = {{Device(), true, {}, {}},
                        {gpu, true, "Some GPU", {}},
                        {second, false, {}, "the driver is too old; install a newer one"}};
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto action = [&](const char* name) { return f.window().findChild<QAction*>(QLatin1String(name)); };
  QTRY_VERIFY(action("action-device-cuda:0"));
  QVERIFY(action("action-device-cpu")->isChecked());
  QVERIFY(!action("action-device-cuda:1")->isEnabled());
  QVERIFY(action("action-device-cuda:1")->toolTip().contains(QStringLiteral("too old")));
  action("action-device-cuda:0")->trigger();
  QTRY_COMPARE(engine->asked.size(), std::size_t{2});
  QVERIFY(!engine->asked[0]);
  QVERIFY(engine->asked[1] == gpu);
}

void WindowTest::everyWidgetHasAName() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  for (auto* widget : f.window().findChildren<QWidget*>()) {
    if (widget->focusPolicy() == Qt::NoFocus || !widget->isVisible() ||
        widget->objectName().startsWith(QStringLiteral("qt_")))
      continue;
    if (qobject_cast<QAbstractScrollArea*>(widget->parentWidget()) || widget->inherits("QTabBar") ||
        widget->inherits("QHeaderView"))
      continue;
    auto* interface = QAccessible::queryAccessibleInterface(widget);
    QVERIFY2(interface && !interface->text(QAccessible::Name).isEmpty(),
             qPrintable(
                 QStringLiteral("%1 %2").arg(QLatin1String(widget->metaObject()->className()), widget->objectName())));
  }
}

void WindowTest::pictures() {
  if (!qEnvironmentVariableIsSet("RETROGRAD_TEST_PICTURES")) QSKIP("RETROGRAD_TEST_PICTURES names no folder");
  WindowFixture f;
  f.picture(QStringLiteral("empty"));
  QVERIFY(f.open(QStringLiteral("synthetic12")));
  f.listing(TraceKind::forward).setFocus();
  f.click(TraceKind::backward, f.analysis().backward.ops[1]);
  f.press(Qt::Key_F9);
  f.click(TraceKind::backward, f.analysis().backward.ops[8]);
  f.press(Qt::Key_F10, Qt::ControlModifier);
  QVERIFY(f.settle());
  f.press(Qt::Key_Up);
  f.picture(QStringLiteral("light"));
  f.theme().choose(Theme::Choice::dark);
  f.picture(QStringLiteral("dark"));
  f.window().openFile(QStringLiteral("nonsense"));
  f.click(TraceKind::forward, f.analysis().forward.ops[7]);
  f.picture(QStringLiteral("dark-error"));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::WindowTest)
#include "window_test.moc"
