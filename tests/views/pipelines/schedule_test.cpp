#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QFile>
#include <QFileDialog>
#include <QLabel>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>
#include <QWheelEvent>
#include <nlohmann/json.hpp>

#include "core/schedule/schedule_kinds.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/docks/schedule_dock.h"
#include "views/stages/stage_plan.h"

namespace retrograd::views {

/// Pipeline schedules in the window: the layout of cells, the table of ranks, the dock with mouse and keys.
class ScheduleTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void cellsLieWhereTheyRun();
  void cellsHaveNeighbours();
  void ranksHoldWhatModelsPromise();
  void everyKindRuns();
  void whatDoesNotRunNamesWhatIsNotMet();
  void timesAreTheStagesWhereTheyFit();
  void aLinkIsHeededWithMeasuredTimes();
  void ranksFollowTheCut();
  void theDockShowsARun();
  void arrowsGoFromCellToCell();
  void itZooms();
  void cellsLeadToTheirStage();
  void filesAreReadAndWritten();
  void nothingIsComputedOutOfSight();
};

namespace {

ScheduleRequest sized(const char* kind, int ranks, int microbatches) {
  ScheduleRequest request;
  request.kind = QLatin1String(kind);
  request.ranks = ranks;
  request.microbatches = microbatches;
  return request;
}

ScheduleLayout layoutOf(const ScheduleRequest& request) { return ScheduleLayout(runSchedule(request, nullptr)); }

ScheduleDock& dock(WindowFixture& f) { return f.window().panel<ScheduleDock>(); }
ScheduleView& view(WindowFixture& f) { return *f.window().findChild<ScheduleView*>(); }
StagePlan& plan(WindowFixture& f) { return *f.window().context().stages; }
bool settled(WindowFixture& f) {
  return QTest::qWaitFor([&] { return !plan(f).busy() && !dock(f).isSimulating() && dock(f).run(); }, 10000);
}

void show(WindowFixture& f) { f.raise("dock-schedule"); }

std::unique_ptr<WindowFixture> opened(int stages = 0) {
  auto f = std::make_unique<WindowFixture>();
  if (!f->open(QStringLiteral("synthetic:4"))) return nullptr;
  if (stages > 0) {
    CutRequest request;
    request.stages = static_cast<std::size_t>(stages);
    request.balance = Balance::parameters;
    plan(*f).change(request, QStringLiteral("test"));
  }
  show(*f);
  return settled(*f) ? std::move(f) : nullptr;
}

QString written(const QTemporaryDir& folder, const char* text) {
  const auto path = folder.filePath(QStringLiteral("mine.csv"));
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly)) return {};
  file.write(text);
  return path;
}

}  // namespace

void ScheduleTest::cellsLieWhereTheyRun() {
  const auto layout = layoutOf(sized("GPipe", 2, 2));
  // By hand, with F = 1 and B = 2: rank 0 waits from 2 to 5 for the first backward, rank 1 until 1 and from 7 on.
  QCOMPARE(layout.ranks(), 2);
  QCOMPARE(layout.cells().size(), std::size_t(8));
  QCOMPARE(layout.makespan(), 9.0);
  QCOMPARE(ScheduleLayout::label(layout.cell(layout.cellAt(0, 0.5))), QStringLiteral("F0"));
  QCOMPARE(layout.cellAt(1, 0.5), -1);
  QCOMPARE(ScheduleLayout::label(layout.cell(layout.cellAt(1, 1.0))), QStringLiteral("F0"));
  QCOMPARE(ScheduleLayout::letter(layout.cell(layout.cellAt(1, 4.0)).kind), QChar('B'));
  QCOMPARE(layout.cellAt(0, 9.0), -1);
  QCOMPARE(layout.cellAt(2, 1.0), -1);
  QCOMPARE(layout.gaps(0).size(), std::size_t(1));
  QCOMPARE(layout.gaps(0).front().start, 2.0);
  QCOMPARE(layout.gaps(0).front().end, 5.0);
  QCOMPARE(layout.gaps(1).front().end, 1.0);
  QCOMPARE(layout.gaps(1).back().start, 7.0);
  QCOMPARE(layout.shortest(), 1.0);
  QCOMPARE(layout.describe(layout.cellAt(1, 2.5)),
           QStringLiteral("Rank 1, stage 1: forward of microbatch 1 (F), from 2 to 3"));
}

