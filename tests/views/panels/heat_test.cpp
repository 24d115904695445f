#include <QDockWidget>
#include <QHeaderView>
#include <QStatusBar>
#include <QTest>
#include <QTreeView>
#include <QWheelEvent>
#include <cmath>
#include <map>
#include <set>

#include "core/derivation/gradient_of.h"
#include "core/formats/recording/recording.h"
#include "core/questions/memory_timeline.h"
#include "core/torch/steps/judge_step.h"
#include "tests/views/run_ahead.h"
#include "tests/views/test_program.h"
#include "views/docks/modules_dock.h"
#include "views/models/modules_model.h"
#include "views/models/tree_model.h"
#include "views/session/marks.h"
#include "views/text/format.h"
#include "views/widgets/run_strip.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {

/// Where time, memory and bad numbers are: Modules as a table of heat, the graph's colours, the strip over the
/// listings.
class HeatTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void modulesHaveTheNumbersOfAllBelow();
  void memoryOfModulesAddsUpToThePeak();
  void modulesOfAStepHaveTheirUpdates();
  void allColumnsOfModulesAreInSightInAWidePanel_data();
  void allColumnsOfModulesAreInSightInAWidePanel();
  void modulesAreSortedByTime();
  void modulesCountNaN();
  void theGraphShowsGradients();
  void theGraphOffersTheRunThatItNeeds();
  void theStripShowsWhereTheRunIs();
  void theStripLeadsFromMarkToMark();
  void W43_aRecordedStepHasALaneForEachPart();
  void W43_theWheelZoomsAndADragSaysWhatARangeTakes();
};

namespace {

const char* const tinyGpt = "resources/samples/tiny_gpt.pt2";

QTreeView& modulesOf(WindowFixture& f) { return *f.window().findChild<QTreeView*>(QStringLiteral("modules")); }

QModelIndex moduleNamed(WindowFixture& f, const QString& path) {
  auto& tree = modulesOf(f);
  tree.expandAll();
  for (auto row = tree.model()->index(0, 0); row.isValid(); row = tree.indexBelow(row))
    if (row.data(moduleRole).toString() == path) return row;
  return {};
}

bool isBelow(const QString& module, const QString& path) {
  return module == path || module.startsWith(path + QLatin1Char('.'));
}

}  // namespace

void HeatTest::modulesHaveTheNumbersOfAllBelow() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile(tinyGpt)));
  QVERIFY(allKnown(f));
  QVERIFY(f.quiet());
  const auto& analysis = f.analysis();
  const auto& document = *analysis.document;
  const auto path = QStringLiteral("blocks.1");
  const auto row = moduleNamed(f, path);
  QVERIFY(row.isValid());
  double seconds = 0, squares = 0;
  std::int64_t saved = 0;
  for (auto op : analysis.joint.ops) {
    if (!isBelow(toQt(document.text(document.boundSymbol(op).module)), path)) continue;
    seconds += numbers(f).number(OpFigure::time, op).value_or(0);
    for (auto output : document.outputs(op)) saved += output ? f.controller().document()->saved.costOf(output) : 0;
  }
  const auto gradients = gradientsOfInputs(analysis);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (isBelow(toQt(analysis.computation().inputs[i].target), path))
      squares += std::pow(numbers(f).statistics(gradients[i])->norm, 2);
  QVERIFY(seconds > 0 && saved > 0 && squares > 0);
  const auto cell = [&](ModulesModel::Column column) { return row.siblingAtColumn(column); };
  QCOMPARE(cell(ModulesModel::time).data().toString(), secondsText(seconds));
  QCOMPARE(cell(ModulesModel::saved).data().toString(), bytesText(saved));
  QCOMPARE(cell(ModulesModel::gradient).data().toString(), briefNumber(std::sqrt(squares)));
  // The bar is as long as the number is of what the module around has.
  const auto around = moduleNamed(f, QStringLiteral("blocks")).siblingAtColumn(ModulesModel::saved);
  QCOMPARE(around.data(shareRole).toDouble(), 1.0);
  QVERIFY(cell(ModulesModel::saved).data(shareRole).toDouble() < 0.6);
}

void HeatTest::memoryOfModulesAddsUpToThePeak() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile(tinyGpt)));
  QVERIFY(f.quiet());
  const auto& analysis = f.analysis();
  const auto& document = *analysis.document;
  const auto timeline = memoryTimeline(analysis);
  const auto heldBelow = [&](const QString& path) {
    std::int64_t bytes = 0;
    for (const auto& life : timeline.lives) {
      const auto op = analysis.joint.ops[life.from];
      const bool isHeld = life.from <= timeline.peakPosition && timeline.peakPosition < life.to;
      if (isHeld && isBelow(toQt(document.text(document.boundSymbol(op).module)), path)) bytes += life.bytes;
    }
    return bytes;
  };
  for (const auto* path : {"blocks", "blocks.1", "head"}) {
    const auto bytes = heldBelow(QLatin1String(path));
    QVERIFY2(bytes > 0, path);
    QCOMPARE(moduleNamed(f, QLatin1String(path)).siblingAtColumn(ModulesModel::memory).data().toString(),
             bytesText(bytes));
  }
}

