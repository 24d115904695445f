#include "views/numbers/gradient_flow_dock.h"

#include <QEvent>
#include <QHeaderView>
#include <QScrollBar>
#include <algorithm>

#include "views/numbers/why_no_numbers.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

constexpr int leastName = 80;
const QList<int> shares{1000, 1500};  ///< of chart and table: the table's numbers need more than the bars

}  // namespace

GradientFlowDock::GradientFlowDock(ViewContext context, QWidget* parent)
    : Panel(context, "gradient-flow", parent),
      model_(new GradientFlowModel(this)),
      table_(new QTreeView(this)),
      chart_(new GradientFlowChart(context.theme, this)),
      splitter_(new QSplitter(Qt::Horizontal, this)),
      columns_(new ColumnFitter(table_)) {
  prepareTree(*table_, model_, "gradient-flow", tr("Parameters by layer with the norms of value and gradient"),
              {.isSorted = true});
  table_->header()->setStretchLastSection(false);
  fitName();
  table_->setTextElideMode(Qt::ElideLeft);  // parameter and layer are at the end of a path
  splitter_->addWidget(chart_);
  splitter_->addWidget(table_);
  splitter_->setChildrenCollapsible(false);
  splitter_->setSizes(shares);
  fillWith(splitter_);
  setList(table_);
  setDelay(100);
  connect(&context_.controller->ahead().numbers(), &RunNumbers::changed, this, &GradientFlowDock::invalidate);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
    if (!filling_) choose(now);
  });
  connect(table_, &QTreeView::expanded, this, [this](const QModelIndex& row) { setOpen(row, true); });
  connect(table_, &QTreeView::collapsed, this, [this](const QModelIndex& row) { setOpen(row, false); });
  connect(table_->header(), &QHeaderView::sectionResized, this,
          [this](int section) { isNameChosen_ = isNameChosen_ || (section == 0 && !fitting_); });
  connect(chart_, &GradientFlowChart::chosen, this,
          [this](int bar) { table_->setCurrentIndex(shownIn(*table_, model_->indexOf(barRows_[bar]))); });
}

void GradientFlowDock::refresh() {
  const auto open = document();
  if (!open) return forget();
  if (shown_ == open->analysis) return job_.busy() ? void() : measure();
  forget();
  list(open->analysis);
}

void GradientFlowDock::list(const std::shared_ptr<const Analysis>& analysis) {
  shown_ = analysis;  // numbers that come meanwhile don't begin again
  job_.start([this, analysis](const Progress&) -> PoolJob::Deliver {
    auto rows = std::make_shared<GradientFlowModel::Rows>(GradientFlowModel::rowsOf(*analysis));
    return [this, analysis, rows] {
      filling_ = true;
      model_->show(analysis, std::move(*rows));
      for (const int column : {GradientFlowModel::clip, GradientFlowModel::update, GradientFlowModel::change})
        table_->setColumnHidden(column, !analysis->file.recording);
      expandToLayers(model_->top());
      filling_ = false;
      measure();
    };
  });
}

void GradientFlowDock::measure() {
  filling_ = true;
  model_->measure(context_.controller->ahead().numbers());
  columns_->fit();
  arrange();
  fitName();
  filling_ = false;
  showBars();
  askForUpdates(shown_, [this, analysis = shown_](const Updates& updates) {
    if (shown_ != analysis) return;
    model_->setUpdates(updates);
    columns_->fit();
    fitName();
  });
}

void GradientFlowDock::expandToLayers(const std::vector<int>& rows) {
  for (const int row : rows) {
    const auto& module = model_->rows()[row];
    if (module.isLayer) continue;
    table_->setExpanded(shownIn(*table_, model_->indexOf(row)), true);
    expandToLayers(module.parts);
  }
}

void GradientFlowDock::setOpen(const QModelIndex& index, bool isOpen) {
  model_->setOpen(GradientFlowModel::rowOf(ofModel(index)), isOpen);
  showBars();
}

/// One bar for each row that is not open, in the order of the layers whatever the table is sorted by.
void GradientFlowDock::showBars() {
  if (filling_) return;
  barRows_.clear();
  std::vector<GradientFlowChart::Bar> bars;
  const auto visit = [&](const auto& self, const std::vector<int>& rows) -> void {
    for (const int row : rows) {
      const auto& shown = model_->rows()[row];
      if (shown.isOpen) {
        self(self, shown.parts);
        continue;
      }
      barRows_.push_back(row);
      bars.push_back(shown.numbers);
    }
  };
  visit(visit, model_->top());
  chart_->show(std::move(bars), whyNoNumbers(*this, *context_.controller));
  markBar();
}

/// Names are longer than there is room: they get what the numbers leave, until a person chooses another width.
void GradientFlowDock::fitName() {
  if (isNameChosen_) return;
  auto* header = table_->header();
  fitting_ = true;
  header->resizeSection(0,
                        std::max(leastName, table_->viewport()->width() - header->length() + header->sectionSize(0)));
  fitting_ = false;
}

void GradientFlowDock::arrange() {
  const auto* header = table_->header();
  const int numbers = header->length() - header->sectionSize(0) + table_->verticalScrollBar()->sizeHint().width();
  const auto wanted =
      width() < chart_->minimumWidth() + splitter_->handleWidth() + leastName + numbers ? Qt::Vertical : Qt::Horizontal;
  if (splitter_->orientation() == wanted) return;
  splitter_->setOrientation(wanted);
  splitter_->setSizes(shares);
}

void GradientFlowDock::resizeEvent(QResizeEvent* event) {
  Panel::resizeEvent(event);
  arrange();
}

bool GradientFlowDock::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_->viewport() && event->type() == QEvent::Resize)
    QMetaObject::invokeMethod(this, &GradientFlowDock::fitName, Qt::QueuedConnection);
  return Panel::eventFilter(watched, event);
}

void GradientFlowDock::forget() {
  job_.cancel();
  filling_ = true;
  model_->clear();
  barRows_.clear();
  shown_.reset();
  chart_->show({});
  filling_ = false;
}

void GradientFlowDock::leave() {
  if (!job_.busy()) return;
  forget();
  invalidate();
}

void GradientFlowDock::markBar() {
  const auto bar = std::ranges::find(barRows_, GradientFlowModel::rowOf(ofModel(table_->currentIndex())));
  chart_->setCurrent(bar == barRows_.end() ? -1 : static_cast<int>(bar - barRows_.begin()));
}

/// Selects the op that makes the gradient, with the gradient as its value; of a parameter without one, the parameter.
void GradientFlowDock::choose(const QModelIndex& index) {
  markBar();
  const auto open = document();
  const int at = GradientFlowModel::rowOf(ofModel(index));
  if (!open || open->analysis != shown_ || at < 0) return;
  const auto& row = model_->rows()[at];
  if (!row.parameter) return;
  if (const auto op = row.gradient ? shown_->document->value(row.gradient).producer : BoundSymbolId())
    context_.selection->select(op, row.gradient);
  else context_.selection->selectValue(row.parameter);
}

}  // namespace retrograd::views
