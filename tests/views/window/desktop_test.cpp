#include <QApplication>
#include <QInputDialog>
#include <QSignalSpy>
#include <QTest>

#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/parts/layouts.h"
#include "views/stages/stage_plan.h"
#include "views/window/session_keeper.h"

namespace retrograd::views {

/// What a window has in common with others and with itself the day before: layouts, the last session, the list of
/// windows.
class DesktopTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void presetsShowWhatTheyName();
  void layoutsAreSavedUnderNames();
  void aLayoutOfAnotherVersionIsRefused();
  void windowsThatCloseTogetherAreTheSession();
  void aWindowClosedAloneIsNotOfTheSession();
  void theSessionIsRestored();
  void cutsAndLossAreRestored();
  void filesThatAreGoneAreNamed();
  void aStartThatFailedIsNotRepeated();
  void reopeningCanBeSwitchedOff();
  void damagedSettingsAreIgnored();
  void windowsAreListedAndStepped();
  void pictures();

 private:
  QAction* action(MainWindow& window, const char* name) {
    return window.findChild<QAction*>(QLatin1String("action-") + QLatin1String(name));
  }
};

namespace {

QDockWidget* dock(MainWindow& window, const char* name) { return window.findChild<QDockWidget*>(QLatin1String(name)); }

/// A window next to the fixture's, with the same settings.
MainWindow* another(WindowFixture& f) {
  auto* window = new MainWindow(f.window().shared());
  window->show();
  return window;
}

bool openIn(MainWindow& window, const QString& path) {
  window.openFile(path);
  return QTest::qWaitFor(
      [&] { return window.context().controller->document() && !window.context().controller->opening(); }, 30000);
}

/// Files that the engine of the tests takes for models of this many layers.
struct Files {
  QString make(const QString& name) {
    QFile file(folder.filePath(name));
    if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write");
    file.write("x");
    return file.fileName();
  }
  QTemporaryDir folder;
};

/// Keeps a session of one window, with a file of three layers.
LastSession& keepOne(WindowFixture& f, Files& files) {
  auto& session = SessionKeeper::of(f.window().shared().settings).session();
  WindowRecord record;
  record.request.path = files.make(QStringLiteral("synthetic3")).toStdString();
  session.save({record});
  return session;
}

}  // namespace

void DesktopTest::presetsShowWhatTheyName() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  auto& window = f.window();
  for (const auto& preset : layoutPresets()) {
    action(window, preset.name)->trigger();
    std::set<QDockWidget*> wanted;
    for (const auto& side : {preset.left, preset.right, preset.bottom})
      for (const auto* name : side) {
        QVERIFY2(dock(window, name), name);
        wanted.insert(dock(window, name));
      }
    for (auto* dock : window.docks())
      QVERIFY2(dock->isHidden() != wanted.contains(dock), qPrintable(dock->objectName()));
    if (!preset.bottom.empty())
      QTRY_VERIFY(!dock(window, preset.bottom[0])->visibleRegion().isEmpty());  // in front of its stack
    for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
      QCOMPARE(window.listings().isShown(kind),
               std::find(preset.listings.begin(), preset.listings.end(), kind) != preset.listings.end());
    QCOMPARE(window.listings().isGraphShown(), preset.graph);
  }
  action(window, "reset-layout")->trigger();
  for (const auto* name : {"dock-modules", "dock-why", "dock-values", "dock-memory"})
    QVERIFY2(!dock(window, name)->isHidden(), name);
  QVERIFY(window.listings().isShown(TraceKind::forward) && !window.listings().isShown(TraceKind::joint) &&
          !window.listings().isGraphShown());
}

