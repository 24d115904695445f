#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QInputDialog>
#include <QLabel>
#include <QMenu>
#include <QSignalSpy>
#include <QTest>

#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/content/box_filter.h"
#include "views/content/fold_rows.h"
#include "views/settings/saved_filters.h"
#include "views/text/line_pattern.h"
#include "views/window/filter_box.h"

namespace retrograd::views {

/// The filter in the window, by real keys: which lines show, its box, its history, saved filters; and finding by
/// regular expressions.
class FilterTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void headersAreAboveWhatPasses();
  void keptLinesShowInSpiteOfIt();
  void listingsShowWhatPasses();
  void theSelectedOpAlwaysShows();
  void headersCountAllOpsOnceTheFilterIsCleared();
  void jumpsLeadToHiddenOps();
  void theOpThatRunsNextShows();
  void linesStayUnderThePointer();
  void whatIsWrongIsReportedAtOnce();
  void wordsComplete();
  void escapeClearsAndGoesBack();
  void filtersBeforeComeBack();
  void filtersOfTheSelectedOp();
  void savedFiltersStay();
  void theGraphDimsTheRest();
  void aReloadKeepsTheFilter();
  void aLargeTraceIsFilteredInTheBackground();
  void findTakesRegularExpressions();
};

namespace {

FilterBox& box(WindowFixture& f) { return *f.window().findChild<FilterBox*>(); }
OpFilter& filter(WindowFixture& f) { return *f.window().context().filter; }

/// Types into the box and waits until it is applied.
bool type(WindowFixture& f, const QString& words) {
  f.press(Qt::Key_L, Qt::ControlModifier | Qt::ShiftModifier);
  QTest::keyClicks(&box(f).line(), words);
  return QTest::qWaitFor([&] { return filter(f).words() == words && !filter(f).busy(); }, 20000);
}

bool apply(WindowFixture& f, const QString& words) {
  return filter(f).apply(words) && QTest::qWaitFor([&] { return !filter(f).busy(); }, 20000);
}

std::vector<BoundSymbolId> opsShown(ListingView& view) {
  std::vector<BoundSymbolId> ops;
  for (int row = 0; row < view.rowCount(); ++row)
    if (const auto op = view.opAt(row)) ops.push_back(op);
  return ops;
}

std::vector<BoundSymbolId> named(const Analysis& analysis, const Trace& trace, std::string_view symbol) {
  std::vector<BoundSymbolId> ops;
  for (auto op : trace.ops)
    if (analysis.document->symbol(op).name == symbol) ops.push_back(op);
  return ops;
}

QString titleOver(ListingView& view) { return view.parentWidget()->findChild<QLabel*>()->text(); }

/// Two headers of three lines each, the second line of the second an op with a body of one line.
Outline sampleOutline() {
  Outline o;
  const auto row = [&](int item, int end, int parent, int depth) {
    if (item >= 0) o.rowOfLine.push_back(static_cast<int>(o.item.size()));
    o.item.push_back(item);
    o.end.push_back(end);
    o.parent.push_back(parent);
    o.depth.push_back(static_cast<std::uint8_t>(depth));
  };
  o.headers.resize(2);
  row(~0, 4, -1, 0);
  row(0, 2, 0, 1);
  row(1, 3, 0, 1);
  row(2, 4, 0, 1);
  row(~1, 9, -1, 0);
  row(3, 6, 4, 1);
  row(4, 8, 4, 1);
  row(5, 8, 6, 2);
  row(6, 9, 4, 1);
  return o;
}

std::vector<std::int32_t> visible(const FoldRows& rows) {
  std::vector<std::int32_t> all;
  for (int i = 0; i < rows.count(); ++i) all.push_back(rows.rowAt(i));
  return all;
}

std::shared_ptr<const PassingLines> passing(std::vector<bool> lines) { return std::make_shared<PassingLines>(lines); }

using Rows = std::vector<std::int32_t>;

}  // namespace

