#include "views/docks/schedule_dock.h"

#include <QAction>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QSplitter>
#include <QStyle>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "core/formats/files/atomic_file.h"
#include "core/schedule/schedule_kinds.h"
#include "core/schedule/schedule_lowering.h"
#include "core/schedule/schedule_report.h"
#include "core/trace/print/json.h"
#include "views/stages/stage_plan.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"
#include "views/widgets/flow_layout.h"
#include "views/widgets/item_view.h"

namespace retrograd::views {

ScheduleDock::ScheduleDock(ViewContext context, QAction* save, QWidget* parent) : Panel(context, "schedule", parent) {
  setObjectName(QStringLiteral("schedule"));
  view_ = new ScheduleView(context.theme, this);
  cell_ = named(new ElidedLabel(this), "schedule-cell");
  cell_->setContentsMargins(8, 2, 8, 3);
  message_ = named(new WrappedLabel(this), "schedule-message", tr("How the schedule runs"));
  message_->setContentsMargins(8, 0, 8, 0);
  message_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* parts = makeParts();
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  auto* said = withMargins(new QHBoxLayout, {0, 0, 6, 4});
  said->addWidget(message_, 1);
  said->addWidget(commandButton(save, this), 0, Qt::AlignTop);
  layout->addWidget(makeControls());
  layout->addLayout(said);
  layout->addWidget(parts, 1);
  layout->addWidget(cell_);  // below both: the legend is longer than the drawing is wide
  connect(view_, &ScheduleView::told, this, [this](int cell) {
    const auto legend = view_->scheduleLayout().empty()
                            ? QString()
                            : tr("F forward \u00b7 B backward: I of inputs, W of weights \u00b7 hatched: waits");
    cell_->setText(cell >= 0 ? view_->scheduleLayout().describe(cell) : legend);
  });
  connect(view_, &ScheduleView::activated, this, [this](int cell) {
    if (run_ && run_->cut) Q_EMIT jumpRequested(run_->cut->firstOp(view_->scheduleLayout().cell(cell).stage));
  });
  connect(table_, &QTreeView::clicked, this, [this](const QModelIndex& index) {
    if (const auto& cells = view_->scheduleLayout();
        !cells.empty() && cells.begin(index.row()) < cells.end(index.row()))
      view_->setCurrent(cells.begin(index.row()));
  });
  connect(context_.stages, &StagePlan::changed, this, &ScheduleDock::invalidate);
  showRequest();
}

QWidget* ScheduleDock::makeParts() {
  model_ = new ScheduleRanksModel(this);
  table_ = new QTreeView(this);
  prepareTree(*table_, model_, "schedule-ranks", tr("Ranks of the schedule"), {.isFlat = true, .isSorted = true});
  using Ranks = ScheduleRanksModel;
  setWidths(*table_, {{Ranks::rank, 36},
                      {Ranks::bubble, 54},
                      {Ranks::inFlight, 54},
                      {Ranks::peakBytes, 66},
                      {Ranks::busy, 64},
                      {Ranks::stages, 48}});
  auto* parts = named(new QSplitter(this), "schedule-parts");
  parts->addWidget(view_);
  parts->addWidget(table_);
  // The table gets what its columns need, but never so much that cells cannot be distinguished; it then scrolls.
  const int tableWidth =
      table_->header()->length() + 2 * table_->frameWidth() + style()->pixelMetric(QStyle::PM_ScrollBarExtent);
  table_->setMaximumWidth(tableWidth);
  view_->setMinimumWidth(tableWidth * 2 / 3);
  parts->setSizes({tableWidth * 2 / 3, tableWidth});
  parts->setStretchFactor(0, 1);
  parts->setStretchFactor(1, 0);
  parts->setChildrenCollapsible(false);
  return parts;
}

QSpinBox* ScheduleDock::makeSpin(const char* object, const QString& name, const QString& suffix, int most, int value) {
  auto* spin = named(new QSpinBox(this), object, name);
  spin->setToolTip(name);
  spin->setSuffix(suffix);
  spin->setRange(1, most);
  spin->setValue(value);
  spin->setKeyboardTracking(false);
  connect(spin, &QSpinBox::valueChanged, this, [this] {
    if (refreshing_) return;
    auto request = request_;
    request.ranks = ranks_->value();
    request.stagesPerRank = each_->isEnabled() ? each_->value() : request.stagesPerRank;
    request.microbatches = microbatches_->value();
    change(request);
  });
  return spin;
}

QDoubleSpinBox* ScheduleDock::makeLink() {
  auto* spin = named(new QDoubleSpinBox(this), "schedule-link", tr("Speed between two ranks"));
  spin->setPrefix(tr("link: "));
  spin->setSuffix(tr(" GB/s"));
  spin->setSpecialValueText(tr("link: instant"));
  spin->setRange(0, 10000);
  spin->setDecimals(2);
  spin->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  spin->setKeyboardTracking(false);
  connect(spin, &QDoubleSpinBox::valueChanged, this, [this](double link) {
    if (refreshing_) return;
    auto request = request_;
    request.link = link;
    change(request);
  });
  return spin;
}

QWidget* ScheduleDock::makeControls() {
  auto* line = new QWidget(this);
  kind_ = makeBox(line, "schedule-kind", tr("Schedule"));
  for (const auto& kind : scheduleKinds()) {
    kind_->addItem(toQt(kind.name), toQt(kind.name));
    kind_->setItemData(kind_->count() - 1, toQt(kind.description), Qt::ToolTipRole);
  }
  kind_->addItem(tr("CSV file..."));
  connect(kind_, &QComboBox::activated, this, &ScheduleDock::kindChosen);
  ranks_ = makeSpin("schedule-size", tr("Ranks"), tr(" ranks"), 512, request_.ranks);
  each_ = makeSpin("schedule-each", tr("Stages that each rank holds"), QString(), 64, request_.stagesPerRank);
  each_->setPrefix(tr("stages a rank: "));
  microbatches_ =
      makeSpin("schedule-microbatches", tr("Microbatches of a step"), tr(" microbatches"), 4096, request_.microbatches);
  link_ = makeLink();
  auto* row = withMargins(new FlowLayout(line), {6, 4, 6, 4});
  for (auto* widget : {static_cast<QWidget*>(kind_), static_cast<QWidget*>(ranks_), static_cast<QWidget*>(each_),
                       static_cast<QWidget*>(microbatches_), static_cast<QWidget*>(link_)})
    row->addWidget(widget);
  return line;
}

void ScheduleDock::kindChosen(int index) {
  const auto name = kind_->itemData(index).toString();
  if (name.isEmpty()) return askForFile();
  auto request = request_;
  request.kind = name;
  request.file.clear();
  change(fitted(request, stages_));
}

void ScheduleDock::askForFile() {
  showRequest();  // until a file is chosen, the old one stays
  chooseFile(this, tr("Schedule"), {}, tr("Schedules (*.csv);;All files (*)"), this, &ScheduleDock::openFile);
}

void ScheduleDock::openFile(const QString& path) {
  auto request = request_;
  request.file = path;
  if (request == request_) outdated_ = true;  // it may have been rewritten
  change(request);
}

void ScheduleDock::refresh() {
  const auto& cut = context_.stages->cut();
  if (cut == cut_) {
    if (outdated_ && !job_.busy()) start();
    return;
  }
  cut_ = cut;
  const int stages = cut_ ? cut_->stages() : 0;
  outdated_ = true;
  if (stages == stages_) return start();
  stages_ = stages;
  change(fitted(request_, stages_));
}

void ScheduleDock::change(const ScheduleRequest& request) {
  outdated_ = outdated_ || request != request_;
  request_ = request;
  showRequest();
  if (outdated_) start();
}

void ScheduleDock::start() {
  if (!inSight()) return;
  outdated_ = false;
  message_->setText(tr("Simulating..."));
  job_.start([this, request = request_, cut = cut_](const Progress& progress) -> PoolJob::Deliver {
    progress.check();
    const auto run = runSchedule(request, cut);
    auto layout = run->runs() ? ScheduleLayout(run) : ScheduleLayout();
    return [this, run, layout = std::move(layout)] {
      view_->setHint(run->runs() ? tr("The schedule does nothing.") : tr("The schedule does not run."));
      view_->show(layout);
      show(run);
    };
  });
}

void ScheduleDock::show(const std::shared_ptr<const ScheduleRun>& run) {
  run_ = run;
  model_->show(run);
  link_->setEnabled(run->times == StageTimes::measured);
  link_->setToolTip(link_->isEnabled()
                        ? tr("What crosses between stages takes its bytes over this speed; at 0 it is there at once")
                        : tr("Transfers need measured times: cut the model and use Measure Times"));
  if (run->runs())
    message_->setText(
        tr("Makespan %1 · bubble %2 % · %3. %4")
            .arg(run->timeText(run->simulation.makespan))
            .arg(100 * run->simulation.bubble, 0, 'f', 1)
            .arg(request_.file.isEmpty()
                     ? tr("%1 stages").arg(run->schedule.stages)  // the fields above have the rest
                     : tr("%1 stages, %2 microbatches").arg(run->schedule.stages).arg(run->schedule.microbatches),
                 run->timesText()));
  else message_->setText(QStringLiteral("! ") + run->problem);
  Q_EMIT changed();
}

void ScheduleDock::showRequest() {
  refreshing_ = true;
  const bool file = !request_.file.isEmpty();
  const int last = kind_->count() - 1;
  kind_->setItemText(last, file ? QFileInfo(request_.file).fileName() : tr("CSV file..."));
  kind_->setCurrentIndex(file ? last : kind_->findData(request_.kind));
  const auto* kind = findScheduleKind(request_.kind.toStdString());
  ranks_->setValue(request_.ranks);
  each_->setEnabled(kind && kind->fixedStagesPerRank == 0);
  each_->setToolTip(each_->isEnabled() ? tr("Stages that each rank holds")
                                       : tr("This schedule has a fixed number of stages on each rank"));
  each_->setValue(stagesPerRank(request_));
  microbatches_->setValue(request_.microbatches);
  link_->setValue(request_.link);
  for (auto* spin : {ranks_, microbatches_}) spin->setVisible(!file);
  each_->setVisible(!file && each_->isEnabled());  // room is short
  kind_->setToolTip(file ? request_.file : kind ? toQt(kind->description) : QString());
  refreshing_ = false;
}

void ScheduleDock::save(const QString& path, bool withTransfers) const {
  if (!run_) return;
  const auto is = [&](const char* suffix) { return path.endsWith(QLatin1String(suffix), Qt::CaseInsensitive); };
  const auto text = is(".svg")    ? scheduleSvg(run_->schedule, run_->simulation, run_->costs)
                    : is(".json") ? dumpJson(scheduleJson(run_->schedule, run_->simulation, run_->costs), 1) + "\n"
                                  : writeScheduleCsv(withTransfers ? lowerSchedule(run_->schedule) : run_->schedule);
  writeWholeFile(path.toStdString(), text);
}

}  // namespace retrograd::views
