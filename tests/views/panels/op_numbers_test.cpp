// In the window over the real engine: numbers of every line, the trace table, gradient flow, marks.
#include <QLabel>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>
#include <cmath>
#include <limits>

#include "core/derivation/gradient_of.h"
#include "tests/views/pictures.h"
#include "tests/views/run_ahead.h"
#include "tests/views/test_program.h"
#include "views/models/tree_model.h"
#include "views/numbers/gradient_flow_chart.h"
#include "views/numbers/trace_table_model.h"
#include "views/text/format.h"
#include "views/theme/tokens.h"
#include "views/widgets/marked_scroll_bar.h"
#include "views/window/listing_header.h"

namespace retrograd::views {

class OpNumbersTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void aColumnShowsANumberForEachLine();
  void numbersOfOpsThatWereUndoneAreOfTheLastRun();
  void theTraceTableIsSorted();
  void gradientFlowListsTheParameters();
  void aFrozenParameterIsInTheFlow();
  void walkToTheRootRunsByItself();
  void linesFillAndTheFirstNaNIsMarked();
  void aFoldedRowShowsTheSumBelow();
  void titlesNameTheColumn();
  void barsAreSeenNextToAnOutlier();
  void theComputationIsMarkedToo();
  void eachListingMarksItsOwnFirst();
  void aClickOnAMarkGoesThere();
};

namespace {

ValueId parameterNamed(WindowFixture& f, const QString& target) {
  for (const auto& input : f.analysis().computation().inputs)
    if (input.kind == InputKind::parameter && QString::fromStdString(input.target) == target) return input.value;
  return {};
}

/// A row that is folded after this; -1 where nothing can be.
int foldedRow(ListingView& view) {
  view.setAllFolded(true);
  for (int row = 0; row < view.rowCount(); ++row)
    if (view.isHeader(row)) return row;
  return -1;
}

}  // namespace

void OpNumbersTest::aColumnShowsANumberForEachLine() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(allKnown(f));
  auto& view = f.listing(TraceKind::joint);
  f.window().resize(2400, 980);
  QTRY_VERIFY(!view.columnRect().isEmpty());  // norms, since it has run (W47)
  QVERIFY(!view.numberAt(view.rowOf(f.analysis().joint.ops[3])).isEmpty());
  for (const char* name : {"column-time", "column-bytes", "column-norm", "column-max", "column-bad"}) {
    trigger(f, name);
    QVERIFY(!view.columnRect().isEmpty());
    const int row = view.rowOf(f.analysis().joint.ops[3]);
    QVERIFY(!view.numberAt(row).isEmpty());
    QVERIFY(view.spokenAt(row).contains(view.numberAt(row)));
  }
  trigger(f, "column-gradient");
  bool any = false;
  for (int row = 0; row < view.rowCount(); ++row) any = any || !view.numberAt(row).isEmpty();
  QVERIFY(any);
  trigger(f, "column-norm");
  f.picture(QStringLiteral("column-norm"));
}

