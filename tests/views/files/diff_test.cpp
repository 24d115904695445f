#include <QAccessible>
#include <QCheckBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QTest>
#include <ctime>

#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/docks/why_dock.h"
#include "views/window/diff_window.h"

namespace retrograd::views {

/// Two traces side by side, by real keys.
class DiffTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { installCodeAccessibility(); }
  void rowsShowBothSidesOrAGap();
  void theGutterShowsIdsOfOps();
  void wordsThatDifferAreMarked();
  void equalStretchesFold();
  void aKeyOpensIt();
  void anotherFileIsCompared();
  void keysGoFromDifferenceToDifference();
  void theSelectionIsInStep();
  void enterJumpsInTheMainWindow();
  void theWhyDockLeadsHere();
  void aPassIsCompared();
  void escapeCancels();
  void whatCannotBeReadIsSaid();
  void sidesSwap();
  void aClosedFileLeavesNothing();
  void aScreenReaderHearsTheRow();
  void aHundredThousandRowsScroll();
};

namespace {

std::shared_ptr<const Comparison> compared(int left, int right, TraceKind kind = TraceKind::forward) {
  const auto a = syntheticAnalysis(left), b = syntheticAnalysis(right);
  return compareTraces({a, nullptr, &traceOf(*a, kind), QStringLiteral("left")},
                       {b, nullptr, &traceOf(*b, kind), QStringLiteral("right")}, {});
}

/// Signs of all visible rows; "." for what is the same, "=" for what is folded.
QString signs(const DiffRows& rows) {
  QString text;
  for (int i = 0; i < rows.count(); ++i)
    text += rows.folded(i) > 1                        ? QStringLiteral("=")
            : rows.row(i).kind == DiffRow::Kind::same ? QStringLiteral(".")
                                                      : DiffRows::sign(rows.row(i).kind);
  return text;
}

DiffWindow& diffOf(WindowFixture& f) { return *f.window().findChild<DiffWindow*>(QStringLiteral("diff-window")); }

bool settled(DiffWindow& window) {
  return QTest::qWaitFor([&] { return !window.busy(); }, 20000);
}

/// Opens the window on a model of `left` layers next to one of `right`.
bool openOn(WindowFixture& f, int left, int right, TraceKind kind = TraceKind::forward) {
  if (!f.open(QStringLiteral("synthetic:%1").arg(left))) return false;
  auto& window = diffOf(f);
  window.chooser(Side::left).choose({}, kind);
  window.chooser(Side::right).choose({TraceSource::Kind::file, QStringLiteral("synthetic:%1").arg(right)}, kind);
  window.open();
  return settled(window) && window.view().rows().count() > 0;
}

double cpuMilliseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

}  // namespace

void DiffTest::rowsShowBothSidesOrAGap() {
  const DiffRows rows(compared(3, 4));
  QCOMPARE(signs(rows).count(QLatin1Char('+')), 3 + 1);  // t, addmm, relu, and what the last of them saves
  QCOMPARE(rows.comparison()->diff.counts.onlyLeft, 0U);
  int left = 0, right = 0;
  for (int i = 0; i < rows.count(); ++i) {
    left += rows.opAt(i, Side::left).valid();
    right += rows.opAt(i, Side::right).valid();
    const bool isGap = rows.row(i).kind == DiffRow::Kind::onlyRight;
    QCOMPARE(rows.line(i, Side::left).text.isEmpty(), isGap);
    QVERIFY(!rows.line(i, Side::right).text.isEmpty());
  }
  QCOMPARE(left, 9);
  QCOMPARE(right, 12);
}

void DiffTest::theGutterShowsIdsOfOps() {
  WindowFixture f;
  QVERIFY(openOn(f, 2, 3, TraceKind::backward));
  const auto& view = diffOf(f).view();
  int shown = 0;
  for (int i = 0; i < view.rows().count(); ++i) {
    for (auto side : bothSides) {
      const auto op = view.rows().opAt(i, side);
      QCOMPARE(view.gutterText(i, side), op ? QStringLiteral("#%1").arg(op.index) : QString());
      shown += op.valid();
    }
  }
  QVERIFY(shown > 0);
  QVERIFY(view.gutterText(0, Side::left) !=
          QStringLiteral("#0"));  // the first line of a backward, yet not the first op
}