void ScheduleTest::cellsHaveNeighbours() {
  const auto layout = layoutOf(sized("1F1B", 3, 4));
  const int first = layout.begin(1);
  QCOMPARE(layout.beside(first, -1), first);
  QCOMPARE(layout.beside(first, 1), first + 1);
  QCOMPARE(layout.beside(first, 1000), layout.end(1) - 1);
  QCOMPARE(layout.across(layout.begin(0), -1), -1);
  QCOMPARE(layout.across(layout.begin(2), 1), -1);
  for (int cell = layout.begin(1); cell < layout.end(1); ++cell) {
    const int below = layout.across(cell, 1);
    QCOMPARE(layout.cell(below).rank, 2);
    const auto away = [&](int other) {
      const double middle = (layout.cell(cell).start + layout.cell(cell).end) / 2;
      return std::max({0.0, layout.cell(other).start - middle, middle - layout.cell(other).end});
    };
    for (int other = layout.begin(2); other < layout.end(2); ++other) QVERIFY(away(below) <= away(other));
  }
}

void ScheduleTest::ranksHoldWhatModelsPromise() {
  ScheduleRanksModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  auto request = sized("ZBVZeroBubble", 2, 4);
  model.show(runSchedule(request, nullptr));
  QCOMPARE(model.rowCount(), 2);
  QCOMPARE(model.index(0, ScheduleRanksModel::stages).data().toString(), QStringLiteral("0, 3"));
  QCOMPARE(model.index(1, ScheduleRanksModel::stages).data().toString(), QStringLiteral("1, 2"));
  QCOMPARE(model.index(0, ScheduleRanksModel::busy).data().toString(), QStringLiteral("24"));
  model.show(runSchedule(sized("1F1B", 3, 4), nullptr));
  QCOMPARE(model.index(0, ScheduleRanksModel::inFlight).data().toInt(), 3);
  QCOMPARE(model.index(2, ScheduleRanksModel::inFlight).data().toInt(), 1);
  // 3 (M + P - 1) in all, of which each rank works 3 M.
  QCOMPARE(model.index(1, ScheduleRanksModel::bubble).data().toString(), QStringLiteral("33.3 %"));
  for (int column = 0; column < model.columnCount(); ++column)
    QVERIFY(!model.headerData(column, Qt::Horizontal, Qt::ToolTipRole).toString().isEmpty());
  model.show(nullptr);
  QCOMPARE(model.rowCount(), 0);
}

void ScheduleTest::everyKindRuns() {
  QCOMPARE(scheduleKinds().size(), std::size_t(7));
  for (const auto& kind : scheduleKinds()) {
    ScheduleRequest request;
    request.kind = QString::fromUtf8(kind.name.data(), static_cast<int>(kind.name.size()));
    const auto run = runSchedule(request, nullptr);
    QVERIFY2(run->runs(), qPrintable(run->problem));
    const ScheduleLayout layout(run);
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      double time = 0;  // cells and gaps fill each row
      for (int i = layout.begin(rank); i < layout.end(rank); ++i) time += layout.cell(i).end - layout.cell(i).start;
      for (const auto& gap : layout.gaps(rank)) time += gap.end - gap.start;
      QCOMPARE(time, layout.makespan());
    }
  }
}

void ScheduleTest::whatDoesNotRunNamesWhatIsNotMet() {
  const auto few = runSchedule(sized("DualPipeV", 4, 7), nullptr);
  QVERIFY(!few->runs());
  QVERIFY2(few->problem.contains(QStringLiteral("at least 8")), qPrintable(few->problem));
  QTemporaryDir folder;
  ScheduleRequest request;
  request.file = written(folder, "0F0,0B0\n1B0\n");
  const auto stuck = runSchedule(request, nullptr);
  QVERIFY(!stuck->runs());
  QVERIFY2(stuck->problem.contains(QStringLiteral("1F0")), qPrintable(stuck->problem));
  request.file = written(folder, "0F0,nonsense\n");
  QVERIFY(runSchedule(request, nullptr)->problem.contains(QStringLiteral("nonsense")));
  request.file = folder.filePath(QStringLiteral("none.csv"));
  QVERIFY(runSchedule(request, nullptr)->problem.contains(QStringLiteral("none.csv")));
}