void FilterTest::headersAreAboveWhatPasses() {
  const auto outline = sampleOutline();
  FoldRows rows(&outline);
  rows.setFilter(passing({false, true, false, false, false, true, false}));
  QCOMPARE(visible(rows), (Rows{0, 2, 4, 6, 7}));
  QCOMPARE(rows.passingBelow(0), 1);
  QVERIFY(rows.passes(0) && rows.passes(2) && !rows.passes(6) && rows.passes(7));  // row 6 is only what line 5 is below
  QCOMPARE(rows.visibleOf(2), 1);
  QCOMPARE(rows.visibleOf(3), -1);  // hidden, though a shown row is before it
  rows.setFolded(4, true);
  QCOMPARE(visible(rows), (Rows{0, 2, 4}));
  QCOMPARE(rows.visibleOf(7), 2);
  QVERIFY(rows.reveal(7));
  QCOMPARE(rows.visibleOf(7), 4);
  rows.setFilter(nullptr);
  QCOMPARE(rows.count(), 9);
  rows.setFilter(passing(std::vector<bool>(7, false)));
  QCOMPARE(rows.count(), 0);
  QCOMPARE(rows.nearest(3), -1);
}

void FilterTest::keptLinesShowInSpiteOfIt() {
  const auto outline = sampleOutline();
  FoldRows rows(&outline);
  rows.setFilter(passing({true, false, false, false, false, false, false}));
  QVERIFY(rows.keep({6, 0}));
  QCOMPARE(visible(rows), (Rows{0, 1, 4, 8}));
  QVERIFY(rows.passes(1) && !rows.passes(8) && !rows.passes(4));
  QVERIFY(!rows.keep({0, 6}));  // the same
  QVERIFY(rows.keep({}));
  QCOMPARE(visible(rows), (Rows{0, 1}));
}

void FilterTest::listingsShowWhatPasses() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")) && f.quiet());
  auto& forward = f.listing(TraceKind::forward);
  const int all = forward.rowCount();
  const auto title = titleOver(forward);
  f.selection().select({});  // it would show whatever the filter says
  QVERIFY(type(f, QStringLiteral("op:addmm")));
  const auto wanted = named(f.analysis(), f.analysis().forward, "aten.addmm.default");
  QCOMPARE(wanted.size(), std::size_t(3));
  auto shown = opsShown(forward);
  std::erase(shown, f.execution().current);  // the op that runs next shows whatever the filter says
  QCOMPARE(shown, wanted);
  QVERIFY2(titleOver(forward).contains(QStringLiteral("3 of 9 ops")), qPrintable(titleOver(forward)));
  const int header = forward.rowOf(wanted[1]) - 1;
  QVERIFY(forward.isHeader(header));
  QVERIFY2(forward.textAt(header).endsWith(QStringLiteral("1 of 2 ops")), qPrintable(forward.textAt(header)));
  QVERIFY(opsShown(f.listing(TraceKind::backward)).empty());
  f.picture(QStringLiteral("filter"));
  f.theme().choose(Theme::Choice::dark);
  f.picture(QStringLiteral("filter-dark"));
  f.theme().choose(Theme::Choice::light);
  QVERIFY(apply(f, {}));
  QCOMPARE(forward.rowCount(), all);
  QCOMPARE(titleOver(forward), title);
}

void FilterTest::theSelectedOpAlwaysShows() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& forward = f.listing(TraceKind::forward);
  const auto op = f.analysis().forward.ops[4];
  f.selection().select(op);
  QVERIFY(apply(f, QStringLiteral("role:gradient")));
  const int row = forward.rowOf(op);
  QVERIFY(row >= 0 && forward.isKept(row) && forward.isRowVisible(row));
  QVERIFY(forward.spokenAt(row).contains(QStringLiteral("does not pass")));
  // A backward op that passes: its forward origin is the one that shows now.
  const auto backward = named(f.analysis(), f.analysis().backward, "aten.threshold_backward.default").at(1);
  const auto origin = f.analysis().links.forwardOf(*f.analysis().document, backward);
  f.selection().select(backward);
  QVERIFY(forward.rowOf(origin) >= 0);
  QVERIFY(origin == op || forward.rowOf(op) < 0);
  auto& listing = f.listing(TraceKind::backward);
  QVERIFY(!listing.isKept(listing.rowOf(backward)));
}