void DesktopTest::layoutsAreSavedUnderNames() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  auto& window = f.window();
  dock(window, "dock-modules")->hide();
  window.listings().toggleAction(TraceKind::joint)->setChecked(false);
  action(window, "layout-save")->trigger();
  auto* dialog = window.findChild<QInputDialog*>();
  QVERIFY(dialog);
  dialog->setTextValue(QStringLiteral(" narrow & dark "));
  dialog->accept();
  action(window, "reset-layout")->trigger();
  QVERIFY(!dock(window, "dock-modules")->isHidden());
  // Another window has it in its menu.
  auto* other = another(f);
  auto* menu = other->findChild<LayoutsMenu*>();
  const auto find = [&](QMenu* menu) {
    Q_EMIT menu->aboutToShow();
    for (auto* entry : menu->actions())
      if (entry->text() == QStringLiteral("narrow && dark")) return entry;
    return static_cast<QAction*>(nullptr);
  };
  QVERIFY(find(menu));
  find(menu)->trigger();
  QVERIFY(dock(*other, "dock-modules")->isHidden());
  QVERIFY(!other->listings().isShown(TraceKind::joint));
  // And can take it away.
  auto* remove = menu->findChild<QMenu*>();
  QVERIFY(remove->isEnabled());
  remove->actions().constFirst()->trigger();
  QVERIFY(!find(menu));
  QVERIFY(!remove->isEnabled());
  delete other;
}

void DesktopTest::aLayoutOfAnotherVersionIsRefused() {
  WindowFixture f;
  const auto before = f.window().arrangement();
  QVERIFY(!f.window().arrange({}));
  QVERIFY(!f.window().arrange(QByteArray("nonsense")));
  QVERIFY(!f.window().arrange(before.left(before.size() / 2)));
  QCOMPARE(f.window().arrangement(), before);
  SavedLayouts(f.window().shared().settings).save(QStringLiteral("old"), "nonsense");
  auto* menu = f.window().findChild<LayoutsMenu*>();
  Q_EMIT menu->aboutToShow();
  for (auto* entry : menu->actions())
    if (entry->text() == QStringLiteral("old")) entry->trigger();
  QVERIFY(f.window().messages().text().contains(QStringLiteral("'old'")));
}

void DesktopTest::windowsThatCloseTogetherAreTheSession() {
  WindowFixture f;
  Files files;
  const auto a = files.make(QStringLiteral("synthetic3")), b = files.make(QStringLiteral("synthetic4"));
  QVERIFY(f.open(a));
  auto* other = another(f);
  QVERIFY(openIn(*other, b));
  QApplication::setActiveWindow(&f.window());
  f.click(TraceKind::backward, f.analysis().backward.ops[2]);
  const auto selected = opText(f.analysis(), f.selection().op());
  f.window().setAttribute(Qt::WA_DeleteOnClose, false);
  f.window().close();
  other->close();
  const auto& session = SessionKeeper::of(f.window().shared().settings).session();
  QTRY_COMPARE(session.windows().size(), std::size_t(2));
  QCOMPARE(QString::fromStdString(session.windows()[0].request.path), a);
  QCOMPARE(QString::fromStdString(session.windows()[1].request.path), b);
  QCOMPARE(session.windows()[0].selected, selected);
  QCOMPARE(session.windows()[0].active, static_cast<int>(TraceKind::backward));
  QVERIFY(session.windows()[1].selected != selected);
}

void DesktopTest::aWindowClosedAloneIsNotOfTheSession() {
  WindowFixture f;
  Files files;
  QVERIFY(f.open(files.make(QStringLiteral("synthetic3"))));
  auto* other = another(f);
  QVERIFY(openIn(*other, files.make(QStringLiteral("synthetic4"))));
  const auto& session = SessionKeeper::of(f.window().shared().settings).session();
  QTRY_COMPARE(session.windows().size(), std::size_t(2));
  other->close();
  QTRY_COMPARE(session.windows().size(), std::size_t(1));
  QVERIFY(session.windows()[0].request.path.ends_with("synthetic3"));
}