void DiffTest::wordsThatDifferAreMarked() {
  // The joint of a model with one layer more: the first gradient op of the last layer they share reads another
  // gradient.
  const DiffRows rows(compared(2, 3, TraceKind::joint));
  int marked = 0;
  for (int i = 0; i < rows.count(); ++i) {
    for (auto side : bothSides) {
      const auto changed = rows.changedTokens(i, side);
      if (rows.row(i).kind == DiffRow::Kind::same) QVERIFY(changed.empty());
      if (!(rows.row(i).changes & change::arguments)) continue;
      const auto line = rows.line(i, side);
      QCOMPARE(changed.size(), line.tokens.size());
      for (std::size_t k = 0; k < changed.size(); ++k)
        if (changed[k] && line.tokens[k].kind == TokenKind::value) {
          ++marked;
          const auto& tables = *rows.comparison()->of(side).analysis->document;
          const auto operands = tables.operands(rows.opAt(i, side));
          QVERIFY2(std::find(operands.begin(), operands.end(), line.tokens[k].value) != operands.end(),
                   "a result is marked, though only an operand differs");
        }
    }
  }
  QVERIFY(marked > 0);
}

void DiffTest::equalStretchesFold() {
  auto comparison = compared(20, 21);
  DiffRows rows(comparison, true);
  QVERIFY(signs(rows).contains(QLatin1Char('=')));
  QVERIFY(rows.count() < static_cast<int>(comparison->diff.rows.size()) - 20);
  const int fold = static_cast<int>(signs(rows).indexOf(QLatin1Char('=')));
  const int behind = rows.folded(fold), before = rows.count();
  QVERIFY(rows.explanation(fold).contains(QString::number(behind)));
  QVERIFY(!rows.opAt(fold, Side::left));
  // An op that is folded away is known to be there.
  const auto hidden = comparison->diff.leftLines.ops[1];
  QCOMPARE(rows.rowOf(Side::left, hidden), fold);
  const auto blocks = rows.blocks().size();
  rows.unfold(fold);
  QCOMPARE(rows.count(), before + behind - 1);
  QCOMPARE(rows.blocks().size(), blocks);
  QCOMPARE(rows.opAt(rows.rowOf(Side::left, hidden), Side::left), hidden);
  rows.showOnlyDifferences(false);
  QCOMPARE(rows.count(), static_cast<int>(comparison->diff.rows.size()));
  // Equal traces fold to one row.
  QCOMPARE(signs(DiffRows(compared(5, 5), true)), QStringLiteral("="));
}

void DiffTest::aKeyOpensIt() {
  WindowFixture f;
  auto* action = f.window().findChild<QAction*>(QStringLiteral("action-compare-traces"));
  QVERIFY(!action->isEnabled());
  QVERIFY(action->toolTip().contains(QStringLiteral("No file is open")));
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QTest::keyClick(&f.window(), Qt::Key_D, Qt::ControlModifier);
  auto& window = diffOf(f);
  QVERIFY(window.isVisible());
  QVERIFY(settled(window));
  // Nobody chose another trace, so it is the joint: a partition leaves the computation as it is.
  for (auto side : {Side::left, Side::right}) QCOMPARE(window.chooser(side).kind(), TraceKind::joint);
  // As few bytes saved as possible: the engine of this test saves the same.
  QVERIFY2(window.summary().contains(QStringLiteral("equal")), qPrintable(window.summary()));
  QTest::keyClick(&window, Qt::Key_W, Qt::ControlModifier);
  QVERIFY(!window.isVisible());
}

void DiffTest::anotherFileIsCompared() {
  WindowFixture f;
  QVERIFY(openOn(f, 3, 4));
  auto& window = diffOf(f);
  QVERIFY2(window.summary().contains(QStringLiteral("only on the right")), qPrintable(window.summary()));
  QVERIFY(window.view().message().isEmpty());
  // Another trace of the same two: nothing is read again.
  window.chooser(Side::left).choose({}, TraceKind::computation);
  window.chooser(Side::right).choose(window.chooser(Side::right).source(), TraceKind::computation);
  const auto opened = f.controller().document();
  window.compare();
  QVERIFY(settled(window));
  QCOMPARE(window.view().rows().comparison()->left.trace->kind, TraceKind::computation);
  QCOMPARE(f.controller().document(), opened);
}

void DiffTest::keysGoFromDifferenceToDifference() {
  WindowFixture f;
  QVERIFY(openOn(f, 20, 22, TraceKind::joint));
  auto& window = diffOf(f);
  auto& view = window.view();
  view.setFocus();
  QTest::keyClick(&view, Qt::Key_Home);
  QCOMPARE(view.cursorRow(), 0);
  const auto blocks = view.rows().blocks();
  QVERIFY(blocks.size() >= 2);
  const bool atFirst = blocks.front() == 0;
  std::vector<int> met;
  if (atFirst) met.push_back(0);
  while (met.size() < blocks.size()) {
    QTest::keyClick(&window, Qt::Key_F8);
    met.push_back(view.cursorRow());
    QVERIFY(view.rowRect(view.cursorRow()).top() >= 0 &&
            view.rowRect(view.cursorRow()).bottom() <= view.viewport()->height());
  }
  QCOMPARE(met, blocks);
  QVERIFY(!window.findChild<QAction*>(QStringLiteral("diff-next"))->isEnabled());
  QTest::keyClick(&window, Qt::Key_F8, Qt::ShiftModifier);
  QCOMPARE(view.cursorRow(), blocks[blocks.size() - 2]);
  QVERIFY(window.details().contains(QStringLiteral("only on the right")) || window.details().contains(QChar(0x2192)));
}

