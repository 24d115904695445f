// What the window makes of a NaN or Inf before anyone asks: marks, numbers of folded rows, the Findings panel, the
// status bar.
#include <QComboBox>
#include <QFile>
#include <QHelpEvent>
#include <QLabel>
#include <QListView>
#include <QStatusBar>
#include <QTest>
#include <QToolTip>
#include <QTreeView>

#include "tests/support/source_path.h"
#include "tests/views/panels.h"
#include "tests/views/run_ahead.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/docks/compare_dock.h"
#include "views/docks/findings_dock.h"
#include "views/docks/values_dock.h"
#include "views/text/format.h"

namespace retrograd::views {

class FindingsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void masksAreNotFaults();
  void walkToTheRootShowsElementAndLine();
  void findingsAreInOnePlaceWithOneActionEach();
  void itSaysHowMuchOfTheRunWasLookedAt();
  void aLineThatPassesOnANanDidNotMakeIt();
  void equalRunsSayHowManyValuesAreNotFinite();
  void formulasShowEveryTerm();
  void findingsGoWithTheirDocument();
  void C12_cutsOfARecordedStepAreFindings();
  void C13_theFirstBadUpdateOfARecordedStepIsAFinding();
  void C13_gradientFlowShowsUpdates();
  void findingsOpenWhenARunMadeNaN();
  void aStopAtNaNNamesItsOpAndOpensFindings();
  void originsShowInAWideWindow();
  void valuesShowWhileARunGoesOn();
};

namespace {

QString fileOf(const char* path) { return QString::fromStdString(sourcePath(path)); }
QString planted() { return fileOf("tests/data/planted/log_of_zero.txt"); }
QString gpt() { return fileOf("resources/samples/tiny_gpt.pt2"); }
QAction* actionOf(WindowFixture& f, const char* name) {
  return f.window().findChild<QAction*>(QStringLiteral("action-") + QLatin1String(name));
}

}  // namespace

// Scores that a model masks with -inf: no mark, no stop, no finding.
void FindingsTest::masksAreNotFaults() {
  QTemporaryDir folder;
  const auto path = folder.filePath(QStringLiteral("masked.txt"));
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(R"(def computation(x):
    # x: "f32[4, 4]"

    allowed = torch.ops.aten.full_like.default(x, float('-inf'))
    mask = torch.ops.aten.triu.default(allowed, 1)
    scores = torch.ops.aten.add.Tensor(x, mask)
    weights = torch.ops.aten._softmax.default(scores, -1, False)
    loss = torch.ops.aten.sum.default(weights)
    return (loss,)
)");
  file.close();
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(path));
  QVERIFY(allKnown(f));
  std::int64_t infinite = 0;
  for (auto op : f.analysis().joint.ops)
    for (auto value : f.analysis().document->outputs(op))
      if (const auto* s = value ? numbers(f).statistics(value) : nullptr) infinite += s->inf;
  QVERIFY(infinite >= 6);
  QVERIFY(!numbers(f).firstBad());
  QVERIFY(numbers(f).badOps().empty());
  QVERIFY(f.quiet());
  const auto* panel = f.window().findChild<FindingsDock*>();
  QVERIFY(!panel || !panel->isVisible());
  actionOf(f, "break-on-bad")->trigger();
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, f.execution().size);
}