void ScheduleTest::timesAreTheStagesWhereTheyFit() {
  const auto f = opened(4);
  QVERIFY(f);
  const auto cut = plan(*f).cut();
  const auto run = runSchedule(sized("GPipe", 4, 1), cut);
  QCOMPARE(run->times, StageTimes::estimated);
  // One microbatch goes through all stages, one after the other: the whole model once.
  QVERIFY(std::abs(run->simulation.makespan - 100) < 1e-9);
  QCOMPARE(run->timeText(12.34), QStringLiteral("12.3 %"));
  QCOMPARE(run->simulation.ranks[1].peakBytes, cut->facts[1].savedBytes);
  const auto other = runSchedule(sized("GPipe", 3, 1), cut);
  QCOMPARE(other->times, StageTimes::equal);
  QCOMPARE(other->simulation.makespan, 9.0);
  QVERIFY2(other->timesText().contains(QStringLiteral("cut into 4 stages, this schedule has 3")),
           qPrintable(other->timesText()));
  auto measured = std::make_shared<StageCut>(*cut);
  auto costs = std::make_shared<OpCosts>(cut->ops().size());
  measured->measured = costs;
  for (auto& facts : measured->facts) facts.forward = 1e-3, facts.backward = 2e-3;
  const auto timed = runSchedule(sized("GPipe", 4, 1), measured);
  QCOMPARE(timed->times, StageTimes::measured);
  QCOMPARE(timed->timeText(timed->simulation.makespan), QStringLiteral("12.0 ms"));
  // Over a link each of the three borders is crossed twice, there and back.
  auto linked = sized("GPipe", 4, 1);
  linked.link = 1e-3;  // a byte takes a microsecond
  double travel = 0;
  for (const auto& border : cut->borders)
    travel += static_cast<double>(border.valueBytes + border.gradientBytes) * 1e-3;
  QVERIFY(travel > 0);
  QVERIFY(std::abs(runSchedule(linked, measured)->simulation.makespan - 12 - travel) < 1e-9);
  QCOMPARE(runSchedule(linked, cut)->simulation.makespan, run->simulation.makespan);  // estimated times know no seconds
}

void ScheduleTest::aLinkIsHeededWithMeasuredTimes() {
  const auto f = opened(4);
  QVERIFY(f);
  auto* link = f->window().findChild<QDoubleSpinBox*>(QStringLiteral("schedule-link"));
  QVERIFY(!link->isEnabled());
  QVERIFY(link->toolTip().contains(QStringLiteral("Measure Times")));
  QCOMPARE(link->text(), QStringLiteral("link: instant"));
  link->setValue(25);
  QVERIFY(settled(*f));
  QCOMPARE(dock(*f).run()->request.link, 25.0);
}

void ScheduleTest::ranksFollowTheCut() {
  QCOMPARE(fitted(sized("1F1B", 2, 8), 6).ranks, 6);
  QCOMPARE(fitted(sized("ZBVZeroBubble", 4, 8), 6).ranks, 3);
  QCOMPARE(fitted(sized("ZBVZeroBubble", 4, 8), 5).ranks, 4);
  QCOMPARE(fitted(sized("LoopedBFS", 4, 8), 6).ranks, 3);
  QCOMPARE(fitted(sized("LoopedBFS", 4, 8), 5).ranks, 5);
  QCOMPARE(fitted(sized("LoopedBFS", 4, 8), 5).stagesPerRank, 1);
  QCOMPARE(fitted(sized("1F1B", 2, 8), 1).ranks, 2);
  const auto f = opened(4);
  QVERIFY(f);
  QCOMPARE(dock(*f).run()->schedule.ranks.size(), std::size_t(4));
  auto request = plan(*f).request();
  request.stages = 2;
  plan(*f).change(request, QStringLiteral("test"));
  QVERIFY(settled(*f));
  QCOMPARE(dock(*f).run()->schedule.ranks.size(), std::size_t(2));
  QCOMPARE(dock(*f).run()->times, StageTimes::estimated);
}