// Outlines before the op runs, bars after it, and outlines again once it is undone.
void OpNumbersTest::numbersOfOpsThatWereUndoneAreOfTheLastRun() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(allKnown(f));
  f.window().listings().toggleAction(TraceKind::computation)->setChecked(true);
  f.window().resize(2600, 980);
  auto& view = f.listing(TraceKind::forward);
  view.setAllFolded(false);
  trigger(f, "column-bytes");
  const auto greatest = [&] {
    int best = -1;
    for (int row = 0; row < view.rowCount(); ++row)
      if (view.opAt(row))
        if (best < 0 ||
            numbers(f).number(OpFigure::bytes, view.opAt(row)) > numbers(f).number(OpFigure::bytes, view.opAt(best)))
          best = row;
    return best;
  };
  const auto isOutline = [&](int row) {
    const auto cell = view.rowRect(row);
    const auto image = imageOf(*view.viewport()).copy(view.columnRect().left() + 5, cell.top() + 4, 6, 6);
    return !hasColor(image, ListingView::barColor(f.theme().colors(), false, false)) &&
           !hasColor(image, ListingView::barColor(f.theme().colors(), false, true));
  };
  const auto isPast = [&](int row) { return view.spokenAt(row).contains(QStringLiteral("of the last run")); };
  auto& computation = f.listing(TraceKind::computation);
  const auto isComputationPast = [&] {  // of the first operation, whose forward ops have run once all of them have
    const auto operation = OriginLinks::origin(*f.analysis().document, f.analysis().forward.ops[0]);
    return computation.spokenAt(computation.rowOf(operation)).contains(QStringLiteral("of the last run"));
  };
  QVERIFY(isComputationPast());
  f.selection().select(f.analysis().forward.ops[0]);
  int row = greatest();
  const auto op = view.opAt(row);
  f.selection().select(op);
  QVERIFY(view.isRowVisible(row) && isPast(row) && isOutline(row));
  f.controller().run().runTo(op);
  QVERIFY(f.settle() && f.quiet());
  QVERIFY(isPast(view.rowOf(op)));  // it runs next
  f.press(Qt::Key_F10);
  QVERIFY(f.settle() && f.quiet());
  f.selection().select(op);
  row = view.rowOf(op);
  QVERIFY(view.isRowVisible(row));
  QVERIFY2(!isPast(row), qPrintable(view.spokenAt(row)));
  QVERIFY(!isOutline(row));
  QVERIFY(!isComputationPast());
  trigger(f, "column-gradient");
  QVERIFY(view.numberAt(row).isEmpty() || isPast(row));  // made in the backward, which has not run
  trigger(f, "column-bytes");
  f.press(Qt::Key_F10, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.settle() && f.quiet());
  row = view.rowOf(op);
  QVERIFY(isPast(row) && isOutline(row));
  f.picture(QStringLiteral("undone"));
  // The table of all ops says so too.
  f.raise("dock-trace-table");
  const auto* table = f.window().findChild<QTreeView*>(QStringLiteral("trace-table"))->model();
  QTRY_COMPARE(table->rowCount(), static_cast<int>(f.analysis().joint.ops.size()));
  const auto spoken = [&](BoundSymbolId wanted) {
    for (int i = 0; i < table->rowCount(); ++i)
      if (table->index(i, 0).data(opRole).toInt() == wanted.index)
        return table->index(i, TraceTableModel::columnOf(OpFigure::time)).data(Qt::AccessibleTextRole).toString();
    return QString();
  };
  QVERIFY(spoken(op).contains(QStringLiteral("of the last run")));
  if (op != f.analysis().forward.ops[0])
    QVERIFY(!spoken(f.analysis().forward.ops[0]).contains(QStringLiteral("of the last run")));
}

void OpNumbersTest::theTraceTableIsSorted() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(allKnown(f));
  f.raise("dock-trace-table");
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("trace-table"));
  QTRY_COMPARE(table->model()->rowCount(), static_cast<int>(f.analysis().joint.ops.size()));
  constexpr int time = 5;
  table->setFocus();
  table->setCurrentIndex(table->model()->index(2, time));
  QTest::keyClick(table, Qt::Key_Down, Qt::AltModifier);
  QVERIFY(f.quiet());
  double before = std::numeric_limits<double>::infinity();
  for (int row = 0; row < table->model()->rowCount(); ++row) {
    const BoundSymbolId op(table->model()->index(row, 0).data(opRole).toInt());
    const auto seconds = numbers(f).number(OpFigure::time, op);
    QVERIFY(seconds && *seconds <= before);
    before = *seconds;
  }
  table->setCurrentIndex(table->model()->index(0, 0));
  QCOMPARE(f.selection().op().index, table->model()->index(0, 0).data(opRole).toInt());
  f.picture(QStringLiteral("trace-table"));
}

