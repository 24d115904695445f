#include <QLabel>
#include <QScrollBar>
#include <QTest>
#include <thread>

#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"

namespace retrograd::views {

/// The window's content while a long computation, which has been read, is being derived.
class FirstLinesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void theyShowUntilTheListingsAreThere();
  void theyGoWhereOpeningIsCancelled();
  void aShortComputationHasNone();
  void whatIsOpenStays();
  void theEngineShowsWhatItRead();
};

namespace {

/// Derives until it is let go.
class HeldEngine : public FakeEngine {
 public:
  std::shared_ptr<const Analysis> open(const OpenRequest& request, const Progress& progress,
                                       const OnRead& onRead) override {
    auto analysis = FakeEngine::open(request, progress, onRead);
    derives = true;
    while (holds) {
      progress.check();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return analysis;
  }
  std::atomic<bool> holds = true, derives = false;
};

const QString longModel = QStringLiteral("synthetic:12000"), shortModel = QStringLiteral("synthetic:3");

FirstLinesView& lines(WindowFixture& f) { return *f.window().findChild<FirstLinesView*>(); }
bool startPage(WindowFixture& f) { return f.window().findChild<StartPage*>()->isVisible(); }

}  // namespace

void FirstLinesTest::theyShowUntilTheListingsAreThere() {
  const auto engine = std::make_shared<HeldEngine>();
  WindowFixture f(engine);
  f.window().openFile(longModel);
  QTRY_VERIFY(lines(f).isVisible());
  QVERIFY(!f.controller().document() && f.controller().opening() && !startPage(f) &&
          !f.window().listings().isVisible());
  QCOMPARE(lines(f).rowCount(), 1000);
  // A title says what part of the whole they are, above the first of them.
  const auto* title = lines(f).findChild<QLabel*>(QStringLiteral("first-lines-title"));
  QVERIFY(title && title->isVisible());
  const auto said = title->text();
  QVERIFY(lines(f).viewport()->geometry().top() >= title->geometry().bottom());
  f.picture(QStringLiteral("first-lines"));
  // They scroll by the keyboard, down to the last one that came.
  lines(f).setFocus();
  QTest::keyClick(&lines(f), Qt::Key_PageDown);
  QVERIFY(lines(f).verticalScrollBar()->value() > 0);
  lines(f).verticalScrollBar()->setValue(lines(f).verticalScrollBar()->maximum());
  QVERIFY(lines(f).isRowVisible(999));
  const auto first = lines(f).spokenAt(0), last = lines(f).spokenAt(999);
  engine->holds = false;
  QTRY_VERIFY(f.controller().document() && !f.controller().opening());
  QVERIFY(!lines(f).isVisible() && lines(f).rowCount() == 0 && f.window().listings().isVisible());
  QVERIFY2(said.contains(QStringLiteral("first 1000 of %1 ops").arg(f.analysis().computation().trace.ops.size())),
           qPrintable(said));
  // The listing has the same.
  const auto& listing = f.listing(TraceKind::computation);
  const auto code = [](const QString& line) { return line.section(QStringLiteral("  # "), 0, 0); };
  QVERIFY(!first.isEmpty() && first != last);
  QCOMPARE(code(first), code(listing.textAt(0)));
  QCOMPARE(code(last), code(listing.textAt(999)));
}

void FirstLinesTest::theyGoWhereOpeningIsCancelled() {
  const auto engine = std::make_shared<HeldEngine>();
  WindowFixture f(engine);
  f.window().openFile(longModel);
  QTRY_VERIFY(lines(f).isVisible());
  f.controller().cancelOpen();
  QVERIFY(!lines(f).isVisible() && startPage(f));
  // So it is with a file that turns out to be none.
  engine->holds = false;
  QVERIFY(!f.open(QStringLiteral("nonsense")));
  QVERIFY(!lines(f).isVisible() && startPage(f));
}

// Derived lines are there as fast, and would only flicker.
void FirstLinesTest::aShortComputationHasNone() {
  const auto engine = std::make_shared<HeldEngine>();
  WindowFixture f(engine);
  f.window().openFile(shortModel);
  QTRY_VERIFY(engine->derives);
  QCoreApplication::processEvents();
  QVERIFY(startPage(f) && !lines(f).isVisible());
  engine->holds = false;
  QTRY_VERIFY(f.controller().document());
}

void FirstLinesTest::whatIsOpenStays() {
  const auto engine = std::make_shared<HeldEngine>();
  WindowFixture f(engine);
  engine->holds = false;
  QVERIFY(f.open(shortModel));
  engine->holds = true;
  engine->derives = false;
  f.window().openFile(longModel);
  QTRY_VERIFY(engine->derives);
  QCoreApplication::processEvents();
  QVERIFY(f.window().listings().isVisible() && !lines(f).isVisible());
  // Closed meanwhile, it does not come back.
  f.press(Qt::Key_W, Qt::ControlModifier);
  QTRY_VERIFY(!f.controller().document() && startPage(f));
  QVERIFY(!lines(f).isVisible());
}

void FirstLinesTest::theEngineShowsWhatItRead() {
  OpenRequest request;
  request.path = sourcePath("resources/samples/tiny_gpt.pt2");
  std::size_t told = 0, ops = 0, symbols = 0;
  const auto analysis = liveEngine()->open(request, {}, [&](const ModelFile& file) {
    ++told;
    ops = file.computation.trace.ops.size();
    symbols = file.document->boundSymbolCount();
  });
  QCOMPARE(told, std::size_t(1));
  QVERIFY(ops > 0);
  QCOMPARE(ops, analysis->computation().trace.ops.size());
  QVERIFY(symbols < analysis->document->boundSymbolCount());  // before anything was derived
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::FirstLinesTest)
#include "first_lines_test.moc"