// The hook that doubles a gradient is a note, marked in both listings; one action shows its line.
void FindingsTest::C12_cutsOfARecordedStepAreFindings() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(fileOf("tests/data/recordings/step")));
  QVERIFY(allKnown(f));
  f.raise("dock-findings");
  auto* list = f.window().findChild<QListView*>(QStringLiteral("findings-list"));
  const auto row = [&] {
    for (int i = 0; i < list->model()->rowCount(); ++i)
      if (list->model()->index(i, 1).data().toString().startsWith(QStringLiteral("hook"))) return i;
    return -1;
  };
  QTRY_VERIFY_WITH_TIMEOUT(row() >= 0, 20000);
  const auto text = [&](int column) { return list->model()->index(row(), column).data().toString(); };
  QVERIFY2(text(0).contains(QStringLiteral("suspicion")), qPrintable(text(0)));
  QVERIFY2(text(1).startsWith(QStringLiteral("hook `<lambda>`: 2 times the derivative")), qPrintable(text(1)));
  QStringList cells;
  for (int column = 0; column < list->model()->columnCount(); ++column) cells << text(column);
  QVERIFY2(cells.join(QLatin1Char(' ')).contains(QStringLiteral("behind it: last.weight")),
           qPrintable(cells.join(QLatin1Char('|'))));
  QVERIFY2(cells.join(QLatin1Char(' ')).contains(QStringLiteral("train.py:")),
           qPrintable(cells.join(QLatin1Char('|'))));
  list->setCurrentIndex(list->model()->index(row(), 0));
  QTest::keyClick(list, Qt::Key_Return);
  auto* source = f.window().findChild<QDockWidget*>(QStringLiteral("dock-source"));
  QTRY_VERIFY(!source->visibleRegion().isEmpty());
  const auto op = f.selection().op();
  QVERIFY(op);
  const auto forward = f.analysis().links.forwardOf(*f.analysis().document, op);
  int marked = 0;
  for (auto kind : {TraceKind::forward, TraceKind::backward})
    for (int i = 0; i < f.listing(kind).rowCount(); ++i)
      if (const auto at = f.listing(kind).opAt(i); at == op || at == forward)
        marked += f.listing(kind).spokenAt(i).contains(QStringLiteral("2 times the derivative"));
  QVERIFY2(marked >= (forward ? 2 : 1), qPrintable(QString::number(marked)));
}

void FindingsTest::C13_theFirstBadUpdateOfARecordedStepIsAFinding() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(fileOf("resources/samples/recorded")));
  QVERIFY(allKnown(f));
  f.raise("dock-findings");
  auto* list = f.window().findChild<QListView*>(QStringLiteral("findings-list"));
  const auto found = [&] {
    for (int i = 0; i < list->model()->rowCount(); ++i)
      if (list->model()->index(i, 1).data().toString().startsWith(
              QStringLiteral("the update of first.weight in step 0 is not finite: ")))
        return list->model()->index(i, 0).data().toString();
    return QString();
  };
  QTRY_VERIFY_WITH_TIMEOUT(found().contains(QStringLiteral("fault")), 20000);
}

void FindingsTest::C13_gradientFlowShowsUpdates() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(fileOf("tests/data/recordings/step")));
  QVERIFY(allKnown(f));
  f.raise("dock-gradient-flow");
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("gradient-flow"));
  const auto shown = [&] {
    const auto module = table->model()->index(0, 0);
    QStringList cells;
    for (int column = 0; column < table->model()->columnCount(); ++column)
      cells << (table->isColumnHidden(column) ? QStringLiteral("hidden")
                                              : table->model()->index(0, column, module).data().toString());
    return cells.join(QLatin1Char('|'));
  };
  QTRY_VERIFY2_WITH_TIMEOUT(shown().contains(QStringLiteral("|0.86953|")), qPrintable(shown()), 20000);
  QVERIFY(f.open(gpt()));
  f.raise("dock-gradient-flow");  // a model has a layout of its own
  QTRY_VERIFY2_WITH_TIMEOUT(shown().endsWith(QStringLiteral("hidden|hidden|hidden")), qPrintable(shown()), 20000);
}