void OpNumbersTest::gradientFlowListsTheParameters() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(allKnown(f));
  f.raise("dock-gradient-flow");
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("gradient-flow"));
  const auto* rows = table->model();
  QTRY_VERIFY(rows->rowCount() > 3 && !rows->index(0, 3).data().toString().isEmpty());
  // A layer is one row and one bar, with the norm of all its parameters together.
  const auto rowNamed = [&](const QString& name, const QModelIndex& parent = {}) {
    for (int i = 0; i < rows->rowCount(parent); ++i)
      if (const auto row = rows->index(i, 0, parent); row.data() == name) return row;
    return QModelIndex();
  };
  const auto layer = rowNamed(QStringLiteral("blocks.0"));
  QVERIFY(layer.isValid() && !table->isExpanded(layer));
  double square = 0;
  for (const auto& input : f.analysis().computation().inputs)
    if (input.target.starts_with("blocks.0."))
      square += std::pow(numbers(f).statistics(gradientOf(f.analysis(), input.value))->norm, 2);
  QVERIFY(std::abs(layer.siblingAtColumn(2).data(sortRole).toDouble() - std::sqrt(square)) <= 1e-9 * std::sqrt(square));
  auto* chart = f.window().findChild<GradientFlowChart*>();
  const auto bars = chart->bars().size();
  QCOMPARE(bars, static_cast<std::size_t>(rows->rowCount()));
  // One that is open shows its parts.
  table->setFocus();
  table->setCurrentIndex(layer);
  f.press(Qt::Key_Right);
  QVERIFY(table->isExpanded(layer));
  QCOMPARE(chart->bars().size(), bars - 1 + static_cast<std::size_t>(rows->rowCount(layer)));
  f.press(Qt::Key_Left);
  QCOMPARE(chart->bars().size(), bars);
  // A bar leads to its row, a parameter to its gradient.
  const auto first = chart->barRect(0).center().toPoint();
  QTest::mouseClick(chart, Qt::LeftButton, Qt::NoModifier, first);
  QCOMPARE(table->currentIndex(), rows->index(0, 0));
  QCOMPARE(f.selection().value(),
           gradientOf(f.analysis(), parameterNamed(f, rows->index(0, 0).data(Qt::ToolTipRole).toString())));
  f.picture(QStringLiteral("gradient-flow"));
}

void OpNumbersTest::aFrozenParameterIsInTheFlow() {
  QTemporaryDir folder;
  const auto file = folder.filePath(QStringLiteral("frozen.txt"));
  QFile text(file);
  QVERIFY(text.open(QIODevice::WriteOnly));
  text.write(R"(def computation(a, b, x):
    # a: "f32[4]", parameter
    # b: "f32[4]", parameter, no grad
    # x: "f32[4]"
    m = torch.ops.aten.mul.Tensor(a, x)
    n = torch.ops.aten.mul.Tensor(b, m)
    return (n,)
)");
  text.close();
  WindowFixture f(liveEngine());
  QVERIFY(f.open(file));
  QVERIFY(allKnown(f));
  f.raise("dock-gradient-flow");
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("gradient-flow"));
  const auto* rows = table->model();
  QTRY_COMPARE(rows->rowCount(), 2);
  QTRY_VERIFY(!rows->index(1, 1).data().toString().isEmpty());
  QVERIFY(!rows->index(0, 3).data().toString().isEmpty());
  QCOMPARE(rows->index(1, 2).data().toString(), QStringLiteral("none"));
  QCOMPARE(rows->index(1, 3).data().toString(), QString());
  table->setCurrentIndex(rows->index(1, 0));
  QCOMPARE(f.selection().value(), f.analysis().computation().inputs[1].value);
}

void OpNumbersTest::walkToTheRootRunsByItself() {
  WindowFixture f(liveEngine());
  trigger(f, "run-on-open");
  QVERIFY(f.open(modelFile("tests/data/planted/log_of_zero.txt")));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_W, Qt::ControlModifier | Qt::ShiftModifier);
  auto* model = f.window().findChild<QTreeView*>(QStringLiteral("findings"))->model();
  QTRY_COMPARE_WITH_TIMEOUT(model->rowCount(), 2, 30000);
  QCOMPARE(f.execution().position, std::size_t(0));
}

void OpNumbersTest::linesFillAndTheFirstNaNIsMarked() {
  WindowFixture f(liveEngine());
  trigger(f, "run-on-open");
  QVERIFY(f.open(modelFile("tests/data/planted/log_of_zero.txt")));
  QVERIFY(f.quiet());
  auto& view = f.listing(TraceKind::joint);
  auto* bar = view.findChild<MarkedScrollBar*>();
  QVERIFY(bar->marks().empty());
  view.setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QVERIFY(allKnown(f));  // what the session ran is known without running it again
  QTRY_COMPARE(bar->marks().size(), std::size_t(1));
  QVERIFY(bar->toolTip().contains(QStringLiteral("NaN")));
  QVERIFY(numbers(f).isBad(numbers(f).firstBad()));
  f.picture(QStringLiteral("first-nan"));
}

