#include "views/numbers/gradient_flow_dock.h"

#include <QHeaderView>
#include <QSplitter>
#include <algorithm>
#include <optional>

#include "core/derivation/gradient_of.h"
#include "views/text/format.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

/// Length of the modules that all parameters with a gradient are in: "model.layers." tells them apart nowhere.
qsizetype sharedPath(const Analysis& analysis) {
  std::optional<QString> shared;
  for (const auto& input : analysis.computation().inputs) {
    if (input.kind != InputKind::parameter || !gradientOf(analysis, input.value)) continue;
    const auto path = toQt(input.target).section(QLatin1Char('.'), 0, -2, QString::SectionIncludeTrailingSep);
    if (!shared) shared = path;
    const auto differ = std::mismatch(shared->begin(), shared->end(), path.begin(), path.end()).first;
    shared->truncate(differ - shared->begin());
    shared->truncate(shared->lastIndexOf(QLatin1Char('.')) + 1);
  }
  return shared ? shared->size() : 0;
}

}  // namespace

GradientFlowDock::GradientFlowDock(ViewContext context, QWidget* parent)
    : Panel(context, "gradient-flow", parent),
      model_(new QStandardItemModel(this)),
      table_(new QTreeView(this)),
      chart_(new GradientFlowChart(context.theme, this)),
      columns_(new ColumnFitter(table_)) {
  table_->setObjectName(QStringLiteral("gradient-flow"));
  model_->setHorizontalHeaderLabels({tr("Parameter"), tr("Value"), tr("Gradient"), tr("Ratio"), tr("NaN and Inf")});
  table_->setModel(model_);
  new SortedRows(*table_);
  prepareTree(*table_, tr("Parameters with the norms of value and gradient"), true);
  table_->setRootIsDecorated(false);
  table_->header()->setStretchLastSection(false);
  fitName();
  table_->setTextElideMode(Qt::ElideLeft);  // parameter and layer are at the end of a path
  auto* splitter = new QSplitter(Qt::Horizontal, this);
  splitter->addWidget(chart_);
  splitter->addWidget(table_);
  splitter->setChildrenCollapsible(false);
  splitter->setSizes({1000, 1500});  // parts of what there is: the table's numbers need more than the bars
  fillWith(splitter);
  setList(table_);
  setDelay(100);
  connect(&context_.controller->ahead().numbers(), &RunNumbers::changed, this, &GradientFlowDock::invalidate);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
    if (!filling_) choose(ofModel(now).row());
  });
  connect(table_->header(), &QHeaderView::sectionResized, this, [this](int section) { isNameChosen_ = isNameChosen_ || (section == 0 && !fitting_); });
  connect(chart_, &GradientFlowChart::chosen, this, [this](int bar) { table_->setCurrentIndex(shownIn(*table_, model_->index(bar, 0))); });
}

void GradientFlowDock::refresh() {
  const auto open = document();
  if (!open) return forget();
  const auto& numbers = context_.controller->ahead().numbers();
  const auto& analysis = *open->analysis;
  const int current = ofModel(table_->currentIndex()).row();
  filling_ = true;
  model_->removeRows(0, model_->rowCount());
  parameters_.clear();
  std::vector<GradientFlowChart::Bar> bars;
  const auto shared = sharedPath(analysis);
  for (const auto& input : analysis.computation().inputs) {
    const auto gradient = input.kind == InputKind::parameter ? gradientOf(analysis, input.value) : ValueId();
    if (!gradient) continue;
    const auto* value = numbers.statistics(input.value);
    const auto* slope = numbers.statistics(gradient);
    GradientFlowChart::Bar bar;
    bar.name = toQt(input.target);
    bar.isKnown = value && slope;
    QList<std::pair<QString, double>> cells{{bar.name.mid(shared), qQNaN()}};
    if (bar.isKnown) {
      bar.value = value->norm;
      bar.gradient = slope->norm;
      const auto bad = slope->nan + slope->inf;
      for (const double number : {bar.value, bar.gradient, bar.ratio()}) cells << std::pair(numberText(number), number);
      cells << std::pair(bad > 0 ? QStringLiteral("! %1").arg(bad) : QStringLiteral("0"), static_cast<double>(bad));
    }
    QList<QStandardItem*> row;
    for (const auto& [text, number] : cells) {
      row << new QStandardItem(text);
      if (row.size() == 1) row.last()->setToolTip(bar.name);
      row.last()->setEditable(false);
      row.last()->setData(analysis.document->value(gradient).producer.index, opRole);
      if (row.size() == 1) continue;
      row.last()->setData(number, sortRole);
      row.last()->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    }
    model_->appendRow(row);
    parameters_.push_back(input.value);
    bars.push_back(std::move(bar));
  }
  if (current >= 0 && current < model_->rowCount()) table_->setCurrentIndex(shownIn(*table_, model_->index(current, 0)));
  columns_->fit();
  fitName();
  chart_->show(std::move(bars));
  chart_->setCurrent(current);
  filling_ = false;
}

/// Names are longer than there is room: they get what the numbers leave, until a person chooses another width.
void GradientFlowDock::fitName() {
  if (isNameChosen_) return;
  constexpr int least = 120;
  auto* header = table_->header();
  fitting_ = true;
  header->resizeSection(0, std::max(least, table_->viewport()->width() - header->length() + header->sectionSize(0)));
  fitting_ = false;
}

bool GradientFlowDock::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_->viewport() && event->type() == QEvent::Resize) QMetaObject::invokeMethod(this, &GradientFlowDock::fitName, Qt::QueuedConnection);
  return Panel::eventFilter(watched, event);
}

void GradientFlowDock::forget() {
  filling_ = true;
  model_->removeRows(0, model_->rowCount());
  parameters_.clear();
  chart_->show({});
  filling_ = false;
}

/// Selects the op that makes the gradient, with the gradient as its value.
void GradientFlowDock::choose(int row) {
  chart_->setCurrent(row);
  const auto open = document();
  if (row < 0 || !open) return;
  const auto gradient = gradientOf(*open->analysis, parameters_[static_cast<std::size_t>(row)]);
  if (const auto op = open->analysis->document->value(gradient).producer) context_.selection->select(op, gradient);
}

}  // namespace retrograd::views