// From an open model to the line of Python and the element in one action.
void FindingsTest::walkToTheRootShowsElementAndLine() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1600, 1000);
  QVERIFY(f.open(fileOf("resources/samples/twins.pt2")));
  QVERIFY(allKnown(f));
  f.press(Qt::Key_W, Qt::ControlModifier | Qt::ShiftModifier);
  auto* way = f.window().findChild<QTreeView*>(QStringLiteral("findings"));
  QTRY_VERIFY_WITH_TIMEOUT(way->model()->rowCount() > 0, 20000);
  QTRY_COMPARE(shortOpName(*f.analysis().document, f.selection().op()), QStringLiteral("aten.div.Tensor"));
  QStringList rows;
  for (int row = 0; row < way->model()->rowCount(way->model()->index(0, 0)); ++row)
    rows << way->model()->index(row, 1, way->model()->index(0, 0)).data().toString();
  QVERIFY2(!rows.filter(QStringLiteral("0 / 0 = nan at [")).isEmpty(), qPrintable(rows.join(QLatin1Char('\n'))));
  QVERIFY2(!rows.filter(QStringLiteral("twins.py:")).isEmpty(), qPrintable(rows.join(QLatin1Char('\n'))));
  // In one sentence over the way, all of it in sight.
  const auto* root = f.window().findChild<QLabel*>(QStringLiteral("findings-root"));
  QVERIFY2(
      root->text().contains(QStringLiteral("0 / 0 = nan at [")) && root->text().contains(QStringLiteral("twins.py:")),
      qPrintable(root->text()));
  QTRY_VERIFY(root->isVisible() && root->height() >= root->heightForWidth(root->width()));
  auto* source = f.window().findChild<QDockWidget*>(QStringLiteral("dock-source"));
  QTRY_VERIFY(!source->visibleRegion().isEmpty());

  // What passed the NaN on is lit, in the backward and at the ops of the forward that it comes from.
  const auto isLit = [&](const Trace& trace, const QString& name) {
    return std::any_of(trace.ops.begin(), trace.ops.end(), [&](BoundSymbolId op) {
      return f.selection().relation(op) == Relation::way && shortOpName(*f.analysis().document, op).contains(name);
    });
  };
  QVERIFY(isLit(f.analysis().backward, QStringLiteral("mm")));
  QVERIFY(isLit(f.analysis().computation().trace, QStringLiteral("linear")));
  QVERIFY(!isLit(f.analysis().computation().trace, QStringLiteral("where")));
}

void FindingsTest::itSaysHowMuchOfTheRunWasLookedAt() {
  WindowFixture f(liveEngine());
  f.controller().ahead().setRunsOnOpen(false);
  QVERIFY(f.open(fileOf("resources/samples/mlp.pt2")));
  f.raise("dock-findings");
  const auto said = [&] { return f.window().panel<FindingsDock>().summary(); };
  const auto* empty = f.window().findChild<QLabel*>(QStringLiteral("findings-empty"));
  QTRY_COMPARE(said(), QStringLiteral("The run was not looked at yet"));
  QVERIFY(empty->text().startsWith(QStringLiteral("Nothing was found so far")));
  f.press(Qt::Key_F10);
  QVERIFY(f.settle());
  QTRY_VERIFY2(said().startsWith(QStringLiteral("No NaN or Inf was seen in the ops that ran: ")), qPrintable(said()));
  f.controller().ahead().runAll();
  QTRY_COMPARE(said(), QStringLiteral("No NaN or Inf was seen in the whole run"));
  QVERIFY(empty->text().startsWith(QStringLiteral("Nothing was found in the whole run")));
}

void FindingsTest::aLineThatPassesOnANanDidNotMakeIt() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(fileOf("resources/samples/twins.pt2")));
  QVERIFY(allKnown(f));
  const auto& bad = f.controller().ahead().numbers().badOps();
  const auto& ops = f.analysis().backward.ops;
  auto& listing = f.listing(TraceKind::backward);
  const auto tip = [&](BoundSymbolId op) {
    const auto row = listing.rowOf(op);
    f.click(TraceKind::backward, op);
    const QPoint at(2, listing.rowRect(row).center().y());
    QHelpEvent event(QEvent::ToolTip, at, listing.viewport()->mapToGlobal(at));
    QCoreApplication::sendEvent(listing.viewport(), &event);
    return QToolTip::text();
  };
  int made = 0, passed = 0;
  for (auto op : ops) {
    if (!bad.contains(op)) continue;
    const auto text = tip(op);
    const bool isMade = text.contains(QStringLiteral("Made NaN or Inf"));
    QVERIFY2(isMade != text.contains(QStringLiteral("Has NaN or Inf")), qPrintable(text));
    QCOMPARE(listing.spokenAt(listing.rowOf(op)).contains(QStringLiteral("made NaN or Inf")), isMade);
    ++(isMade ? made : passed);
  }
  QVERIFY2(made == 1 && passed > 1, qPrintable(QStringLiteral("%1 made, %2 passed on").arg(made).arg(passed)));
}

