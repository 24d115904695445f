// The panels of values without scrolling, by keyboard, and without anything to show; what comes into the
// window from outside.
#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QComboBox>
#include <QDialog>
#include <QFile>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QScreen>
#include <QStatusBar>
#include <QTableView>
#include <QTest>
#include <QToolTip>
#include <QTreeView>
#include <QWindow>
#include <limits>

#include "tests/support/source_path.h"
#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "tests/views/user.h"
#include "views/canvases/histogram_view.h"
#include "views/canvases/memory_view.h"
#include "views/dialogs/value_tip.h"
#include "views/docks/values_dock.h"
#include "views/models/slice_model.h"
#include "views/numbers/gradient_flow_chart.h"
#include "views/numbers/trace_table_model.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/marked_scroll_bar.h"

namespace retrograd::views {

class ValuesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void statisticsShow_data();
  void statisticsShow();
  void anOperandIsReadByEnterAndLeadsOnWithCtrl();
  void aCommandLeadsToTheLargestElement();
  void aHistogramOfTheWholeRangeOfDoublesNamesItsEdges();
  void aFailureIsSaidWhereTheValueWouldBe();
  void theTraceTableListsEveryTrace();
  void costsHaveBarsInTheTraceTable();
  void gradientFlowShowsItsNumbersInANarrowPanel();
  void livingTensorsAreAListByKeyboard();
  void goToFindsOpsOfBodies();
  void aDroppedFileOpens();
  void aDroppedFileThatIsNoneSaysWhy();
};

namespace {

QString fileOf(const char* path) { return QString::fromStdString(sourcePath(path)); }
QString gpt() { return fileOf("resources/samples/tiny_gpt.pt2"); }
QTreeView& treeOf(WindowFixture& f, const char* name) { return *f.window().findChild<QTreeView*>(QLatin1String(name)); }

}  // namespace

void ValuesTest::statisticsShow_data() {
  QTest::addColumn<QSize>("size");
  for (const QSize size : {QSize(1280, 800), {1632, 918}, {1920, 1080}})
    QTest::newRow(qPrintable(QString::number(size.width()))) << size;
}

void ValuesTest::statisticsShow() {
  QFETCH(QSize, size);
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(size);
  QVERIFY(f.open(gpt()));
  const auto& backward = f.analysis().backward.ops;
  auto& table = treeOf(f, "values");
  for (auto op : {backward.front(), backward[backward.size() / 2], f.analysis().forward.ops[5]}) {
    f.selection().select(op);
    QVERIFY(f.quiet());
    QVERIFY(standsStill(f.window()));
    for (int column : {ValuesModel::valueName, ValuesModel::type, ValuesModel::nan, ValuesModel::inf,
                       ValuesModel::least, ValuesModel::greatest, ValuesModel::mean, ValuesModel::norm}) {
      const int right = table.columnViewportPosition(column) + table.columnWidth(column);
      QVERIFY2(right <= table.viewport()->width(),
               qPrintable(
                   QStringLiteral("column %1 ends at %2 of %3").arg(column).arg(right).arg(table.viewport()->width())));
      if (column < ValuesModel::least) continue;
      for (int row = 0; row < table.model()->rowCount(); ++row)  // a number is whole
        QVERIFY(static_cast<QAbstractItemView&>(table).sizeHintForIndex(table.model()->index(row, column)).width() <=
                table.columnWidth(column));
    }
    QVERIFY(table.viewport()->height() >= 3 * table.visualRect(table.model()->index(0, 0)).height());
    const auto* histogram = f.window().panel<ValuesDock>().findChild<HistogramView*>();
    QVERIFY(histogram->isVisible() && histogram->width() >= 120);
  }
}