/// The panel of Modules, as a person does who wants all of its columns.
void widen(WindowFixture& f) {
  auto* dock = qobject_cast<QDockWidget*>(f.window().panel<ModulesDock>().parentWidget());
  f.window().resizeDocks({dock}, {440}, Qt::Horizontal);
  QTest::qWait(50);
}

void HeatTest::modulesOfAStepHaveTheirUpdates() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("tests/data/recordings/step")));
  QVERIFY(allKnown(f));
  QVERIFY(f.quiet());
  auto& tree = modulesOf(f);
  widen(f);
  QTRY_VERIFY(!tree.isColumnHidden(ModulesModel::update));
  int compared = 0;
  for (const auto& [parameter, numbers] : lastUpdates(f.controller().document()->analysis)) {
    const auto path = toQt(parameter);
    const auto row = moduleNamed(f, path.left(path.lastIndexOf(QLatin1Char('.'))));
    QVERIFY2(row.isValid(), parameter.c_str());
    double added = 0, weight = 0;
    for (const auto& [other, of] : lastUpdates(f.controller().document()->analysis)) {
      if (!isBelow(toQt(other), row.data(moduleRole).toString())) continue;
      added += std::pow(of.norm.value(), 2);
      weight += std::pow(of.norm.value() / of.ratio.value(), 2);
    }
    QTRY_COMPARE(row.siblingAtColumn(ModulesModel::update).data().toString(), briefNumber(std::sqrt(added / weight)));
    ++compared;
  }
  QVERIFY(compared > 0);
  QVERIFY(f.open(modelFile(tinyGpt)));  // has no optimizer
  QTRY_VERIFY(tree.isColumnHidden(ModulesModel::update));
}

void HeatTest::allColumnsOfModulesAreInSightInAWidePanel_data() {
  QTest::addColumn<QString>("path");
  for (const char* path : {tinyGpt, "resources/samples/twins.pt2", "tests/data/recordings/step"})
    QTest::newRow(path) << modelFile(path);
}

void HeatTest::allColumnsOfModulesAreInSightInAWidePanel() {
  QFETCH(QString, path);
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1600, 1000);
  QVERIFY(f.open(path));
  QVERIFY(allKnown(f));
  QVERIFY(f.quiet() && standsStill(f.window()));
  auto& tree = modulesOf(f);
  QVERIFY(!tree.isColumnHidden(ModulesModel::time) && !tree.isColumnHidden(ModulesModel::memory));
  widen(f);
  for (int column = ModulesModel::time; column < ModulesModel::columns; ++column) {
    if (column == ModulesModel::update && !f.analysis().file.recording) continue;
    QVERIFY2(!tree.isColumnHidden(column), qPrintable(QString::number(column)));
    for (auto row = tree.model()->index(0, 0); row.isValid(); row = tree.indexBelow(row)) {
      const auto cell = row.siblingAtColumn(column);
      const auto place = tree.visualRect(cell);
      QVERIFY2(place.right() <= tree.viewport()->width() && place.width() >= tree.sizeHintForIndex(cell).width(),
               qPrintable(cell.data().toString()));
    }
  }
}

void HeatTest::modulesAreSortedByTime() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile(tinyGpt)));
  QVERIFY(allKnown(f));
  QVERIFY(f.quiet());
  auto& tree = modulesOf(f);
  tree.sortByColumn(ModulesModel::time, Qt::DescendingOrder);
  const auto first = tree.model()->index(0, ModulesModel::time);
  QCOMPARE(first.siblingAtColumn(0).data().toString(), QStringLiteral("blocks"));
  for (int row = 1; row < tree.model()->rowCount(); ++row)
    QVERIFY(first.siblingAtRow(row).data(sortRole).toDouble() <= first.siblingAtRow(row - 1).data(sortRole).toDouble());
  // So they are after the next start.
  const auto kept = f.window().panel<ModulesDock>().saveState();
  dynamic_cast<SortedRows&>(*tree.model()).reset();
  QCOMPARE(tree.header()->sortIndicatorSection(), -1);
  f.window().panel<ModulesDock>().restoreState(kept);
  QCOMPARE(tree.model()->index(0, 0).data().toString(), QStringLiteral("blocks"));
  QCOMPARE(tree.header()->sortIndicatorSection(), static_cast<int>(ModulesModel::time));
}