void FindingsTest::equalRunsSayHowManyValuesAreNotFinite() {
  WindowFixture f(liveEngine());
  for (const bool isBad : {true, false}) {
    QVERIFY(f.open(fileOf(isBad ? "resources/samples/twins.pt2" : "resources/samples/mlp.pt2")));
    f.raise("dock-compare");
    auto& panel = f.window().panel<CompareDock>();
    panel.findChild<QComboBox*>(QStringLiteral("compare-precision"))->setCurrentIndex(0);  // the same once more
    f.press(Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY2(panel.summary().contains(QStringLiteral("the runs agree")), qPrintable(panel.summary()));
    QCOMPARE(panel.summary().contains(QStringLiteral(" of them have NaN or Inf on both sides")), isBad);
  }
}

void FindingsTest::formulasShowEveryTerm() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(fileOf("resources/samples/tiny_gpt.pt2")));
  BoundSymbolId norm;
  for (auto op : f.analysis().backward.ops)
    if (shortOpName(*f.analysis().document, op).contains(QStringLiteral("native_layer_norm_backward"))) norm = op;
  QVERIFY(norm);
  f.raise("dock-why");
  f.selection().select(norm);
  QVERIFY(f.quiet());
  auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("inspector"));
  const auto& model = *tree->model();
  const auto formula = rowWith(model, QStringLiteral("Formula"));
  QVERIFY(formula.isValid());
  const int line = tree->fontMetrics().height();
  int wrapped = 0;
  for (int row = 0; row < model.rowCount(formula); ++row) {
    const auto cell = model.index(row, 1, formula);
    tree->scrollTo(cell);
    const auto rect = tree->visualRect(cell);
    const auto text = tree->fontMetrics().boundingRect(QRect(0, 0, rect.width() - 8, 10000), Qt::TextWordWrap,
                                                       cell.data().toString());
    QVERIFY2(rect.height() >= text.height(), qPrintable(cell.data().toString()));
    wrapped += text.height() > line;
  }
  QVERIFY(wrapped > 0);
  const auto schema = rowWith(model, QStringLiteral("schema"));
  QVERIFY(schema.isValid());
  QVERIFY(tree->visualRect(schema).height() < 2 * line);
}

void FindingsTest::findingsAreInOnePlaceWithOneActionEach() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(fileOf("resources/samples/twins.pt2")));
  QVERIFY(allKnown(f));
  f.raise("dock-findings");
  auto& list = *f.window().findChild<QListView*>(QStringLiteral("findings-list"));
  const auto cell = [&](int row, int column) { return list.model()->index(row, column).data().toString(); };
  QTRY_VERIFY(list.model()->rowCount() > 0);
  // How the first NaN came about is known before anyone asks.
  QTRY_VERIFY2_WITH_TIMEOUT(cell(0, FindingsModel::what).startsWith(QStringLiteral("NaN is first made by #")),
                            qPrintable(cell(0, FindingsModel::what)), 20000);
  QVERIFY(cell(0, FindingsModel::severity).contains(QStringLiteral("fault")));
  QVERIFY(cell(0, FindingsModel::line).startsWith(QStringLiteral("twins.py:")));
  QVERIFY(cell(0, FindingsModel::what).contains(QStringLiteral("NaN of ")));
  QCOMPARE(cell(0, FindingsModel::action), QStringLiteral("Walk to the Root"));

  // What others bring comes in by severity, and goes when they take it back.
  auto& board = FindingBoard::of(f.controller());
  const Claim note{.severity = Severity::note, .sentence = "a note"};
  const Claim warning{.severity = Severity::suspicion, .sentence = "a rank waits", .op = f.analysis().forward.ops[3]};
  board.set(QStringLiteral("a"), {note});
  board.set(QStringLiteral("ranks"), {warning});
  QCOMPARE(list.model()->rowCount(), 3);
  QCOMPARE(cell(1, FindingsModel::what), QStringLiteral("a rank waits"));
  QCOMPARE(cell(2, FindingsModel::what), QStringLiteral("a note"));
  QCOMPARE(f.window().findChild<QDockWidget*>(QStringLiteral("dock-findings"))->windowTitle(),
           QStringLiteral("Findings (3)"));

  // By keyboard, and by a click on the action.
  list.setFocus();
  list.setCurrentIndex(list.model()->index(1, 0));
  f.press(Qt::Key_Return);
  QCOMPARE(f.selection().op(), warning.op);
  board.set(QStringLiteral("a"), {});
  board.set(QStringLiteral("ranks"), {});
  QCOMPARE(list.model()->rowCount(), 1);
  // W48: a click on the card leads to its op, one on its action does that.
  const auto card = list.visualRect(list.model()->index(0, 0));
  QVERIFY(list.viewport()->rect().contains(card));  // all of a finding is in sight
  f.selection().select(f.analysis().forward.ops[0]);
  QTest::mouseClick(list.viewport(), Qt::LeftButton, Qt::NoModifier, card.topLeft() + QPoint(60, 12));
  QCOMPARE(f.selection().op().index, list.model()->index(0, 0).data(opRole).toInt());
  QCOMPARE(cell(0, FindingsModel::action), QStringLiteral("Walk to the Root"));
  QTest::mouseClick(list.viewport(), Qt::LeftButton, Qt::NoModifier, card.bottomRight() - QPoint(30, 14));
  QTRY_COMPARE_WITH_TIMEOUT(cell(0, FindingsModel::action), QStringLiteral("Show the Line"), 20000);
}

