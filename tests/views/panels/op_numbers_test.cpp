// V4 and V5 in the window over the real engine: numbers of every line, the trace table, gradient flow, marks.
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
#include "views/widgets/marked_scroll_bar.h"

namespace retrograd::views {

class OpNumbersTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void V4_aColumnShowsANumberForEachLine();
  void V4_numbersOfOpsThatWereUndoneAreOfTheLastRun();
  void V4_theTraceTableIsSorted();
  void V4_gradientFlowListsTheParameters();
  void V4_aFrozenParameterIsInTheFlow();
  void V5_walkToTheRootRunsByItself();
  void V5_linesFillAndTheFirstNaNIsMarked();
};

namespace {

ValueId parameterNamed(WindowFixture& f, const QString& target) {
  for (const auto& input : f.analysis().computation().inputs)
    if (input.kind == InputKind::parameter && QString::fromStdString(input.target) == target) return input.value;
  return {};
}

}  // namespace

void OpNumbersTest::V4_aColumnShowsANumberForEachLine() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(allKnown(f));
  auto& view = f.listing(TraceKind::joint);
  QVERIFY(view.columnRect().isEmpty());
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
void OpNumbersTest::V4_numbersOfOpsThatWereUndoneAreOfTheLastRun() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(allKnown(f));
  f.window().listings().toggleAction(TraceKind::computation)->setChecked(true);
  auto& view = f.listing(TraceKind::forward);
  view.setAllFolded(false);
  trigger(f, "column-time");
  const auto greatest = [&] {  // of the ops in sight
    int best = -1;
    for (int row = 0; row < view.rowCount(); ++row)
      if (view.isRowVisible(row) && view.opAt(row))
        if (best < 0 ||
            numbers(f).number(OpFigure::time, view.opAt(row)) > numbers(f).number(OpFigure::time, view.opAt(best)))
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
  QVERIFY(isPast(row) && isOutline(row));
  f.controller().run().runTo(op);
  QVERIFY(f.settle() && f.quiet());
  QVERIFY(isPast(view.rowOf(op)));  // it runs next
  f.press(Qt::Key_F10);
  QVERIFY(f.settle() && f.quiet());
  f.selection().select(op);
  row = view.rowOf(op);
  QVERIFY(view.isRowVisible(row) && !isPast(row) && !isOutline(row));
  QVERIFY(!isComputationPast());
  trigger(f, "column-gradient");
  QVERIFY(view.numberAt(row).isEmpty() || isPast(row));  // made in the backward, which has not run
  trigger(f, "column-time");
  f.press(Qt::Key_F10, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.settle() && f.quiet());
  row = view.rowOf(op);
  QVERIFY(isPast(row) && isOutline(row));
  f.picture(QStringLiteral("undone"));
}

void OpNumbersTest::V4_theTraceTableIsSorted() {
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

void OpNumbersTest::V4_gradientFlowListsTheParameters() {
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

void OpNumbersTest::V4_aFrozenParameterIsInTheFlow() {
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

void OpNumbersTest::V5_walkToTheRootRunsByItself() {
  WindowFixture f(liveEngine());
  trigger(f, "run-on-open");
  QVERIFY(f.open(modelFile("tests/data/planted/log_of_zero.txt")));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_W, Qt::ControlModifier | Qt::ShiftModifier);
  auto* model = f.window().findChild<QTreeView*>(QStringLiteral("findings"))->model();
  QTRY_COMPARE_WITH_TIMEOUT(model->rowCount(), 2, 30000);
  QCOMPARE(f.execution().position, std::size_t(0));
}

void OpNumbersTest::V5_linesFillAndTheFirstNaNIsMarked() {
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

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::OpNumbersTest)
#include "op_numbers_test.moc"
