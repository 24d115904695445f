#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <thread>

#include "tests/views/menus.h"
#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "views/engine/pool_job.h"
#include "views/window/session_keeper.h"

namespace retrograd::views {

/// What happens to questions, menus, dialogs and breakpoints when their document is read again or closed, and to the
/// session that another instance opens. The numbers are those of the findings.
class DocumentLifetimeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void aReplacedQuestionIsNotHeardOf();
  void savingTwoValuesWritesBoth();
  void whatAClosedFileDidNotAnswerIsAskedAgain();
  void menusGoWithTheirDocument();
  void dialogsGoWithTheirDocument();
  void aMenuMayOutliveItsWindow();
  void aSecondInstanceLeavesTheSessionAlone();
  void breakpointsKeepTheirOrder();
};

namespace {

/// Checks of gradients go on until they are let go or cancelled.
class HeldEngine : public FakeEngine {
 public:
  GradientCheck checkGradients(const Analysis& analysis, const std::vector<BoundSymbolId>& ops,
                               const Progress& progress) override {
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

QString makeFile(const QTemporaryDir& folder, const QString& name) {
  QFile file(folder.filePath(name));
  if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write");
  file.write("x");
  return file.fileName();
}

/// Opens a model, selects an op and goes to the Checks; null where that did not work.
QLineEdit* openChecks(WindowFixture& f) {
  if (!f.open(QStringLiteral("synthetic:3"))) return nullptr;
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  front(f, "dock-checks");
  return child<QLineEdit>(f, "checks-range");
}

}  // namespace

// A question that replaces another one does not get the first one's "cancelled".
void DocumentLifetimeTest::aReplacedQuestionIsNotHeardOf() {
  const auto engine = std::make_shared<HeldEngine>();
  WindowFixture f(engine);
  auto* range = openChecks(f);
  QVERIFY(range);
  const auto* summary = child<QLabel>(f, "checks-summary");
  range->setFocus();
  QTest::keyClick(range, Qt::Key_Return);
  QTRY_COMPARE(engine->begun.load(), 1);
  QTest::keyClick(range, Qt::Key_Return);
  QTRY_COMPARE(engine->begun.load(), 2);  // the worker has reported what came of the first one by now
  QCoreApplication::processEvents();
  QCOMPARE(summary->text(), QStringLiteral("Checking..."));
  // One that is cancelled is heard of.
  action(f.window(), "stop")->trigger();
  QTRY_COMPARE(summary->text(), QStringLiteral("Cancelled"));
  engine->released = true;
  QTest::keyClick(range, Qt::Key_Return);
  QTRY_VERIFY2(summary->text().startsWith(QChar(0x2713)), qPrintable(summary->text()));
}

// What is to be done, other than what is to be answered, is not replaced at all.
void DocumentLifetimeTest::savingTwoValuesWritesBoth() {
  const auto engine = std::make_shared<HeldEngine>();
  WindowFixture f(engine);
  auto* range = openChecks(f);
  QVERIFY(range);
  range->setFocus();
  QTest::keyClick(range, Qt::Key_Return);
  QTRY_COMPARE(engine->begun.load(), 1);
  const QTemporaryDir folder;
  QStringList said;
  const auto inputs = f.analysis().joint.inputs;
  for (int i : {0, 1})
    f.controller().questions().saveValue(inputs[static_cast<std::size_t>(i)],
                                         folder.filePath(QStringLiteral("%1.npy").arg(i)),
                                         [&](const QString& problem) { said << problem; });
  engine->released = true;
  QTRY_COMPARE(said, QStringList({QString(), QString()}));
  for (int i : {0, 1}) QVERIFY(QFile::exists(folder.filePath(QStringLiteral("%1.npy").arg(i))));
}

// A question whose document goes before it is answered is asked again of the next one.
void DocumentLifetimeTest::whatAClosedFileDidNotAnswerIsAskedAgain() {
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

// A menu that is open while the file is read again closes, as its entries are for ids that are no longer
// good.
void DocumentLifetimeTest::menusGoWithTheirDocument() {
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

// The same of dialogs that are about an op or a value.
void DocumentLifetimeTest::dialogsGoWithTheirDocument() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  for (const auto& [name, open] :
       {std::pair<const char*, std::function<void()>>("fill", [&] { action(f.window(), "fill")->trigger(); }),
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

// A window that closes under an open menu takes the menu along, once.
void DocumentLifetimeTest::aMenuMayOutliveItsWindow() {
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

// While one instance of the program opens the last session, another one that starts does not take it for
// failed and clear it.
void DocumentLifetimeTest::aSecondInstanceLeavesTheSessionAlone() {
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

// Breakpoints come back in the order in which they were set, however many threads there are.
void DocumentLifetimeTest::breakpointsKeepTheirOrder() {
  auto* pool = &PoolJob::pool();
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
    const auto words =
        i % 2 ? QStringLiteral("module layers.299 if nan after %1") : QStringLiteral("any if nan after %1");
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

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::DocumentLifetimeTest)
#include "document_lifetime_test.moc"
