// In the window over the real engine: values of any op, running on open, tips, comparing.
#include <QDir>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QTemporaryFile>
#include <QTest>
#include <QToolButton>
#include <QTreeWidget>

#include "core/derivation/gradient_of.h"
#include "core/trace/effects.h"
#include "tests/views/run_ahead.h"
#include "tests/views/test_program.h"
#include "views/dialogs/compare_values_dialog.h"
#include "views/dialogs/value_tip.h"
#include "views/numbers/gradient_flow_chart.h"

namespace retrograd::views {

class AnyOpTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void valuesOfAnyOpShowWhereverExecutionIs();
  void theNewestSelectionIsAnswered();
  void bothSidesOfAWriteShow();
  void aFillHoldsInWhatIsRunAhead();
  void whatTakesLongShowsItsProgressAndCanBeCancelled();
  void aSmallModelRunsWhenItIsOpened();
  void withoutThePreferenceRunAheadIsOffered();
  void aLargeModelOffersToRun();
  void twoWindowsAndAReloadDoNotDisturbIt();
  void restingOnANameShowsTheValue();
  void theKeyShowsTheChosenValue();
  void twoValuesAreCompared();
};

namespace {

QString mlp() { return modelFile("tests/data/models/mlp/model.pt2"); }

/// Keeps the newest report.
class Reports {
 public:
  explicit Reports(WindowFixture& f) {
    QObject::connect(&f.controller().questions(), &Questions::valuesReady, &f.window(),
                     [this](const std::shared_ptr<const ValueReport>& r) {
                       newest_ = r;
                       ops_.push_back(r->op);
                     });
  }
  bool waitFor(BoundSymbolId op) {
    return QTest::qWaitFor([&] { return newest_ && newest_->op == op; }, 20000);
  }
  const ValueReport& newest() const { return *newest_; }
  const std::vector<BoundSymbolId>& ops() const { return ops_; }

 private:
  std::shared_ptr<const ValueReport> newest_;
  std::vector<BoundSymbolId> ops_;
};

/// A point on the name of the value in the listing.
QPoint pointOf(ListingView& view, BoundSymbolId op, ValueId value) {
  view.reveal(op);
  const int row = view.rowOf(op);
  const auto rect = view.rowRect(row);
  for (int x = 0; x < view.viewport()->width(); x += 3)
    if (view.valueAt({x, rect.center().y()}, row) == value) return {x + 2, rect.center().y()};
  return {};
}

}  // namespace

void AnyOpTest::valuesOfAnyOpShowWhereverExecutionIs() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  f.raise("dock-values");
  Reports reports(f);
  const auto& backward = f.analysis().backward.ops;
  for (auto op :
       {backward.back(), backward.front(), f.analysis().forward.ops.back(), f.analysis().forward.ops.front()}) {
    f.listing(TraceKind::joint).reveal(op);
    f.click(TraceKind::joint, op);
    QVERIFY(reports.waitFor(op));
    for (const auto& row : reports.newest().rows) QVERIFY2(row.state.present, row.state.reason.c_str());
    QVERIFY(reports.newest().detail && reports.newest().detail->contents.data);
    QCOMPARE(f.execution().position, std::size_t(0));
  }
  // In the middle of a run too, and the position stays.
  f.listing(TraceKind::forward).reveal(f.analysis().forward.ops[9]);
  f.click(TraceKind::forward, f.analysis().forward.ops[9]);
  f.press(Qt::Key_F10, Qt::ControlModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, std::size_t(9));
  f.selection().select(backward.back());
  QVERIFY(reports.waitFor(backward.back()));
  QVERIFY(reports.newest().rows.back().statistics);
  QCOMPARE(f.execution().position, std::size_t(9));
  f.picture(QStringLiteral("values-any-op"));
}

void AnyOpTest::theNewestSelectionIsAnswered() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  f.raise("dock-values");
  QVERIFY(f.quiet());
  Reports reports(f);
  const auto& ops = f.analysis().joint.ops;
  for (std::size_t i = 0; i < 40; ++i) f.selection().select(ops[(i * 37) % ops.size()]);
  const auto last = ops[(39 * 37) % ops.size()];
  QVERIFY(reports.waitFor(last));
  QVERIFY(f.quiet());
  QCOMPARE(reports.newest().op, last);
  QVERIFY(reports.ops().size() < 10);  // those in between are not asked for
}

void AnyOpTest::bothSidesOfAWriteShow() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("tests/data/models/batchnorm_train/model.pt2")));
  f.raise("dock-values");
  Reports reports(f);
  const auto& document = *f.analysis().document;
  BoundSymbolId writer;
  for (auto op : f.analysis().joint.ops)
    if (!writtenOperands(document, op).empty()) writer = op;
  QVERIFY(writer);
  f.selection().select(writer);
  QVERIFY(reports.waitFor(writer));
  const auto written = writtenOperands(document, writer).front();
  QStringList sides;
  for (const auto& row : reports.newest().rows)
    if (row.value == written) {
      QVERIFY(row.state.present);
      sides << (row.after ? QStringLiteral("after") : QStringLiteral("before"));
    }
  QCOMPARE(sides, (QStringList{QStringLiteral("before"), QStringLiteral("after")}));
}