void ValuesTest::anOperandIsReadByEnterAndLeadsOnWithCtrl() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(gpt()));
  const auto op = f.analysis().forward.ops[5];
  f.selection().select(op);
  for (const char* name : {"inspector", "values"}) {
    f.raise(name == QStringLiteral("values") ? "dock-values" : "dock-why");
    QVERIFY(f.quiet());
    auto& tree = treeOf(f, name);
    QModelIndex operand;
    const auto search = [&](const auto& self, const QModelIndex& parent) -> void {
      for (int row = 0; row < tree.model()->rowCount(parent) && !operand.isValid(); ++row) {
        const auto index = tree.model()->index(row, 0, parent);
        const auto leads = opOf(index);
        if (leads && leads != op && index.data(valueRole).toInt() >= 0) operand = index;
        self(self, index);
      }
    };
    search(search, {});
    QVERIFY(operand.isValid());
    const auto leads = opOf(operand);
    tree.setFocus();
    tree.setCurrentIndex(operand);
    QTest::keyClick(&tree, Qt::Key_Return);
    QPointer<QPlainTextEdit> whole = f.window().findChild<QPlainTextEdit*>(QStringLiteral("whole-text"));
    QVERIFY(whole && whole->isVisible());
    QVERIFY(whole->toPlainText().contains(operand.siblingAtColumn(1).data().toString()));
    QCOMPARE(f.selection().op(), op);
    QTest::keyClick(whole, Qt::Key_Escape);
    QTRY_VERIFY(!whole);
    tree.setFocus();
    QTest::keyClick(&tree, Qt::Key_Return, Qt::ControlModifier);
    QCOMPARE(f.selection().op(), leads);
    f.selection().select(op);
  }
}

// Into a slice that is not shown, with the cursor on it; what is not there has a reason.
void ValuesTest::aCommandLeadsToTheLargestElement() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(gpt()));
  const auto& document = *f.analysis().document;
  BoundSymbolId op;
  for (auto candidate : f.analysis().forward.ops)
    if (const auto outputs = document.outputs(candidate); !op && !outputs.empty() && document.isTensor(outputs[0]))
      if (const auto& meta = document.meta(outputs[0]);
          meta.sizes.size() == 3 && meta.sizes[0] > 1 && meta.dtype == DType::f32)
        op = candidate;
  QVERIFY(op);
  f.raise("dock-values");
  f.selection().select(op);
  QVERIFY(f.quiet());
  auto* table = f.window().findChild<QTableView*>(QStringLiteral("value-contents"));
  auto* model = qobject_cast<SliceModel*>(table->model());
  QTRY_VERIFY(model->contents().data);
  const auto size = [](double number) { return std::abs(number); };
  for (const QString which : {"largest-element", "smallest-element", "largest-magnitude"}) {
    const auto& data = model->contents();
    double wanted = elementNumber(data, 0);
    for (std::int64_t i = 0; i < data.meta.elements(); ++i) {
      const double number = elementNumber(data, i);
      const bool isBetter = which == QLatin1String("largest-element")    ? number > wanted
                            : which == QLatin1String("smallest-element") ? number < wanted
                                                                         : size(number) > size(wanted);
      if (isBetter) wanted = number;
    }
    auto* go = f.window().findChild<QAction*>(QStringLiteral("action-") + which);
    QVERIFY2(go->isEnabled(), qPrintable(go->toolTip()));
    go->trigger();
    QVERIFY(f.quiet());
    const auto cell = table->currentIndex();
    QCOMPARE(model->number(cell.row(), cell.column()), wanted);
    QVERIFY(table->hasFocus() && table->visualRect(cell).isValid());
    QVERIFY(f.window().statusBar()->currentMessage().contains(QStringLiteral(" at [")));
  }
  const auto* bad = f.window().findChild<QAction*>(QStringLiteral("action-nan-element"));
  QVERIFY(!bad->isEnabled());
  QVERIFY2(bad->toolTip().contains(QStringLiteral("finite")), qPrintable(bad->toolTip()));
  auto* largest = f.window().findChild<QAction*>(QStringLiteral("action-largest-element"));
  f.window().findChild<QDockWidget*>(QStringLiteral("dock-values"))->close();
  QTRY_VERIFY2(!largest->isEnabled(), "of what is not in sight there is no largest element");
}