void FindingsTest::findingsGoWithTheirDocument() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QVERIFY(f.quiet());
  auto& board = FindingBoard::of(f.controller());
  board.set(QStringLiteral("test"), {{.sentence = "of the first"}});
  QVERIFY(board.has(QStringLiteral("test")));
  QVERIFY(f.open(QStringLiteral("synthetic4")));
  QVERIFY(!board.has(QStringLiteral("test")));
}

void FindingsTest::findingsOpenWhenARunMadeNaN() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(planted()));
  QVERIFY(allKnown(f));
  auto* panel = f.window().findChild<FindingsDock*>();
  QTRY_VERIFY(panel->isVisible());
  QVERIFY2(panel->summary().contains(QStringLiteral("aten.log")), qPrintable(panel->summary()));
  QVERIFY(panel->summary().contains(QStringLiteral("#%1").arg(numbers(f).firstBad().index)));
}

void FindingsTest::aStopAtNaNNamesItsOpAndOpensFindings() {
  WindowFixture f(liveEngine());
  actionOf(f, "run-on-open")->setChecked(false);
  QVERIFY(f.open(planted()));
  actionOf(f, "break-on-bad")->trigger();
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QTRY_VERIFY2(f.window().statusBar()->currentMessage().contains(QStringLiteral("aten.log made NaN or Inf")),
               qPrintable(f.window().statusBar()->currentMessage()));
  QVERIFY(f.window().findChild<FindingsDock*>()->isVisible());
}

// In a wide window origins have their column next to all numbers, and the name of an op with several results is
// not what is cut.
void FindingsTest::originsShowInAWideWindow() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(gpt()));
  f.window().resize(2500, 1080);
  auto& view = f.listing(TraceKind::backward);
  QTRY_VERIFY(view.viewport()->width() > 500);
  QTest::qWait(50);
  view.grab();
  const auto columns = view.columns();
  QVERIFY(columns.left[TextColumn::origin] < columns.right[TextColumn::origin]);
  f.window().resize(1280, 800);
  QTest::qWait(50);
  int several = 0;
  for (int row = 0; row < view.rowCount(); ++row) {
    if (view.isHeader(row) || !view.textAt(row).startsWith(QLatin1Char('('))) continue;
    const auto shown = view.shownCode(row);
    if (shown.breaks.empty() && !shown.text.contains(QChar(0x2026))) continue;
    ++several;
    QVERIFY2(shown.text.contains(QStringLiteral(") = aten")) && shown.text.contains(QStringLiteral(", +")),
             qPrintable(shown.text));
  }
  QVERIFY(several > 0);
}

void FindingsTest::valuesShowWhileARunGoesOn() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(gpt()));
  QVERIFY(allKnown(f));
  f.raise("dock-values");
  QVERIFY(f.quiet());
  auto& state = *f.window().context().execution;
  auto execution = state.now();
  execution.running = true;
  state.set(execution);  // the worker would answer nothing before the run's end
  const auto op = f.analysis().joint.ops.back();
  f.selection().select(op);
  const auto* rows = f.window().findChild<QTreeView*>(QStringLiteral("values"))->model();
  const auto output = [&](int column) { return rows->index(rows->rowCount() - 1, column).data().toString(); };
  QTRY_VERIFY(!output(ValuesModel::greatest).isEmpty());
  QCOMPARE(rows->index(rows->rowCount() - 1, ValuesModel::greatest).data(Qt::ToolTipRole).toString(),
           numberText(numbers(f).statistics(f.analysis().document->outputs(op)[0])->max));
  QCOMPARE(output(ValuesModel::state), QStringLiteral("a run goes on"));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::FindingsTest)
#include "findings_test.moc"