void DesktopTest::theSessionIsRestored() {
  WindowFixture f;
  Files files;
  OpenRequest request;
  request.path = files.make(QStringLiteral("synthetic5")).toStdString();
  request.drawn = true;
  request.seed = 11;
  f.controller().open(request);
  QTRY_VERIFY(f.controller().document());
  f.window().listings().toggleAction(TraceKind::joint)->setChecked(false);
  f.window().listings().toggleAction(TraceKind::computation)->setChecked(true);
  dock(f.window(), "dock-modules")->hide();
  const auto op = f.analysis().forward.ops[4];
  f.click(TraceKind::forward, op);
  f.window().setAttribute(Qt::WA_DeleteOnClose, false);
  f.window().close();
  QTRY_COMPARE(SessionKeeper::of(f.window().shared().settings).session().windows().size(), std::size_t(1));
  // Something else was shown in between.
  f.window().resetLayout();

  const auto windows = reopenLastSession(f.window().shared());
  QCOMPARE(windows.size(), 1);
  auto& window = *windows.front();
  QTRY_VERIFY(window.context().controller->document());
  const auto& document = *window.context().controller->document();
  QCOMPARE(document.request.path, request.path);
  QVERIFY(document.request.drawn);
  QCOMPARE(document.request.seed, std::optional<std::uint64_t>(11));
  QTRY_COMPARE(opText(*document.analysis, window.context().selection->op()),
               opText(*document.analysis, document.analysis->forward.ops[4]));
  QCOMPARE(window.listings().active().kind(), TraceKind::forward);
  QVERIFY(window.listings().isShown(TraceKind::computation) && !window.listings().isShown(TraceKind::joint));
  QVERIFY(dock(window, "dock-modules")->isHidden());
  QCOMPARE(window.context().execution->now().position, std::size_t(0));
  QVERIFY(!SessionKeeper::of(f.window().shared().settings).session().failedToRestore());
  delete &window;
}

void DesktopTest::cutsAndLossAreRestored() {
  WindowFixture f;
  Files files;
  OpenRequest request;
  request.path = files.make(QStringLiteral("synthetic5")).toStdString();
  request.loss = "0";
  f.controller().open(request);
  QTRY_VERIFY(f.controller().document());
  CutRequest cuts;
  cuts.at = {"layers.1", "#relu_2:after"};
  cuts.useMarkers = false;
  cuts.options.multiUse = MultiUse::transmit;
  cuts.options.multiUseOf = {{"p_layers_0_weight", MultiUse::replicate}};
  f.window().context().stages->change(cuts, QStringLiteral("test"));
  QTRY_VERIFY(f.window().context().stages->cut());
  const auto& session = SessionKeeper::of(f.window().shared().settings).session();
  QTRY_VERIFY(session.windows().size() == 1 && session.windows().front().cuts);  // of a window that is open too
  f.window().setAttribute(Qt::WA_DeleteOnClose, false);
  f.window().close();
  QTRY_COMPARE(session.windows().size(), std::size_t(1));
  const auto windows = reopenLastSession(f.window().shared());
  QCOMPARE(windows.size(), 1);
  auto& window = *windows.front();
  QTRY_VERIFY(window.context().stages->cut());
  QCOMPARE(window.context().controller->document()->request.loss, std::string("0"));
  QCOMPARE(window.context().stages->request(), cuts);
  QCOMPARE(window.context().stages->cut()->stages(), 3);
  QVERIFY(!window.context().stages->history().canUndo());
  // Another file in the same window begins without them.
  QVERIFY(openIn(window, files.make(QStringLiteral("synthetic4"))));
  QCOMPARE(window.context().stages->request(), CutRequest());
  delete &window;
}

void DesktopTest::filesThatAreGoneAreNamed() {
  WindowFixture f;
  Files files;
  const auto here = files.make(QStringLiteral("synthetic3")), gone = files.folder.filePath(QStringLiteral("gone.pt2"));
  auto& session = SessionKeeper::of(f.window().shared().settings).session();
  WindowRecord first, second;
  first.request.path = gone.toStdString();
  second.request.path = here.toStdString();
  session.save({first, second});
  auto windows = reopenLastSession(f.window().shared());
  QCOMPARE(windows.size(), 1);
  QTRY_VERIFY(windows.front()->context().controller->document());
  delete windows.front();
  session.save({first});
  windows = reopenLastSession(f.window().shared());
  QCOMPARE(windows.size(), 1);
  QVERIFY(windows.front()->messages().text().contains(gone));
  QVERIFY(!windows.front()->context().controller->document());
  delete windows.front();
}