void FilterTest::headersCountAllOpsOnceTheFilterIsCleared() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& forward = f.listing(TraceKind::forward);
  const auto op = named(f.analysis(), f.analysis().forward, "aten.addmm.default").at(1);
  const auto header = [&] {
    int row = forward.rowOf(op);
    while (row > 0 && !forward.isHeader(row)) --row;
    return forward.textAt(row);
  };
  f.click(TraceKind::forward, op);
  QVERIFY(apply(f, QStringLiteral("op:relu")));
  QVERIFY2(header().contains(QStringLiteral("of 2 ops")), qPrintable(header()));
  QVERIFY(apply(f, {}));
  QVERIFY2(header().endsWith(QStringLiteral("  2 ops")), qPrintable(header()));
}

void FilterTest::jumpsLeadToHiddenOps() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QVERIFY(apply(f, QStringLiteral("role:backward")));
  const auto backward = f.analysis().backward.ops[1];
  f.selection().select(backward);
  f.listing(TraceKind::backward).setFocus();
  f.press(Qt::Key_G);
  const auto origin = f.selection().op();
  auto& forward = f.listing(TraceKind::forward);
  QVERIFY(origin != backward);
  QCOMPARE(forward.opAt(forward.cursorRow()), origin);
  QVERIFY(forward.hasFocus() && forward.isKept(forward.cursorRow()));
  f.press(Qt::Key_G);
  QCOMPARE(f.selection().op(), backward);
}

void FilterTest::theOpThatRunsNextShows() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QVERIFY(apply(f, QStringLiteral("op:relu")));
  auto& forward = f.listing(TraceKind::forward);
  for (int i = 0; i < 3; ++i) {
    const auto current = f.execution().current;
    QVERIFY(forward.rowOf(current) >= 0);
    f.press(Qt::Key_F11);
    QVERIFY(f.settle());
    QVERIFY(f.execution().current != current);
    const bool passes = filter(f).ops()->passes.at(static_cast<std::size_t>(current.index));
    QCOMPARE(forward.rowOf(current) >= 0, passes);  // what has run is hidden again
  }
}

void FilterTest::linesStayUnderThePointer() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& forward = f.listing(TraceKind::forward);
  const auto hidden = f.analysis().forward.ops[1];
  f.selection().select(hidden);
  QVERIFY(apply(f, QStringLiteral("op:relu")));
  const auto relu = named(f.analysis(), f.analysis().forward, "aten.relu.default").at(2);
  const int row = forward.rowOf(relu);
  f.click(TraceKind::forward, relu);
  QCOMPARE(f.selection().op(), relu);
  QCOMPARE(forward.rowOf(relu), row);  // else a second click would meet another line
  QVERIFY(forward.rowOf(hidden) >= 0);
  f.selection().select(f.analysis().backward.ops[0]);
  QVERIFY(forward.rowOf(hidden) < 0);
}

void FilterTest::whatIsWrongIsReportedAtOnce() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:2")));
  QVERIFY(type(f, QStringLiteral("op:relu")));
  QTest::keyClicks(&box(f).line(), QStringLiteral(" rol:gradient"));
  QVERIFY(box(f).help().isVisible());
  QTRY_VERIFY2(box(f).help().problem().contains(QStringLiteral("Column 9: no field 'rol'")),
               qPrintable(box(f).help().problem()));
  f.picture(QStringLiteral("filter-problem"));
  for (const char* part : {"rol", "x"}) QVERIFY(OpFilter::problemOf(QStringLiteral("role:") + QLatin1String(part)));
  QTRY_VERIFY(!filter(f).busy());
  QCOMPARE(filter(f).words(), QStringLiteral("op:relu"));  // what was right stays applied
  QTest::keyClick(&box(f).line(), Qt::Key_Return);
  QVERIFY(box(f).line().hasFocus());
  const auto problem = OpFilter::problemOf(QStringLiteral("\u00e4\u00e4 rol:x"));
  QVERIFY(problem);
  QCOMPARE(problem->begin, 3);  // characters, not bytes
  QCOMPARE(problem->end, 6);
}