void DiffTest::theSelectionIsInStep() {
  WindowFixture f;
  QVERIFY(openOn(f, 20, 22));
  auto& view = diffOf(f).view();
  const auto op = f.analysis().forward.ops.at(40);
  f.selection().select(op);
  QCOMPARE(view.rows().opAt(view.cursorRow(), Side::left), op);
  QVERIFY(view.rowRect(view.cursorRow()).bottom() <= view.viewport()->height());
  view.setFocus();
  QTest::keyClick(&view, Qt::Key_Up);
  QCOMPARE(f.selection().op(), f.analysis().forward.ops.at(39));
  // A line that is on the right alone belongs to no open document: the selection stays.
  const auto selected = f.selection().op();
  for (int i = 0; i < view.rows().count(); ++i)
    if (view.rows().row(i).kind == DiffRow::Kind::onlyRight) {
      QTest::mouseClick(view.viewport(), Qt::LeftButton, {},
                        QPoint(view.viewport()->width() * 3 / 4,
                               (view.verticalScrollBar()->setValue(i), view.rowRect(i).center().y())));
      QCOMPARE(view.cursorRow(), i);
      QCOMPARE(view.side(), Side::right);
      break;
    }
  QCOMPARE(f.selection().op(), selected);
}

void DiffTest::enterJumpsInTheMainWindow() {
  WindowFixture f;
  QVERIFY(openOn(f, 5, 6));
  auto& view = diffOf(f).view();
  const auto target = f.analysis().forward.ops.at(4);
  view.setCursor(view.rows().rowOf(Side::left, target), Side::left);
  view.setFocus();
  QTest::keyClick(&view, Qt::Key_Return);
  QCOMPARE(f.selection().op(), target);
  QVERIFY(f.listing(TraceKind::forward).isRowVisible(f.listing(TraceKind::forward).rowOf(target)));
}

void DiffTest::theWhyDockLeadsHere() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.window().showPanel(f.window().panel<WhyDock>());
  f.selection().select(f.analysis().forward.ops.at(2));
  f.window().panel<WhyDock>().recompute();
  QVERIFY(QTest::qWaitFor([&] { return !f.window().panel<WhyDock>().verdict().isEmpty(); }));
  auto* button = f.window().findChild<QPushButton*>(QStringLiteral("what-if-compare"));
  QTest::mouseClick(button, Qt::LeftButton);
  auto& window = diffOf(f);
  QVERIFY(window.isVisible());
  QVERIFY(settled(window));
  QCOMPARE(window.chooser(Side::right).source().kind, TraceSource::Kind::tried);
  const auto* comparison = window.view().rows().comparison();
  QVERIFY(comparison);
  QCOMPARE(comparison->left.analysis, f.controller().document()->analysis);
  QCOMPARE(comparison->right.analysis->request.partition.recompute.size(), 1U);
  QVERIFY(window.chooser(Side::right).title().startsWith(QStringLiteral("If ")));
  // What is discarded is no longer compared.
  for (auto* discard : f.window().panel<WhyDock>().findChildren<QPushButton*>())
    if (discard->text().contains(QStringLiteral("iscard"))) QTest::mouseClick(discard, Qt::LeftButton);
  QVERIFY(settled(window));
  QVERIFY(window.chooser(Side::right).source().kind != TraceSource::Kind::tried);
  QVERIFY(!window.chooser(Side::right).title().startsWith(QStringLiteral("If ")));
}

namespace {

/// A model whose joint two passes made, of which the first left an op more.
class PassEngine : public FakeEngine {
 public:
  std::shared_ptr<const Analysis> open(const OpenRequest& request, const Progress& progress,
                                       const OnRead& onRead) override {
    auto analysis = std::make_shared<Analysis>(*FakeEngine::open(request, progress, onRead));
    analysis->joint.history = {{"Grad transform", {}, {}, 0, {}}, {"Dead code elimination", {}, {}, 0, {}}};
    return analysis;
  }
  PassTraces passes(const Analysis& analysis, const Progress&) override {
    ++derivations;
    PassTraces passes;
    passes.analysis = std::make_shared<Analysis>(analysis);
    passes.results.push_back({"Read", analysis.computation().trace});
    passes.results.push_back({"Grad transform", analysis.joint});
    passes.results.push_back({"Dead code elimination", analysis.joint});
    passes.results.back().trace.ops.erase(passes.results.back().trace.ops.begin() + 4);
    --passes.results.back().trace.forwardCount;
    return passes;
  }
  int derivations = 0;
};

}  // namespace