void ScheduleTest::theDockShowsARun() {
  const auto f = opened();
  QVERIFY(f);
  QCOMPARE(dock(*f).run()->times, StageTimes::equal);
  QVERIFY2(dock(*f).message().startsWith(QStringLiteral("Makespan 33 · bubble 27.3 %")),
           qPrintable(dock(*f).message()));
  auto* ranks = f->window().findChild<QSpinBox*>(QStringLiteral("schedule-size"));
  ranks->setValue(2);
  QVERIFY(settled(*f));
  QVERIFY2(dock(*f).message().startsWith(QStringLiteral("Makespan 27 ")), qPrintable(dock(*f).message()));
  auto* kind = f->window().findChild<QComboBox*>(QStringLiteral("schedule-kind"));
  QCOMPARE(kind->count(), 8);
  kind->setFocus();
  QTest::keyClick(kind, Qt::Key_Z);  // ZBVZeroBubble
  QVERIFY(settled(*f));
  QCOMPARE(dock(*f).run()->schedule.stages, 4);
  QVERIFY(!f->window().findChild<QSpinBox*>(QStringLiteral("schedule-each"))->isEnabled());
  QCOMPARE(f->window().findChild<QTreeView*>(QStringLiteral("schedule-ranks"))->model()->rowCount(), 2);
  f->picture(QStringLiteral("schedule-zbv"));
}

void ScheduleTest::arrowsGoFromCellToCell() {
  const auto f = opened();
  QVERIFY(f);
  auto& canvas = view(*f);
  const auto* told = f->window().findChild<QLabel*>(QStringLiteral("schedule-cell"));
  QTest::keyClick(&canvas, Qt::Key_Right);
  QCOMPARE(canvas.current(), 0);
  QVERIFY2(told->text().startsWith(QStringLiteral("Rank 0, stage 0: forward of microbatch 0 (F), from 0 to 1")),
           qPrintable(told->text()));
  QCOMPARE(canvas.accessibleDescription(), told->text());
  QTest::keyClick(&canvas, Qt::Key_Right);
  QCOMPARE(canvas.current(), 1);
  QTest::keyClick(&canvas, Qt::Key_Down);
  QCOMPARE(canvas.scheduleLayout().cell(canvas.current()).rank, 1);
  QTest::keyClick(&canvas, Qt::Key_End);
  QCOMPARE(canvas.current(), canvas.scheduleLayout().end(1) - 1);
  // The last rank is below what a low dock shows, and the keys lead there.
  for (int rank = 2; rank <= 3; ++rank) QTest::keyClick(&canvas, Qt::Key_Down);
  QCOMPARE(canvas.scheduleLayout().cell(canvas.current()).rank, 3);
  QTest::mouseClick(canvas.viewport(), Qt::LeftButton, {},
                    canvas.cellRect(canvas.scheduleLayout().begin(3)).center().toPoint());
  QCOMPARE(canvas.current(), canvas.scheduleLayout().begin(3));
  QTest::mouseMove(canvas.viewport(), canvas.cellRect(canvas.scheduleLayout().begin(2)).center().toPoint());
  QTRY_VERIFY_WITH_TIMEOUT(told->text().startsWith(QStringLiteral("Rank 2, stage 2")), 20000);
}

void ScheduleTest::itZooms() {
  const auto f = opened();
  QVERIFY(f);
  auto& canvas = view(*f);
  const double all = canvas.scale();
  QCOMPARE(canvas.horizontalScrollBar()->maximum(), 0);
  QTest::keyClick(&canvas, Qt::Key_Minus);
  QCOMPARE(canvas.scale(), all);  // all is seen already
  const int cell = canvas.scheduleLayout().begin(0) + 2;
  canvas.setCurrent(cell);
  const auto chosen = canvas.cellRect(cell).center();
  QTest::keyClick(&canvas, Qt::Key_Plus);
  QCOMPARE(canvas.cellAt(chosen), cell);  // what is chosen stays where it is
  QVERIFY(canvas.scale() > all * 1.2);
  QVERIFY(canvas.horizontalScrollBar()->maximum() > 0);
  // The wheel keeps what is under the mouse.
  const auto point = canvas.cellRect(cell).center();
  const double before = canvas.scale();
  QWheelEvent wheel(point, canvas.viewport()->mapToGlobal(point), {}, {0, 120}, Qt::NoButton, Qt::ControlModifier,
                    Qt::NoScrollPhase, false);
  QApplication::sendEvent(canvas.viewport(), &wheel);
  QVERIFY(canvas.scale() > before);
  QCOMPARE(canvas.cellAt(point), cell);
  QTest::keyClick(&canvas, Qt::Key_End);
  QVERIFY(canvas.viewport()->rect().contains(canvas.cellRect(canvas.current()).center().toPoint()));
  QTest::keyClick(&canvas, Qt::Key_0);
  QCOMPARE(canvas.scale(), all);
}