void FilterTest::wordsComplete() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:2")));
  f.press(Qt::Key_L, Qt::ControlModifier | Qt::ShiftModifier);
  auto& line = box(f).line();
  auto& help = box(f).help();
  QTRY_VERIFY(help.isVisible());
  QAbstractItemModelTester tester(help.list().model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  QTest::keyClicks(&line, QStringLiteral("ro"));
  QTRY_COMPARE(help.list().model()->rowCount(), 1);
  QTest::keyClick(&line, Qt::Key_Tab);
  QCOMPARE(line.text(), QStringLiteral("role:"));
  QTRY_VERIFY(help.list().model()->rowCount() > 3);
  QTest::keyClick(&line, Qt::Key_G, Qt::NoModifier);
  QTRY_COMPARE(help.chosen(true), QStringLiteral("gradient"));
  QVERIFY(help.problem().isEmpty());  // a word that is being written is not wrong yet
  f.picture(QStringLiteral("filter-words"));
  QTest::keyClick(&line, Qt::Key_Down);
  QTest::keyClick(&line, Qt::Key_Return);
  QCOMPARE(line.text(), QStringLiteral("role:gradient "));
  // Ops of the file, by both of their names: as the computation calls them and as they are dispatched.
  QTest::keyClicks(&line, QStringLiteral("op:"));
  QTRY_VERIFY(help.list().model()->rowCount() > 3);
  QStringList words;
  for (int row = 0; row < help.list().model()->rowCount(); ++row)
    words << help.list().model()->index(row, 0).data().toString();
  QVERIFY2(words.contains(QStringLiteral("linear")) && words.contains(QStringLiteral("addmm")),
           qPrintable(words.join(QLatin1Char(' '))));
  QTest::keyClick(&line, Qt::Key_Backtab);
  QVERIFY(!line.hasFocus());
  QVERIFY(!help.isVisible());
}

void FilterTest::escapeClearsAndGoesBack() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:2")));
  f.listing(TraceKind::backward).setFocus();
  QVERIFY(type(f, QStringLiteral("op:mm")));
  QTest::keyClick(&box(f).line(), Qt::Key_Escape);
  QVERIFY(!filter(f).active());
  QVERIFY(box(f).line().text().isEmpty());
  QVERIFY(!box(f).help().isVisible());
  QVERIFY(f.listing(TraceKind::backward).hasFocus());
  QVERIFY(type(f, QStringLiteral("op:mm")));
  QTest::keyClick(&box(f).line(), Qt::Key_Return);
  QCOMPARE(filter(f).words(), QStringLiteral("op:mm"));
  QVERIFY(f.listing(TraceKind::backward).hasFocus());
}

void FilterTest::filtersBeforeComeBack() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:2")));
  QVERIFY(!filter(f).canGoBack() && !filter(f).canGoForward());
  QVERIFY(type(f, QStringLiteral("op:mm")));
  QTest::keyClick(&box(f).line(), Qt::Key_Return);
  QVERIFY(type(f, QStringLiteral("op:relu")));
  QTest::keyClick(&box(f).line(), Qt::Key_Return);
  f.press(Qt::Key_BracketLeft, Qt::ControlModifier);
  QCOMPARE(filter(f).words(), QStringLiteral("op:mm"));  // as a whole, not letter by letter
  QCOMPARE(box(f).line().text(), QStringLiteral("op:mm"));
  f.press(Qt::Key_BracketLeft, Qt::ControlModifier);
  QVERIFY(!filter(f).active());
  QVERIFY(!filter(f).canGoBack());
  f.press(Qt::Key_BracketRight, Qt::ControlModifier);
  f.press(Qt::Key_BracketRight, Qt::ControlModifier);
  QCOMPARE(filter(f).words(), QStringLiteral("op:relu"));
  f.press(Qt::Key_K, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(!filter(f).active());
  f.press(Qt::Key_BracketLeft, Qt::ControlModifier);
  QCOMPARE(filter(f).words(), QStringLiteral("op:relu"));
}