void ValuesTest::aHistogramOfTheWholeRangeOfDoublesNamesItsEdges() {
  Theme theme(*qApp);
  HistogramView view(&theme);
  view.resize(400, 100);
  TensorStatistics statistics;
  statistics.max = std::numeric_limits<double>::max();
  statistics.min = -statistics.max;
  view.set({1, 0, 1, 2}, statistics);
  view.show();
  QVERIFY(QTest::qWaitForWindowExposed(&view));
  for (const int x : {10, 380}) {
    QHelpEvent event(QEvent::ToolTip, {x, 50}, view.mapToGlobal(QPoint(x, 50)));
    QCoreApplication::sendEvent(&view, &event);
    const auto text = QToolTip::text();
    QVERIFY2(text.contains(QStringLiteral("e+307")) || text.contains(QStringLiteral("e+308")), qPrintable(text));
    QVERIFY2(!text.contains(QStringLiteral("inf"), Qt::CaseInsensitive) && !text.contains(QStringLiteral("nan")),
             qPrintable(text));
  }
}

// An op that fails when it runs: the values' place, the line's column, the scroll bar's mark and the tip have the
// reason.
void ValuesTest::aFailureIsSaidWhereTheValueWouldBe() {
  QTemporaryDir folder;
  const auto path = folder.filePath(QStringLiteral("fails.txt"));
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(R"(def computation(x, w):
    # x: "f32[4, 2]"
    # w: "f32[2]", parameter

    y = torch.ops.aten.mul.Tensor(x, w)
    index = torch.ops.aten.full.default([2], 9, dtype=torch.int64)
    row = torch.ops.aten.index_select.default(y, 0, index)
    loss = torch.ops.aten.sum.default(row)
    return (loss,)
)");
  file.close();
  WindowFixture f(liveEngine());
  QVERIFY(f.open(path));
  QVERIFY(f.quiet());
  auto& numbers = f.controller().ahead().numbers();
  QVERIFY(numbers.failed());
  const auto word = QStringLiteral("out of range");
  QVERIFY2(numbers.failure().contains(word), qPrintable(numbers.failure()));
  f.raise("dock-values");
  f.selection().select(f.analysis().forward.ops.back());
  QVERIFY(f.quiet());
  const auto* rows = treeOf(f, "values").model();
  QVERIFY(rows->rowCount() > 0);
  for (int row = 0; row < rows->rowCount(); ++row) {
    const auto state = rows->index(row, ValuesModel::state).data(Qt::ToolTipRole).toString();
    QVERIFY2(state.contains(word), qPrintable(state));
  }
  f.window().findChild<QAction*>(QStringLiteral("action-column-norm"))->trigger();
  auto& view = f.listing(TraceKind::joint);
  QCOMPARE(view.numberAt(view.rowOf(numbers.failed())), QStringLiteral("! failed"));
  QVERIFY(view.findChild<MarkedScrollBar*>()->toolTip().contains(word));
  auto* tip = f.window().findChild<ValueTip*>();
  tip->show(f.selection().op(), f.analysis().document->outputs(f.selection().op())[0],
            view.mapToGlobal(QPoint(40, 40)));
  QTRY_VERIFY2(tip->text().contains(word), qPrintable(tip->text()));
  QVERIFY(tip->isVisible());  // the window closes with the tip up
}