void OpNumbersTest::aFoldedRowShowsTheSumBelow() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(allKnown(f));
  trigger(f, "column-bytes");
  auto& view = f.listing(TraceKind::forward);
  const int row = foldedRow(view);
  QVERIFY(row >= 0);
  double sum = 0;
  for (auto op : f.analysis().forward.ops)
    if (view.rowOf(op) == row) sum += numbers(f).number(OpFigure::bytes, op).value_or(0);
  QVERIFY(sum > 0);
  QCOMPARE(view.numberAt(row), numberText(OpFigure::bytes, sum));
  trigger(f, "column-max");
  QCOMPARE(view.numberAt(row), QString());  // there is no sum of greatest values
}

void OpNumbersTest::titlesNameTheColumn() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1280, 720);
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  const auto titles = [&](TraceKind kind) {
    for (const auto* header : f.window().findChildren<ListingHeader*>())
      if (header->accessibleName() == QStringLiteral("Columns of %1").arg(titleText(kind)))
        return header->accessibleDescription();
    return QString();
  };
  // Over its column, and whole in a narrow window.
  trigger(f, "column-norm");
  for (auto kind : {TraceKind::forward, TraceKind::backward}) {
    QTRY_VERIFY2(titles(kind).contains(QStringLiteral("L2 Norm")), qPrintable(titles(kind)));
    QVERIFY(!titles(kind).section(QLatin1Char(';'), 1).contains(QStringLiteral("L2 Norm")));
    QVERIFY(!f.listing(kind).columnRect().isEmpty());
  }
  // Gradients have no gradient: the column is the forward's.
  trigger(f, "column-gradient");
  QTRY_VERIFY(titles(TraceKind::forward).contains(QStringLiteral("Gradient Norm")));
  QVERIFY(f.listing(TraceKind::backward).columnRect().isEmpty());
  trigger(f, "column-none");
  QTRY_VERIFY(!titles(TraceKind::forward).contains(QStringLiteral("Gradient Norm")));
}

// The first use of a thread pool takes a thousand times as long as other ops: their bars are of the length that they
// have among each other.
void OpNumbersTest::barsAreSeenNextToAnOutlier() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(allKnown(f));
  const auto& ops = f.analysis().joint.ops;
  RunNews news;
  news.end = ops.size();
  for (std::size_t i = 0; i < ops.size(); ++i)
    news.measures.push_back({i == 1 ? 0.04 : 1e-6 * static_cast<double>(i % 30), 0});
  numbers(f).add(news);
  QVERIFY(ops.size() >= 100);
  QCOMPARE(numbers(f).scale(OpFigure::time), 29e-6);
}

void OpNumbersTest::theComputationIsMarkedToo() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("tests/data/planted/log_of_zero.txt")));
  QVERIFY(allKnown(f));
  const auto* bar = f.listing(TraceKind::computation).findChild<MarkedScrollBar*>();
  QTRY_COMPARE(bar->marks().size(), std::size_t(1));
  QCOMPARE(bar->marks()[0].what, QStringLiteral("first NaN or Inf"));
}

// The forward has the first of the run; the backward has NaN too, and one of them is its first.
void OpNumbersTest::eachListingMarksItsOwnFirst() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("tests/data/planted/log_of_zero.txt")));
  QVERIFY(allKnown(f));
  for (auto kind : {TraceKind::forward, TraceKind::backward, TraceKind::joint}) {
    const auto& view = f.listing(kind);
    int first = -1;
    for (int row = 0; row < view.rowCount() && first < 0; ++row)
      if (view.spokenAt(row).contains(QStringLiteral("NaN"))) first = row;
    QVERIFY(first >= 0);
    const auto* bar = view.findChild<MarkedScrollBar*>();
    QTRY_COMPARE(bar->marks().size(), std::size_t(1));
    QCOMPARE(bar->marks()[0].place, static_cast<double>(first) / (view.rowCount() - 1));
  }
}

void OpNumbersTest::aClickOnAMarkGoesThere() {
  MarkedScrollBar bar;
  bar.resize(16, 400);
  bar.setRange(0, 900);
  bar.setPageStep(100);
  bar.setMarks({{0.5, Qt::red, QStringLiteral("error")}});
  bar.show();
  QTest::mouseClick(&bar, Qt::LeftButton, Qt::NoModifier, bar.markRect(bar.marks()[0]).center());
  QCOMPARE(bar.value(), 450);  // row 500 of 1000, in the middle of 100
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::OpNumbersTest)
#include "op_numbers_test.moc"