void FilterTest::filtersOfTheSelectedOp() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")) && f.quiet());
  f.selection().select({});
  const auto* only = f.window().findChild<QAction*>(QStringLiteral("action-filter-origin"));
  QVERIFY(!only->isEnabled());
  const auto op = f.analysis().forward.ops[4];
  f.selection().select(op);
  f.window().findChild<QAction*>(QStringLiteral("action-filter-op"))->trigger();
  QTRY_VERIFY(filter(f).ops());
  const auto alike = named(f.analysis(), f.analysis().forward, f.analysis().document->symbol(op).name);
  QCOMPARE(filter(f).ops()->trace(TraceKind::forward).count(), static_cast<int>(alike.size()));
  f.window().findChild<QAction*>(QStringLiteral("action-filter-module"))->trigger();
  QTRY_VERIFY(filter(f).words().startsWith(QStringLiteral("module:")));
  f.window().findChild<QAction*>(QStringLiteral("action-filter-origin"))->trigger();
  QTRY_VERIFY(filter(f).words().startsWith(QStringLiteral("origin:")) && !filter(f).busy());
  const auto origin = f.selection().origin();
  const auto& passes = filter(f).ops()->passes;
  QVERIFY(passes.at(static_cast<std::size_t>(origin.index)));
  for (auto derived : f.analysis().links.derived(origin)) QVERIFY(passes.at(static_cast<std::size_t>(derived.index)));
  QCOMPARE(filter(f).ops()->trace(TraceKind::computation).count(), 1);
}

void FilterTest::savedFiltersStay() {
  QTemporaryDir folder;
  QSettings settings(folder.filePath(QStringLiteral("s.ini")), QSettings::IniFormat);
  SavedFilters saved(&settings);
  saved.set({QStringLiteral("b & c"), QStringLiteral("op:mm \"a/b\"")});
  saved.set({QStringLiteral("a"), QStringLiteral("saved")});
  saved.set({QStringLiteral("a"), QStringLiteral("saved:no")});
  const std::vector<SavedFilters::Entry> both{{QStringLiteral("a"), QStringLiteral("saved:no")},
                                              {QStringLiteral("b & c"), QStringLiteral("op:mm \"a/b\"")}};
  QCOMPARE(SavedFilters(&settings).all(), both);
  saved.remove(QStringLiteral("a"));
  QCOMPARE(saved.all().size(), std::size_t(1));

  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:2")));
  auto* save = f.window().findChild<QAction*>(QStringLiteral("action-filter-save"));
  QVERIFY(!save->isEnabled());
  QVERIFY(apply(f, QStringLiteral("op:mm")));
  save->trigger();
  auto* dialog = f.window().findChild<QInputDialog*>(QStringLiteral("save-filter"));
  QVERIFY(dialog);
  dialog->setTextValue(QStringLiteral("products"));
  dialog->accept();
  QVERIFY(apply(f, {}));
  auto* menu = f.window().findChild<QMenu*>(QStringLiteral("filters"));
  const auto find = [](QMenu* in, const QString& text) {
    for (auto* action : in->actions())
      if (action->text() == text) return action;
    return static_cast<QAction*>(nullptr);
  };
  Q_EMIT menu->aboutToShow();
  QVERIFY(find(menu, QStringLiteral("products")));
  find(menu, QStringLiteral("products"))->trigger();
  QCOMPARE(filter(f).words(), QStringLiteral("op:mm"));
  find(find(menu, QStringLiteral("Remo&ve"))->menu(), QStringLiteral("products"))->trigger();
  Q_EMIT menu->aboutToShow();
  QVERIFY(!find(menu, QStringLiteral("products")));
}

void FilterTest::theGraphDimsTheRest() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.press(Qt::Key_4, Qt::ControlModifier);
  auto& graph = f.window().listings().graph();
  QTRY_VERIFY(graph.picture() && !graph.busy());
  graph.setAllOpen(true);
  QTRY_VERIFY(!graph.busy() && graph.boxOf(f.analysis().forward.ops[0]) >= 0);
  const auto passing = named(f.analysis(), f.analysis().joint, "aten.addmm.default").at(0);
  const auto other = named(f.analysis(), f.analysis().joint, "aten.relu.default").at(0);
  QVERIFY(!graph.isDimmed(graph.boxOf(passing)) && !graph.isDimmed(graph.boxOf(other)));
  QVERIFY(apply(f, QStringLiteral("op:addmm")));
  QVERIFY(!graph.isDimmed(graph.boxOf(passing)) && graph.isDimmed(graph.boxOf(other)));
  QVERIFY(graph.textOf(graph.boxOf(other)).contains(QStringLiteral("does not pass")));
  f.picture(QStringLiteral("filter-graph"));
  QVERIFY(apply(f, {}));
  QVERIFY(!graph.isDimmed(graph.boxOf(other)));
}