void ValuesTest::theTraceTableListsEveryTrace() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(gpt()));
  f.raise("dock-trace-table");
  QVERIFY(f.quiet());
  auto& table = treeOf(f, "trace-table");
  QAbstractItemModelTester tester(table.model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  auto* traces = f.window().findChild<QComboBox*>(QStringLiteral("trace-table-trace"));
  QCOMPARE(traces->count(), 4);
  const auto& document = *f.controller().document();
  for (auto kind : {TraceKind::forward, TraceKind::backward, TraceKind::computation, TraceKind::joint}) {
    traces->setFocus();
    QTest::keyClick(traces, Qt::Key_Home);
    while (traces->currentText() != titleText(kind) && traces->currentIndex() + 1 < traces->count())
      QTest::keyClick(traces, Qt::Key_Down);
    QVERIFY(f.quiet());
    QCOMPARE(table.model()->rowCount(), static_cast<int>(document.trace(kind).lines.size()));
    QCOMPARE(table.model()->index(0, 0).data(opRole).toInt(), document.trace(kind).lines[0].index);
    table.setFocus();
    table.setCurrentIndex(table.model()->index(0, TraceTableModel::output));
    f.press(Qt::Key_Up, Qt::AltModifier);
    QVERIFY(f.quiet());
    QStringList names;
    for (int row = 0; row < table.model()->rowCount(); ++row)
      names << table.model()->index(row, TraceTableModel::output).data().toString();
    // t9 comes before t10.
    int last = -1;
    for (const auto& name : names) {
      bool isNumber = false;
      const int number = name.startsWith(QLatin1Char('t')) ? name.mid(1).toInt(&isNumber) : 0;
      if (!isNumber) continue;
      QVERIFY(number > last);
      last = number;
    }
    table.sortByColumn(TraceTableModel::number, Qt::AscendingOrder);
    QVERIFY(f.quiet());
    int known = 0;
    for (int row = 0; row < table.model()->rowCount(); ++row)
      known += !table.model()->index(row, TraceTableModel::columnOf(OpFigure::norm)).data().toString().isEmpty();
    QVERIFY2(known > table.model()->rowCount() / 2, qPrintable(titleText(kind)));
  }
}

// Time and bytes have bars behind them, as in listings; numbers that nobody adds up have none.
void ValuesTest::costsHaveBarsInTheTraceTable() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(gpt()));
  f.raise("dock-trace-table");
  QVERIFY(f.quiet() && standsStill(f.window()));
  auto& table = treeOf(f, "trace-table");
  const auto hasBar = [&](int column) {
    const auto image = table.viewport()->grab().toImage();
    const QRect place(table.columnViewportPosition(column), 0, table.columnWidth(column), image.height());
    // The run is at its start: the numbers are of the run ahead, their bars an outline.
    const auto line = ListingView::barColor(f.theme().colors(), false, true).rgb();
    for (int y = place.top(); y < place.bottom(); ++y)
      for (int x = place.left(); x < std::min(place.right(), image.width()); ++x)
        if (image.pixel(x, y) == line) return true;
    return false;
  };
  for (auto cost : {OpFigure::time, OpFigure::bytes}) QVERIFY(hasBar(TraceTableModel::columnOf(cost)));
  for (int column : {int(TraceTableModel::opName), TraceTableModel::columnOf(OpFigure::norm)}) QVERIFY(!hasBar(column));
}

// At 1280 pixels the panel has a third of the window: its table is below the chart then, with all of its numbers.
void ValuesTest::gradientFlowShowsItsNumbersInANarrowPanel() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1280, 720);
  QVERIFY(f.open(gpt()));
  QVERIFY(f.quiet());
  auto* panel = f.raise("dock-gradient-flow");
  QVERIFY(panel);
  const auto& table = treeOf(f, "gradient-flow");
  QTRY_VERIFY(!table.model()->index(0, 3).data().toString().isEmpty());
  QTRY_VERIFY(table.header()->length() <= table.viewport()->width());
  const auto* chart = panel->findChild<GradientFlowChart*>();
  QVERIFY(chart->width() >= chart->minimumWidth() && chart->height() >= chart->minimumHeight());
}