void DiffTest::aPassIsCompared() {
  const auto engine = std::make_shared<PassEngine>();
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& window = diffOf(f);
  window.chooser(Side::left).choose({TraceSource::Kind::pass, QStringLiteral("Grad transform")}, TraceKind::joint);
  window.chooser(Side::right)
      .choose({TraceSource::Kind::pass, QStringLiteral("Dead code elimination")}, TraceKind::joint);
  window.open();
  QVERIFY(settled(window));
  QCOMPARE(engine->derivations, 1);
  QCOMPARE(window.view().rows().comparison()->diff.counts.onlyLeft, 1U);
  QCOMPARE(window.view().cursorRow(), 4);
}

void DiffTest::escapeCancels() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& window = diffOf(f);
  window.chooser(Side::right).choose({TraceSource::Kind::file, QStringLiteral("block")}, TraceKind::joint);
  window.open();
  QTRY_VERIFY(window.busy());
  QTest::keyClick(&window.view(), Qt::Key_Escape);
  QVERIFY(settled(window));
  QVERIFY2(window.view().message().startsWith(QStringLiteral("Cancelled")), qPrintable(window.view().message()));
  window.chooser(Side::right).choose({TraceSource::Kind::file, QStringLiteral("synthetic:4")}, TraceKind::joint);
  window.compare();
  QVERIFY(settled(window));
  QVERIFY(window.view().message().isEmpty());
  QTest::keyClick(&window.view(), Qt::Key_Escape);  // nothing to cancel: it closes
  QVERIFY(!window.isVisible());
}

void DiffTest::whatCannotBeReadIsSaid() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& window = diffOf(f);
  window.chooser(Side::right).choose({TraceSource::Kind::file, QStringLiteral("/no/model.pt2")}, TraceKind::joint);
  window.open();
  QVERIFY(settled(window));
  QVERIFY2(window.view().message().contains(QStringLiteral("not a torch.export archive")),
           qPrintable(window.view().message()));
  QVERIFY(window.summary().isEmpty());
}

void DiffTest::sidesSwap() {
  WindowFixture f;
  QVERIFY(openOn(f, 3, 4));
  auto& window = diffOf(f);
  const auto more = window.view().rows().comparison()->diff.counts.onlyRight;
  QTest::mouseClick(window.findChildren<QToolButton*>().front(), Qt::LeftButton);
  QVERIFY(settled(window));
  QCOMPARE(window.view().rows().comparison()->diff.counts.onlyLeft, more);
  QCOMPARE(window.chooser(Side::left).source().kind, TraceSource::Kind::file);
}

void DiffTest::aClosedFileLeavesNothing() {
  WindowFixture f;
  QVERIFY(openOn(f, 3, 4));
  auto& window = diffOf(f);
  f.controller().close();
  QCOMPARE(window.view().rows().count(), 0);
  QVERIFY(window.view().message().contains(QStringLiteral("No file is open")));
}

void DiffTest::aScreenReaderHearsTheRow() {
  WindowFixture f;
  QVERIFY(openOn(f, 3, 4));
  auto& view = diffOf(f).view();
  auto* heard = QAccessible::queryAccessibleInterface(&view);
  QVERIFY(heard);
  for (int i = 0; i < view.rows().count(); ++i) {
    view.setCursor(i, Side::left);
    const auto text = heard->text(QAccessible::Value);
    QVERIFY2(text.startsWith(view.rows().row(i).kind == DiffRow::Kind::same      ? QStringLiteral("equal")
                             : view.rows().row(i).kind == DiffRow::Kind::changed ? QStringLiteral("changed")
                                                                                 : QStringLiteral("only on the right")),
             qPrintable(text));
  }
}

void DiffTest::aHundredThousandRowsScroll() {
  auto comparison = compared(9'000, 9'100, TraceKind::joint);
  QVERIFY(comparison->diff.rows.size() > 80'000);
  Theme theme(*qApp);
  DiffView view(&theme);
  view.resize(1400, 800);
  view.show(DiffRows(comparison));
  static_cast<QWidget&>(view).show();
  QVERIFY(QTest::qWaitForWindowExposed(&view));
  std::vector<double> frames;
  for (int i = 0; i < 60; ++i) {
    view.verticalScrollBar()->setValue(i * view.verticalScrollBar()->maximum() / 60);
    const auto begin = cpuMilliseconds();
    view.viewport()->repaint();
    frames.push_back(cpuMilliseconds() - begin);
  }
  std::sort(frames.begin(), frames.end());
  qInfo("frames: median %.1f ms, longest %.1f ms", frames[30], frames.back());
  QVERIFY(frames[30] < 16);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::DiffTest)
#include "diff_test.moc"