void AnyOpTest::aFillHoldsInWhatIsRunAhead() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(mlp()));
  f.raise("dock-values");
  QVERIFY(allKnown(f));
  Reports reports(f);
  const auto first = f.analysis().forward.ops[0];
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  f.press(Qt::Key_F10, Qt::ControlModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, std::size_t(1));
  const auto value = f.analysis().document->outputs(first)[0];
  f.controller().questions().fillValue(value, 0.0);
  f.selection().select(first, value);
  QVERIFY(QTest::qWaitFor(
      [&] {
        return reports.waitFor(first) && reports.newest().detail && reports.newest().detail->statistics.norm == 0.0;
      },
      20000));
  QTRY_VERIFY(numbers(f).known() < numbers(f).size());  // what came after it is out of date
  BoundSymbolId reader;
  for (auto op : f.analysis().joint.ops)
    for (auto operand : f.analysis().document->operands(op))
      if (operand == value && op != first) reader = op;
  QVERIFY(reader);
  f.selection().select(reader);
  QVERIFY(reports.waitFor(reader));
  for (const auto& row : reports.newest().rows)
    if (row.value == value) QCOMPARE(row.statistics->norm, 0.0);
}

void AnyOpTest::whatTakesLongShowsItsProgressAndCanBeCancelled() {
  auto engine = std::make_shared<FakeEngine>();
  engine->opTime = std::chrono::milliseconds(20);
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic:12")));
  f.raise("dock-values");
  QVERIFY(f.quiet());
  Reports reports(f);
  const auto& ops = f.analysis().joint.ops;
  auto* text = f.window().findChild<QLabel*>(QStringLiteral("busy-text"));
  auto* cancel = f.window().findChild<QToolButton*>(QStringLiteral("busy-cancel"));
  f.selection().select(ops[3]);
  QTRY_VERIFY(text->isVisible() && text->text().startsWith(QStringLiteral("Values: ")));
  QVERIFY(reports.ops().empty());
  QTest::mouseClick(cancel, Qt::LeftButton);
  QTRY_VERIFY(!text->isVisible());
  QVERIFY(reports.ops().empty());
  f.selection().select(ops[5]);
  QTRY_VERIFY(text->isVisible());
  QVERIFY(reports.waitFor(ops[5]));
  QTRY_VERIFY(!text->isVisible());
}

void AnyOpTest::aSmallModelRunsWhenItIsOpened() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(allKnown(f));
  QCOMPARE(f.execution().position, std::size_t(0));
  for (auto op : f.analysis().joint.ops) QVERIFY(numbers(f).number(OpFigure::time, op).has_value());
  QVERIFY(!numbers(f).firstBad());
  QVERIFY(!f.window().findChild<QToolButton*>(QStringLiteral("run-ahead-button"))->isVisible());
}

void AnyOpTest::withoutThePreferenceRunAheadIsOffered() {
  WindowFixture f(liveEngine());
  trigger(f, "run-on-open");
  QVERIFY(f.open(mlp()));
  QVERIFY(f.quiet());
  QVERIFY(numbers(f).known() <= 1);  // the selected op alone
  // A chart without numbers says how they come.
  f.raise("dock-gradient-flow");
  const auto* chart = f.window().findChild<GradientFlowChart*>();
  const auto why = QStringLiteral("Run the model to see its numbers: F5");
  QTRY_COMPARE(chart->accessibleDescription(), why);
  f.raise("dock-trace-table");
  const auto* hint = f.window().findChild<QLabel*>(QStringLiteral("trace-table-hint"));
  QTRY_COMPARE(hint->text(), why);
  auto* button = f.window().findChild<QToolButton*>(QStringLiteral("run-ahead-button"));
  QTRY_VERIFY(button->isVisible());
  QTest::mouseClick(button, Qt::LeftButton);
  QVERIFY(allKnown(f));
  QTRY_VERIFY(!button->isVisible());
  QTRY_COMPARE(hint->text(), QString());
  f.raise("dock-gradient-flow");
  QTRY_COMPARE(chart->accessibleDescription(), QString());
  QCOMPARE(f.execution().position, std::size_t(0));
}

// A model whose run is estimated at two seconds or more does not run by itself; the values' place offers to run it.
void AnyOpTest::aLargeModelOffersToRun() {
  QTemporaryFile file(QDir::temp().filePath(QStringLiteral("large-XXXXXX.txt")));
  QVERIFY(file.open());
  file.write(R"(def computation(x, w):
    # x: "f32[1, 1024]"
    # w: "f32[1024, 1024]", parameter
    wide = aten.expand(x, [10000000, 1024])
    y = aten.mm(wide, w)
    loss = aten.sum(y)
    return loss
)");
  file.close();
  WindowFixture f(liveEngine());
  QVERIFY(f.open(file.fileName()));
  QVERIFY(f.quiet());
  QVERIFY(numbers(f).known() <= 1);  // the selected op alone
  const auto* button = f.window().findChild<QToolButton*>(QStringLiteral("run-ahead-button"));
  QTRY_VERIFY(button->isVisible());
  QVERIFY(button->isEnabled());
}