void HeatTest::modulesCountNaN() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(modelFile("resources/samples/twins.pt2")));
  QVERIFY(allKnown(f));
  QVERIFY(f.quiet());
  const auto bad = numbers(f).firstBad();
  const auto& document = *f.analysis().document;
  const auto path = toQt(document.text(document.boundSymbol(bad).module));
  QVERIFY(!path.isEmpty());
  const auto row = moduleNamed(f, path);
  QVERIFY(row.siblingAtColumn(ModulesModel::bad).data().toString().startsWith(QStringLiteral("! ")));
}

void HeatTest::theGraphShowsGradients() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(modelFile(tinyGpt)));
  QVERIFY(allKnown(f));
  f.window().listings().graphAction()->setChecked(true);
  auto& graph = f.window().listings().graph();
  QTRY_VERIFY(graph.picture());
  graph.setAllOpen(true);
  QVERIFY(f.quiet() && standsStill(graph));
  graph.setOverlay(Overlay::gradient);
  BoundSymbolId op;
  for (auto each : f.analysis().forward.ops)
    if (numbers(f).number(OpFigure::gradientNorm, each).value_or(0) > 0) op = each;
  QVERIFY(op);
  const auto norm = QString::number(*numbers(f).number(OpFigure::gradientNorm, op), 'g', 3);
  QVERIFY2(graph.textOf(graph.boxOf(op)).contains(QStringLiteral("gradient ") + norm),
           qPrintable(graph.textOf(graph.boxOf(op))));
  QCOMPARE(graph.overlayShown()->legend().size(), static_cast<std::size_t>(OverlayColors::steps));
  graph.setOverlay(Overlay::time);  // of the run ahead, without a step
  QCOMPARE(f.execution().position, std::size_t(0));
  QVERIFY(!graph.textOf(graph.boxOf(op)).contains(QStringLiteral("not run")));
}

void HeatTest::theGraphOffersTheRunThatItNeeds() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.controller().ahead().setRunsOnOpen(false);
  QVERIFY(f.open(modelFile(tinyGpt)));
  f.window().listings().graphAction()->setChecked(true);
  auto& graph = f.window().listings().graph();
  auto& button = *f.window().listings().graphPane().findChild<QToolButton*>(QStringLiteral("graph-run"));
  QTRY_VERIFY(graph.picture());
  QVERIFY(!button.isVisible());
  graph.setOverlay(Overlay::time);
  QVERIFY(button.isVisible());
  QTest::mouseClick(&button, Qt::LeftButton);
  QVERIFY(allKnown(f));
  QTRY_VERIFY(!button.isVisible());
  QTRY_COMPARE(graph.overlayShown()->legend().size(), static_cast<std::size_t>(OverlayColors::steps));
}

void HeatTest::theStripShowsWhereTheRunIs() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  auto& strip = f.window().listings().strip();
  QVERIFY(!strip.isVisible());
  QVERIFY(f.open(modelFile(tinyGpt)));
  QVERIFY(f.quiet());
  QVERIFY(strip.isVisible());
  const auto has = [&](RunStrip::Kind kind, std::size_t position) {
    const auto& marks = strip.marks();
    return std::any_of(marks.begin(), marks.end(),
                       [&](const auto& mark) { return mark.kind == kind && mark.position == position; });
  };
  const auto& program = f.controller().document()->program;
  QTRY_VERIFY(has(RunStrip::Kind::peak, memoryTimeline(f.analysis()).peakPosition));
  QVERIFY(has(RunStrip::Kind::execution, 0));
  const auto op = program.opAt(40);
  f.controller().marks().toggleBreakpoint(op);
  QTRY_VERIFY(has(RunStrip::Kind::breakpoint, 40));
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QTRY_VERIFY(has(RunStrip::Kind::execution, 40));
  // A click near a mark leads to its op, elsewhere to the op of the place.
  QTest::mouseClick(&strip, Qt::LeftButton, Qt::NoModifier, QPoint(strip.xOf(100), strip.height() / 2));
  const auto away = static_cast<std::int64_t>(*program.positionOf(f.selection().op())) - 100;
  QVERIFY2(std::abs(away) <= 1, qPrintable(QString::number(away)));
  QTest::mouseClick(&strip, Qt::LeftButton, Qt::NoModifier, QPoint(strip.xOf(40) + 2, strip.height() / 2));
  QCOMPARE(f.selection().op(), op);
}

