#include <QAccessible>
#include <QClipboard>
#include <QElapsedTimer>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <ctime>

#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"

namespace retrograd::views {

/// The listing canvas on a trace of 100,000 ops and more.
class ListingTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void showsEveryOp();
  void keyboardMovesAndFolds();
  void relatedLinesScrollIntoView();
  void foldedHeaderStandsForItsOps();
  void findRunsBetweenEvents();
  void copyGivesThePrintedForm();
  void groupingKeepsThePlace();
  void screenReaderHearsTheLine();
  void scrollingStaysFluid();

 private:
  ListingView& view(TraceKind kind) { return fixture_->listing(kind); }
  std::unique_ptr<WindowFixture> fixture_;
};

void ListingTest::initTestCase() {
  installCodeAccessibility();
  fixture_ = std::make_unique<WindowFixture>();
  QVERIFY(fixture_->open(QStringLiteral("synthetic12000")));  // 9 ops a layer: 108,000
}

void ListingTest::cleanupTestCase() { fixture_.reset(); }

void ListingTest::showsEveryOp() {
  QCOMPARE(fixture_->analysis().joint.ops.size(), std::size_t(108000));
  for (auto kind : {TraceKind::forward, TraceKind::backward, TraceKind::joint}) {
    const auto& ops = traceOf(fixture_->analysis(), kind).ops;
    auto& listing = view(kind);
    QVERIFY(listing.rowCount() > static_cast<int>(ops.size()));  // with headers
    for (std::size_t i = 0; i < ops.size(); i += 997) QCOMPARE(listing.opAt(listing.rowOf(ops[i])), ops[i]);
  }
}

void ListingTest::keyboardMovesAndFolds() {
  auto& listing = view(TraceKind::forward);
  listing.setFocus();
  fixture_->press(Qt::Key_End);
  QCOMPARE(listing.cursorRow(), listing.rowCount() - 1);
  QVERIFY(listing.isRowVisible(listing.cursorRow()));
  QCOMPARE(fixture_->selection().op(), fixture_->analysis().forward.ops.back());
  fixture_->press(Qt::Key_Home);
  QCOMPARE(listing.cursorRow(), 0);
  QVERIFY(listing.isHeader(0));
  QCOMPARE(fixture_->selection().op(), fixture_->analysis().computation().trace.ops.front());
  const int all = listing.rowCount();
  fixture_->press(Qt::Key_Minus);
  QCOMPARE(listing.rowCount(), all - 2);
  fixture_->press(Qt::Key_Plus);
  QCOMPARE(listing.rowCount(), all);
  fixture_->press(Qt::Key_Return);
  QCOMPARE(listing.rowCount(), all - 2);
  fixture_->press(Qt::Key_Return);
  fixture_->press(Qt::Key_Down);
  fixture_->press(Qt::Key_Minus);  // within a group: folds the group
  QCOMPARE(listing.rowCount(), all - 2);
  QCOMPARE(listing.cursorRow(), 0);
  fixture_->press(Qt::Key_Slash);
  QCOMPARE(listing.rowCount(), 24000);
  fixture_->press(Qt::Key_Asterisk);
  QCOMPARE(listing.rowCount(), all);
  fixture_->press(Qt::Key_PageDown);
  QVERIFY(listing.cursorRow() > 3);
}

void ListingTest::relatedLinesScrollIntoView() {
  const auto& analysis = fixture_->analysis();
  // The first backward op comes from the last forward op: the listings are at opposite ends.
  fixture_->click(TraceKind::backward, analysis.backward.ops[1]);
  const auto origin = analysis.links.forwardOf(*analysis.document, analysis.backward.ops[1]);
  QVERIFY(view(TraceKind::forward).isRowVisible(view(TraceKind::forward).rowOf(origin)));
  QVERIFY(view(TraceKind::joint).isRowVisible(view(TraceKind::joint).rowOf(origin)));
  fixture_->click(TraceKind::forward, analysis.forward.ops[0]);
  auto& backward = view(TraceKind::backward);
  bool derivedShows = false;
  for (auto op : analysis.links.derived(fixture_->selection().origin()))
    derivedShows = derivedShows || (fixture_->selection().relation(op) == Relation::derived &&
                                    backward.isRowVisible(backward.rowOf(op)));
  QVERIFY(derivedShows);
}

void ListingTest::foldedHeaderStandsForItsOps() {
  const auto& analysis = fixture_->analysis();
  auto& forward = view(TraceKind::forward);
  forward.setAllFolded(true);
  fixture_->click(TraceKind::backward, analysis.backward.ops[1]);
  const auto origin = analysis.links.forwardOf(*analysis.document, analysis.backward.ops[1]);
  QVERIFY(forward.isHeader(forward.rowOf(origin)));
  QVERIFY(forward.isRowVisible(forward.rowOf(origin)));
  fixture_->press(Qt::Key_G);  // a jump unfolds
  QCOMPARE(forward.opAt(forward.cursorRow()), origin);
  forward.setAllFolded(false);
}