void ValuesTest::livingTensorsAreAListByKeyboard() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(gpt()));
  f.raise("dock-memory");
  QVERIFY(f.quiet());
  auto* memory = f.window().findChild<MemoryView*>();
  memory->setFocus();
  f.press(Qt::Key_P);
  f.press(Qt::Key_Space);
  QPointer<QDialog> list = f.window().findChild<QDialog*>(QStringLiteral("alive-list"));
  QVERIFY(list && list->isVisible());
  auto* tree = list->findChild<QTreeView*>();
  QVERIFY(tree->model()->rowCount() > 12);
  const auto place = list->geometry(), room = list->screen()->availableGeometry();
  QVERIFY2(room.contains(place), qPrintable(QStringLiteral("%1, %2 to %3, %4 of %5, %6")
                                                .arg(place.left())
                                                .arg(place.top())
                                                .arg(place.right())
                                                .arg(place.bottom())
                                                .arg(room.right())
                                                .arg(room.bottom())));
  QVERIFY2(tree->header()->length() <= tree->viewport()->width(),
           qPrintable(QStringLiteral("columns need %1 of %2 pixels in a list of %3")
                          .arg(tree->header()->length())
                          .arg(tree->viewport()->width())
                          .arg(list->width())));
  QCOMPARE(QApplication::focusWidget(), tree);
  const auto name = QAccessible::queryAccessibleInterface(tree)->text(QAccessible::Name);
  QVERIFY2(name.contains(QStringLiteral("#%1").arg(f.selection().op().index)), qPrintable(name));
  f.press(Qt::Key_Down);
  f.press(Qt::Key_Down);
  QCOMPARE(tree->currentIndex().row(), 2);
  const auto maker = opOf(tree->currentIndex());
  QVERIFY(maker);
  f.press(Qt::Key_Return);
  QTRY_VERIFY(!list);
  QCOMPARE(f.selection().op(), maker);
}

void ValuesTest::goToFindsOpsOfBodies() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(fileOf("tests/data/models/cond_hop/model.pt2")));
  QVERIFY(f.quiet());
  const auto& document = *f.analysis().document;
  auto* line = f.window().findChild<QWidget*>(QStringLiteral("quick-open"))->findChild<QLineEdit*>();
  int bodies = 0;
  for (auto id : document.subgraphIds())
    for (auto op : document.subgraph(id).ops) {
      ++bodies;
      f.press(Qt::Key_P, Qt::ControlModifier);
      QTest::keyClicks(line, QStringLiteral("#%1").arg(op.index));
      QVERIFY(f.quiet());
      QTest::keyClick(line, Qt::Key_Return);
      QVERIFY2(f.selection().op() == op || OriginLinks::origin(document, f.selection().op()) == op,
               qPrintable(QStringLiteral("#%1").arg(op.index)));
      QVERIFY(f.window().listings().active().rowOf(f.selection().op()) >= 0);
    }
  QVERIFY(bodies > 2);
}

void ValuesTest::aDroppedFileOpens() {
  WindowFixture f(liveEngine());
  User(f).drop(gpt());
  QTRY_VERIFY_WITH_TIMEOUT(!f.controller().opening() && f.controller().document(), 60000);
  // Over a listing, and over a line of text, which would take it for itself.
  auto* first = f.controller().document().get();
  User(f).drop(fileOf("resources/samples/twins.pt2"), f.listing(TraceKind::forward).viewport());
  QTRY_VERIFY_WITH_TIMEOUT(!f.controller().opening() && f.controller().document().get() != first, 60000);
  QCOMPARE(QString::fromStdString(f.controller().document()->request.path), fileOf("resources/samples/twins.pt2"));
}

void ValuesTest::aDroppedFileThatIsNoneSaysWhy() {
  WindowFixture f(liveEngine());
  QTemporaryDir folder;
  const auto path = folder.filePath(QStringLiteral("bad.pt2"));
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write("not a model");
  file.close();
  User(f).drop(path);
  QTRY_VERIFY_WITH_TIMEOUT(!f.controller().opening() && f.window().messages().isVisible(), 60000);
  QVERIFY2(f.window().messages().text().contains(QStringLiteral("bad.pt2")), qPrintable(f.window().messages().text()));
  QVERIFY(!f.controller().document());
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::ValuesTest)
#include "values_test.moc"