void HeatTest::theStripLeadsFromMarkToMark() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(modelFile("resources/samples/twins.pt2")));
  QVERIFY(allKnown(f));
  QVERIFY(f.quiet());
  auto& strip = f.window().listings().strip();
  const auto& program = f.controller().document()->program;
  const auto bad = std::count_if(strip.marks().begin(), strip.marks().end(),
                                 [](const auto& mark) { return mark.kind == RunStrip::Kind::bad; });
  QCOMPARE(static_cast<std::size_t>(bad), numbers(f).badOps().size());
  f.selection().select(program.opAt(0));
  strip.setFocus();
  QVERIFY(strip.hasFocus());
  std::optional<std::size_t> next;
  for (const auto& mark : strip.marks())
    if (mark.position > 0 && !next) next = mark.position;
  QVERIFY(next);
  QTest::keyClick(&strip, Qt::Key_Right);
  QCOMPARE(f.selection().op(), program.opAt(*next));
  QVERIFY(strip.hasFocus());
  QTest::keyClick(&strip, Qt::Key_Right);
  QVERIFY(*program.positionOf(f.selection().op()) > *next);
  QTest::keyClick(&strip, Qt::Key_Left);
  QCOMPARE(f.selection().op(), program.opAt(*next));
}

void HeatTest::W43_aRecordedStepHasALaneForEachPart() {
  using Lane = RunStrip::Lane;
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(modelFile("tests/data/recordings/step")));
  auto& strip = f.window().listings().strip();
  QTRY_VERIFY(strip.isVisible());
  for (auto lane : {Lane::forward, Lane::backward, Lane::clip, Lane::optimizer})
    QVERIFY(std::ranges::find(strip.lanes(), lane) != strip.lanes().end());
  QVERIFY2(strip.height() >= 60 && strip.height() <= 90, qPrintable(QString::number(strip.height())));
  const auto& recording = *f.analysis().file.recording;
  const auto& program = f.controller().document()->program;
  std::map<Phase, std::set<Lane>> lanes;
  for (std::size_t i = 0; i < program.size(); ++i) lanes[recording.op(program.opAt(i)).phase].insert(strip.laneOf(i));
  QCOMPARE(lanes.at(Phase::forward), std::set{Lane::forward});
  QCOMPARE(lanes.at(Phase::backward), std::set{Lane::backward});
  QCOMPARE(lanes.at(Phase::clip), std::set{Lane::clip});
  QCOMPARE(lanes.at(Phase::optimizer), std::set{Lane::optimizer});
  // A click in the lane of the optimizer leads to one of its ops.
  std::size_t step = 0;
  while (strip.laneOf(step) != Lane::optimizer) ++step;
  QTest::mouseClick(&strip, Qt::LeftButton, Qt::NoModifier, QPoint(strip.xOf(step) + 6, strip.height() - 12));
  QCOMPARE(recording.op(f.selection().op()).phase, Phase::optimizer);
  f.picture(QStringLiteral("W43-timeline"));
}

void HeatTest::W43_theWheelZoomsAndADragSaysWhatARangeTakes() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(modelFile(tinyGpt)));
  QVERIFY(allKnown(f));
  QVERIFY(f.quiet());
  auto& strip = f.window().listings().strip();
  const auto all = strip.shown();
  const QPointF at(strip.xOf(60), 20);
  QWheelEvent wheel(at, strip.mapToGlobal(at), {}, {0, 240}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(&strip, &wheel);
  QVERIFY(strip.shown().second - strip.shown().first < all.second - all.first);
  QVERIFY(std::abs(strip.xOf(60) - at.x()) <= 1);  // what is under the pointer stays there
  strip.setFocus();
  QTest::keyClick(&strip, Qt::Key_0);
  QCOMPARE(strip.shown(), all);

  const auto before = f.selection().op();
  QTest::mousePress(&strip, Qt::LeftButton, Qt::NoModifier, QPoint(strip.xOf(10), 20));
  QTest::mouseMove(&strip, QPoint(strip.xOf(60), 20));
  QMouseEvent move(QEvent::MouseMove, QPointF(strip.xOf(60), 20), strip.mapToGlobal(QPointF(strip.xOf(60), 20)),
                   Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(&strip, &move);
  QTest::mouseRelease(&strip, Qt::LeftButton, Qt::NoModifier, QPoint(strip.xOf(60), 20));
  QVERIFY(strip.range());
  QTRY_VERIFY(!strip.rangeText().isEmpty());
  const auto [begin, end] = *strip.range();
  double seconds = 0;
  for (auto i = begin; i < end; ++i)
    seconds += numbers(f).number(OpFigure::time, f.controller().document()->program.opAt(i)).value_or(0);
  QVERIFY2(strip.rangeText().contains(numberText(OpFigure::time, seconds)), qPrintable(strip.rangeText()));
  QVERIFY2(strip.rangeText().contains(QStringLiteral("%1 ops").arg(end - begin)), qPrintable(strip.rangeText()));
  QCOMPARE(f.window().statusBar()->currentMessage(), strip.rangeText());
  QCOMPARE(f.selection().op(), before);  // a drag leads nowhere
  QTest::keyClick(&strip, Qt::Key_Escape);
  QVERIFY(!strip.range());
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::HeatTest)
#include "heat_test.moc"
