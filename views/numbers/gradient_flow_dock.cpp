#include "views/numbers/gradient_flow_dock.h"

#include <QHeaderView>
#include <QSplitter>

#include "core/derivation/gradient_of.h"
#include "views/text/format.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

GradientFlowDock::GradientFlowDock(ViewContext context, QWidget* parent)
    : Panel(context, "gradient-flow", parent), table_(new QTreeWidget(this)), chart_(new GradientFlowChart(context.theme, this)) {
  table_->setObjectName(QStringLiteral("gradient-flow"));
  table_->setHeaderLabels({tr("Parameter"), tr("Value"), tr("Gradient"), tr("Ratio"), tr("NaN and Inf")});
  prepareTree(*table_, tr("Parameters with the norms of value and gradient"), true);
  table_->setRootIsDecorated(false);
  table_->header()->setStretchLastSection(false);
  table_->header()->resizeSection(0, 220);
  auto* splitter = new QSplitter(Qt::Horizontal, this);
  splitter->addWidget(chart_);
  splitter->addWidget(table_);
  splitter->setChildrenCollapsible(false);
  fillWith(splitter);
  setList(table_);
  setDelay(100);
  connect(&context_.controller->ahead().numbers(), &RunNumbers::changed, this, &GradientFlowDock::invalidate);
  connect(table_, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* now) {
    if (!filling_) choose(table_->indexOfTopLevelItem(now));
  });
  connect(chart_, &GradientFlowChart::chosen, this, [this](int bar) { table_->setCurrentItem(table_->topLevelItem(bar)); });
}

void GradientFlowDock::refresh() {
  const auto open = document();
  if (!open) return forget();
  const auto& numbers = context_.controller->ahead().numbers();
  const auto& analysis = *open->analysis;
  const int current = table_->indexOfTopLevelItem(table_->currentItem());
  filling_ = true;
  table_->clear();
  parameters_.clear();
  std::vector<GradientFlowChart::Bar> bars;
  for (const auto& input : analysis.computation().inputs) {
    const auto gradient = input.kind == InputKind::parameter ? gradientOf(analysis, input.value) : ValueId();
    if (!gradient) continue;
    const auto* value = numbers.statistics(input.value);
    const auto* slope = numbers.statistics(gradient);
    GradientFlowChart::Bar bar;
    bar.name = toQt(input.target);
    bar.isKnown = value && slope;
    QStringList cells{bar.name};
    if (bar.isKnown) {
      bar.value = value->norm;
      bar.gradient = slope->norm;
      const auto bad = slope->nan + slope->inf;
      cells << numberText(bar.value) << numberText(bar.gradient) << numberText(bar.ratio())
            << (bad > 0 ? QStringLiteral("! %1").arg(bad) : QStringLiteral("0"));
    }
    auto* item = new QTreeWidgetItem(table_, cells);
    item->setData(0, opRole, analysis.document->value(gradient).producer.index);
    for (int column = 1; column < 5; ++column) item->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    parameters_.push_back(input.value);
    bars.push_back(std::move(bar));
  }
  if (current >= 0 && current < table_->topLevelItemCount()) table_->setCurrentItem(table_->topLevelItem(current));
  chart_->show(std::move(bars));
  chart_->setCurrent(current);
  filling_ = false;
}

void GradientFlowDock::forget() {
  filling_ = true;
  table_->clear();
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