void ScheduleTest::cellsLeadToTheirStage() {
  const auto f = opened(4);
  QVERIFY(f);
  auto& canvas = view(*f);
  canvas.setCurrent(canvas.scheduleLayout().begin(2));
  QTest::keyClick(&canvas, Qt::Key_Return);
  // The computation is hidden: an open listing has what the op became.
  QCOMPARE(f->selection().op(), f->analysis().links.derived(plan(*f).cut()->firstOp(2)).front());
}

void ScheduleTest::filesAreReadAndWritten() {
  const auto f = opened();
  QVERIFY(f);
  QTemporaryDir folder;
  dock(*f).openFile(written(folder, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"));
  QVERIFY(settled(*f));
  QVERIFY2(dock(*f).run()->runs(), qPrintable(dock(*f).run()->problem));
  QCOMPARE(dock(*f).run()->schedule.microbatches, 2);
  QVERIFY(!f->window().findChild<QSpinBox*>(QStringLiteral("schedule-size"))->isVisible());
  const auto contents = [&](const char* name) {
    dock(*f).save(folder.filePath(QLatin1String(name)));
    QFile file(folder.filePath(QLatin1String(name)));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  };
  QVERIFY(contents("out.csv").startsWith("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1"));
  QVERIFY(contents("out.svg").startsWith("<svg"));
  const auto figures = nlohmann::json::parse(contents("out.json").toStdString());
  QVERIFY(figures.contains("makespan"));
  QVERIFY_THROWS_EXCEPTION(Error, dock(*f).save(folder.filePath(QStringLiteral("none/out.svg"))));
  auto* save = f->window().findChild<QAction*>(QStringLiteral("action-save-schedule"));
  QVERIFY(save->isEnabled());
  // The dialog's form with transfers has what rank 1 waits for (P64).
  save->trigger();
  auto* dialog = f->window().findChild<QFileDialog*>(QStringLiteral("schedule-file"));
  QVERIFY(dialog);
  const auto lowered = dialog->nameFilters().filter(QStringLiteral("sends"));
  QCOMPARE(lowered.size(), 1);
  dialog->selectNameFilter(lowered.front());
  const auto path = folder.filePath(QStringLiteral("lowered.csv"));
  Q_EMIT dialog->fileSelected(path);
  dialog->close();
  QFile lines(path);
  QVERIFY(lines.open(QIODevice::ReadOnly));
  const auto rows = lines.readAll();
  QVERIFY2(rows.contains("0SEND_F0") && rows.contains("1RECV_F0"), rows.constData());
  // Read back, it has its transfers: they are not added again.
  dock(*f).openFile(path);
  QVERIFY(settled(*f));
  QVERIFY2(dock(*f).run()->runs(), qPrintable(dock(*f).run()->problem));
  QVERIFY_THROWS_EXCEPTION(Error, dock(*f).save(path, true));
  // The same file, rewritten to one that is stuck.
  dock(*f).openFile(written(folder, "0F0,0B0\n1B0\n"));
  QVERIFY(settled(*f));
  QVERIFY2(dock(*f).message().contains(QStringLiteral("1F0")), qPrintable(dock(*f).message()));
  QVERIFY(view(*f).scheduleLayout().empty());
  QVERIFY(!save->isEnabled());
  f->picture(QStringLiteral("schedule-stuck"));
}

void ScheduleTest::nothingIsComputedOutOfSight() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:4")));
  f.raise("dock-memory");
  QVERIFY(f.quiet());
  QVERIFY(!dock(f).run() && !dock(f).isSimulating());
  QVERIFY(!f.window().findChild<QAction*>(QStringLiteral("action-save-schedule"))->isEnabled());
  f.window().findChild<QAction*>(QStringLiteral("action-schedule"))->trigger();
  QVERIFY(settled(f));
  QVERIFY(dock(f).run()->runs());
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::ScheduleTest)
#include "schedule_test.moc"