void FilterTest::aReloadKeepsTheFilter() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QVERIFY(apply(f, QStringLiteral("op:addmm")));
  const auto before = f.controller().document();
  f.press(Qt::Key_R, Qt::ControlModifier);
  QTRY_VERIFY(f.controller().document() != before && !f.controller().opening());
  QTRY_VERIFY(filter(f).ops() && filter(f).ops()->document == f.controller().document());
  QVERIFY(titleOver(f.listing(TraceKind::forward)).contains(QStringLiteral("3 of 9 ops")));
  QVERIFY(f.open(QStringLiteral("synthetic:4")));
  QTRY_VERIFY(titleOver(f.listing(TraceKind::forward)).contains(QStringLiteral("4 of 12 ops")));
}

void FilterTest::aLargeTraceIsFilteredInTheBackground() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic12000")));  // a joint of 108,000 ops
  QSignalSpy changed(&filter(f), &OpFilter::changed);
  QVERIFY(filter(f).apply(QStringLiteral("op:/^aten.(relu|mm)/ module:*1*")));
  QCOMPARE(changed.count(), 0);  // it has only begun
  QVERIFY(filter(f).busy());
  QVERIFY(changed.wait(20000));
  auto& joint = f.listing(TraceKind::joint);
  const auto& passing = filter(f).ops()->trace(TraceKind::joint);
  QVERIFY(passing.count() > 0 && passing.count() < passing.lines());
  int shown = 0;
  for (int row = 0; row < joint.rowCount(); ++row) shown += joint.opAt(row) && !joint.isKept(row);
  QCOMPARE(shown, passing.count());
}

void FilterTest::findTakesRegularExpressions() {
  QString problem;
  QVERIFY(LinePattern(QStringLiteral("ADDMM")).matches(QStringLiteral("t = aten.addmm(a)")));
  const auto pattern = LinePattern::expression(QStringLiteral("t\\d+ = aten.(mm|t)\\("), problem);
  QVERIFY(pattern && pattern->matches(QStringLiteral("t12 = aten.mm(a)")) &&
          !pattern->matches(QStringLiteral("t12 = aten.addmm(a)")));
  QVERIFY(!LinePattern::expression(QStringLiteral("\u00e4(a"), problem));
  QVERIFY2(problem.startsWith(QStringLiteral("Column ")), qPrintable(problem));

  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& forward = f.listing(TraceKind::forward);
  forward.setFocus();
  f.press(Qt::Key_F, Qt::ControlModifier);
  auto* text = f.window().findChild<QLineEdit*>(QStringLiteral("find-text"));
  auto* state = f.window().findChild<QLabel*>(QStringLiteral("find-state"));
  f.window().findChild<QCheckBox*>(QStringLiteral("find-expression"))->click();
  QTest::keyClicks(text, QStringLiteral("aten.(addmm|nothing"));
  QVERIFY2(state->text().contains(QStringLiteral("Column")), qPrintable(state->text()));
  QTest::keyClicks(text, QStringLiteral(")\\("));
  QVERIFY(state->text().isEmpty());
  QSignalSpy done(&forward, &ListingView::findDone);
  QTest::keyClick(text, Qt::Key_Return);
  QTRY_COMPARE(done.count(), 1);
  const auto wanted = named(f.analysis(), f.analysis().forward, "aten.addmm.default");
  QCOMPARE(forward.opAt(forward.cursorRow()), wanted[0]);
  // Only lines that pass the filter are found.
  QVERIFY(apply(f, QStringLiteral("op:addmm not name:%1")
                       .arg(QString::fromStdString(
                           f.analysis().document->displayName(f.analysis().document->outputs(wanted[1])[0])))));
  QTest::keyClick(text, Qt::Key_Return);
  QTRY_COMPARE(done.count(), 2);
  QCOMPARE(forward.opAt(forward.cursorRow()), wanted[2]);
  f.picture(QStringLiteral("find-expression"));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::FilterTest)
#include "filter_test.moc"