void AnyOpTest::twoWindowsAndAReloadDoNotDisturbIt() {
  WindowFixture f(liveEngine()), g(liveEngine());
  QVERIFY(f.open(mlp()));
  QVERIFY(g.open(modelFile("tests/data/models/multi_output/model.pt2")));
  f.controller().marks().toggleBreakpoint(f.analysis().forward.ops[1]);
  f.controller().reload();
  QVERIFY(QTest::qWaitFor([&] { return !f.controller().opening(); }, 20000));
  QVERIFY(allKnown(f));  // the breakpoint is for the session
  QVERIFY(allKnown(g));
  f.window().activateWindow();
  f.listing(TraceKind::forward).setFocus();
  f.controller().run().continueForward();
  QVERIFY(f.settle());
  QCOMPARE(f.execution().reason, StopReason::breakpoint);
}

void AnyOpTest::restingOnANameShowsTheValue() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(mlp()));
  QVERIFY(f.quiet());
  auto& view = f.listing(TraceKind::forward);
  const auto op = f.analysis().forward.ops[1];
  const auto value = f.analysis().document->outputs(op)[0];
  const auto at = pointOf(view, op, value);
  QVERIFY(!at.isNull());
  auto* tip = f.window().findChild<ValueTip*>();
  QHelpEvent rest(QEvent::ToolTip, at, view.viewport()->mapToGlobal(at));
  QApplication::sendEvent(view.viewport(), &rest);
  QVERIFY(tip->isVisible());
  QTRY_VERIFY(tip->isFilled());
  QVERIFY2(tip->text().contains(QStringLiteral("norm")), qPrintable(tip->text()));
  QVERIFY(tip->text().contains(QString::fromStdString(f.analysis().document->displayName(value))));
  QVERIFY(tip->findChild<HistogramView*>()->isVisible());
  if (const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES"); !folder.isEmpty())
    tip->grab().save(folder + QStringLiteral("/value-tip.png"));
  QTest::mouseMove(view.viewport(), {view.viewport()->width() - 3, view.viewport()->height() - 3});
  QTest::keyClick(&view, Qt::Key_Down);
  QVERIFY(!tip->isVisible());
}

void AnyOpTest::theKeyShowsTheChosenValue() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(mlp()));
  QVERIFY(f.quiet());
  f.click(TraceKind::backward, f.analysis().backward.ops.back());
  f.press(Qt::Key_V, Qt::ControlModifier | Qt::ShiftModifier);
  auto* tip = f.window().findChild<ValueTip*>();
  QTRY_VERIFY(tip->isVisible() && tip->isFilled());
}

void AnyOpTest::twoValuesAreCompared() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(mlp()));
  QVERIFY(f.quiet());
  const auto& document = *f.analysis().document;
  // A weight and its gradient have one shape.
  BoundSymbolId reader, maker;
  for (const auto& input : f.analysis().computation().inputs) {
    const auto gradient = input.kind == InputKind::parameter ? gradientOf(f.analysis(), input.value) : ValueId();
    if (!gradient) continue;
    for (auto op : f.analysis().forward.ops)
      for (auto operand : document.operands(op))
        if (operand == input.value) {
          reader = op;
          maker = document.value(gradient).producer;
          f.selection().select(reader, input.value);
        }
    if (reader) break;
  }
  QVERIFY(reader && maker);
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_V);
  f.selection().select(maker);
  f.press(Qt::Key_V);
  auto* dialog = f.window().findChild<CompareValuesDialog*>();
  QVERIFY(dialog);
  QTRY_VERIFY2(dialog->summary().contains(QStringLiteral("elements differ")), qPrintable(dialog->summary()));
  const auto* table = dialog->findChild<QTreeWidget*>();
  QCOMPARE(table->topLevelItemCount(), 13);
  QVERIFY(table->header()->sectionSize(2) <
          table->viewport()->width() / 2);  // the numbers of both are next to each other
  // Numbers end below each other, as in Values.
  for (const int column : {1, 2}) {
    QVERIFY(table->headerItem()->textAlignment(column) & Qt::AlignRight);
    for (int row = 0; row < table->topLevelItemCount(); ++row)
      QVERIFY(table->topLevelItem(row)->textAlignment(column) & Qt::AlignRight);
  }
  if (const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES"); !folder.isEmpty())
    dialog->grab().save(folder + QStringLiteral("/compare-values.png"));
  QTest::keyClick(dialog, Qt::Key_Escape);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::AnyOpTest)
#include "any_op_test.moc"