void DesktopTest::aStartThatFailedIsNotRepeated() {
  WindowFixture f;
  Files files;
  auto& session = keepOne(f, files);
  session.beginRestoring();  // and the program was gone
  const auto windows = reopenLastSession(f.window().shared());
  QCOMPARE(windows.size(), 1);
  QVERIFY(windows.front()->messages().text().contains(QStringLiteral("not reopened")));
  QVERIFY(!windows.front()->context().controller->opening());
  QVERIFY(!session.failedToRestore());
  delete windows.front();
}

void DesktopTest::reopeningCanBeSwitchedOff() {
  WindowFixture f;
  Files files;
  keepOne(f, files);
  auto* reopen = action(f.window(), "reopen-at-start");
  QVERIFY(reopen->isChecked());
  reopen->trigger();
  QVERIFY(reopenLastSession(f.window().shared()).isEmpty());
  reopen->trigger();
  const auto windows = reopenLastSession(f.window().shared());
  QCOMPARE(windows.size(), 1);
  QTRY_VERIFY(windows.front()->context().controller->document());
  delete windows.front();
}

void DesktopTest::damagedSettingsAreIgnored() {
  WindowFixture f;
  auto* settings = f.window().shared().settings;
  settings->setValue(
      QStringLiteral("session/windows"),
      QVariantList{QVariantMap{{QStringLiteral("path"), QString()}}, 7,
                   QVariantMap{{QStringLiteral("path"), QStringLiteral("x")}, {QStringLiteral("active"), 44}},
                   QVariantMap{{QStringLiteral("path"), QStringLiteral("x")}, {QStringLiteral("source"), -1}}});
  QVERIFY(SessionKeeper::of(settings).session().windows().empty());
  QVERIFY(reopenLastSession(f.window().shared()).isEmpty());
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QVERIFY(!opOfText(f.analysis(), QStringLiteral("{\"broken\":")));
}

void DesktopTest::windowsAreListedAndStepped() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.press(Qt::Key_Tab, Qt::ControlModifier);
  QVERIFY(QTest::qWaitFor([&] { return QApplication::activeWindow() == &f.window(); }));
  auto* other = another(f);
  QVERIFY(openIn(*other, QStringLiteral("synthetic4")));
  QApplication::setActiveWindow(&f.window());
  auto* menu = f.window().findChild<QMenu*>(QStringLiteral("windows"));
  Q_EMIT menu->aboutToShow();
  QList<QAction*> listed;
  for (auto* entry : menu->actions())
    if (entry->isCheckable()) listed << entry;
  QCOMPARE(listed.size(), 2);
  QVERIFY(listed[0]->isChecked() && !listed[1]->isChecked());
  QVERIFY(listed[1]->text().contains(QStringLiteral("synthetic4")));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_Tab, Qt::ControlModifier);
  QTRY_COMPARE(QApplication::activeWindow(), other);
  QTest::keyClick(other, Qt::Key_Tab, Qt::ControlModifier | Qt::ShiftModifier);
  QTRY_COMPARE(QApplication::activeWindow(), &f.window());
  listed[1]->trigger();
  QTRY_COMPARE(QApplication::activeWindow(), other);
  delete other;
}

void DesktopTest::pictures() {
  if (!qEnvironmentVariableIsSet("RETROGRAD_TEST_PICTURES")) QSKIP("RETROGRAD_TEST_PICTURES names no folder");
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic12")));
  f.click(TraceKind::backward, f.analysis().backward.ops[8]);
  f.press(Qt::Key_F10, Qt::ControlModifier);
  QVERIFY(f.settle());
  for (const auto& preset : layoutPresets()) {
    action(f.window(), preset.name)->trigger();
    f.picture(QLatin1String(preset.name));
  }
  f.theme().choose(Theme::Choice::dark);
  f.picture(QStringLiteral("layout-dark"));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::DesktopTest)
#include "desktop_test.moc"