void ListingTest::findRunsBetweenEvents() {
  auto& listing = view(TraceKind::backward);
  listing.setFocus();
  fixture_->press(Qt::Key_Home);
  QSignalSpy done(&listing, &ListingView::findDone);
  listing.find(QStringLiteral("p_nowhere"), true);
  QCOMPARE(done.count(), 0);  // it has only begun
  QVERIFY(done.wait(30000));
  QCOMPARE(done.takeFirst().at(0).toBool(), false);
  const auto wanted = fixture_->analysis().backward.ops[60001];
  const auto name = QString::fromStdString(
      fixture_->analysis().document->displayName(fixture_->analysis().document->outputs(wanted)[0]));
  listing.find(name + QStringLiteral(" = "), true);
  QVERIFY(done.wait(30000));
  QCOMPARE(done.takeFirst().at(0).toBool(), true);
  QCOMPARE(listing.opAt(listing.cursorRow()), wanted);
  QCOMPARE(fixture_->selection().op(), wanted);
}

void ListingTest::copyGivesThePrintedForm() {
  auto& listing = view(TraceKind::forward);
  listing.reveal(fixture_->analysis().forward.ops[0]);
  listing.setFocus();
  QTest::keyClick(&listing, Qt::Key_Down, Qt::ShiftModifier);
  QTest::keySequence(&listing, QKeySequence::Copy);
  const auto lines = QApplication::clipboard()->text().split(QLatin1Char('\n'));
  QCOMPARE(lines.size(), 2);
  QVERIFY(lines[0].contains(QStringLiteral(" = torch.ops.aten.t.default(")));
  QVERIFY(lines[1].contains(QStringLiteral(" = torch.ops.aten.addmm.default(")));
}

void ListingTest::groupingKeepsThePlace() {
  auto& listing = view(TraceKind::forward);
  const auto op = fixture_->analysis().forward.ops[17000];
  listing.reveal(op);
  listing.setGrouping(Grouping::module);
  QCOMPARE(listing.opAt(listing.cursorRow()), op);
  QVERIFY(listing.isRowVisible(listing.cursorRow()));
  listing.setGrouping(Grouping::none);
  QCOMPARE(listing.rowCount(), 36000);
  QCOMPARE(listing.opAt(listing.cursorRow()), op);
  listing.setGrouping(Grouping::operation);
  QCOMPARE(listing.opAt(listing.cursorRow()), op);
}

void ListingTest::screenReaderHearsTheLine() {
  auto& listing = view(TraceKind::forward);
  listing.reveal(fixture_->analysis().forward.ops[1]);
  auto* interface = QAccessible::queryAccessibleInterface(&listing);
  QVERIFY(interface);
  QCOMPARE(interface->text(QAccessible::Name), QStringLiteral("Forward listing"));
  QVERIFY(interface->text(QAccessible::Value).contains(QStringLiteral("aten.addmm")));
  // Each row is an item of the list, by its text.
  QCOMPARE(interface->childCount(), listing.rowCount());
  for (int row : {0, 1, listing.rowCount() - 1}) {
    auto* item = interface->child(row);
    QCOMPARE(item->role(), QAccessible::ListItem);
    QVERIFY(item->text(QAccessible::Name).startsWith(listing.textAt(row)));
    QCOMPARE(item->parent(), interface);
    QCOMPARE(interface->indexOfChild(item), row);
    QCOMPARE(static_cast<bool>(item->state().selected), row == listing.cursorRow());
  }
  QCOMPARE(interface->child(1)->rect().size(), listing.rowRect(1).size());
  QVERIFY(!interface->child(listing.rowCount()));
}

/// By the thread's own time, so that a busy machine does not fail it.
void ListingTest::scrollingStaysFluid() {
  auto& listing = view(TraceKind::joint);
  const int frames = 200;
  const int last = listing.verticalScrollBar()->maximum();
  timespec begin{}, end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (int i = 0; i < frames; ++i) {
    listing.verticalScrollBar()->setValue(static_cast<int>(static_cast<qint64>(last) * i / frames));
    listing.viewport()->repaint();
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  const double milliseconds =
      static_cast<double>(end.tv_sec - begin.tv_sec) * 1e3 + static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e6;
  qInfo("%.2f ms a frame", milliseconds / frames);
  QVERIFY2(milliseconds / frames < 16, qPrintable(QString::number(milliseconds / frames)));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::ListingTest)
#include "listing_test.moc"
