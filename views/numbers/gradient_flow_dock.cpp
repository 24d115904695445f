#include "views/numbers/gradient_flow_dock.h"

#include <QHeaderView>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "core/derivation/gradient_of.h"
#include "views/text/format.h"
#include "views/widgets/command_key.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

constexpr int rowRole = Qt::UserRole + 100;  ///< int: position in rows_
constexpr int leastName = 80;
const QList<int> shares{1000, 1500};  ///< of chart and table: the table's numbers need more than the bars
enum Column { nameColumn, valueColumn, gradientColumn, ratioColumn, badColumn, columnCount };

}  // namespace

GradientFlowDock::GradientFlowDock(ViewContext context, QWidget* parent)
    : Panel(context, "gradient-flow", parent),
      model_(new QStandardItemModel(this)),
      table_(new QTreeView(this)),
      chart_(new GradientFlowChart(context.theme, this)),
      splitter_(new QSplitter(Qt::Horizontal, this)),
      columns_(new ColumnFitter(table_)) {
  table_->setObjectName(QStringLiteral("gradient-flow"));
  model_->setHorizontalHeaderLabels({tr("Parameter"), tr("Value"), tr("Gradient"), tr("Ratio"), tr("NaN and Inf")});
  table_->setModel(model_);
  new SortedRows(*table_);
  prepareTree(*table_, tr("Parameters by layer with the norms of value and gradient"), true);
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
  connect(table_, &QTreeView::expanded, this, &GradientFlowDock::showBars);
  connect(table_, &QTreeView::collapsed, this, &GradientFlowDock::showBars);
  connect(table_->header(), &QHeaderView::sectionResized, this, [this](int section) { isNameChosen_ = isNameChosen_ || (section == 0 && !fitting_); });
  connect(chart_, &GradientFlowChart::chosen, this,
          [this](int bar) { table_->setCurrentIndex(shownIn(*table_, rows_[barRows_[static_cast<std::size_t>(bar)]].item->index())); });
}

void GradientFlowDock::refresh() {
  const auto open = document();
  if (!open) return forget();
  filling_ = true;
  if (shown_ != open->analysis) {
    shown_ = open->analysis;
    build();
  }
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    measure(row);
    showNumbers(rows_[row]);
  }
  columns_->fit();
  arrange();
  fitName();
  filling_ = false;
  showBars();
}

void GradientFlowDock::build() {
  model_->removeRows(0, model_->rowCount());
  rows_.clear();
  const auto tree = parameterTree(shown_->computation());
  const auto gradients = gradientsOfInputs(*shown_);
  for (const auto& part : tree.parts) add(part, gradients, model_->invisibleRootItem());
  expandToLayers(tree, model_->invisibleRootItem());
}

std::size_t GradientFlowDock::add(const ParameterTree& tree, const std::vector<ValueId>& gradients, QStandardItem* parent) {
  QList<QStandardItem*> items;
  for (int column = 0; column < columnCount; ++column) {
    items << new QStandardItem;
    items.last()->setEditable(false);
    if (column != nameColumn) items.last()->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  }
  items.first()->setText(toQt(tree.label));
  items.first()->setToolTip(toQt(tree.path));
  parent->appendRow(items);
  Row row;
  row.path = toQt(tree.path);
  row.item = items.first();
  if (tree.input) {
    row.parameter = shown_->computation().inputs[*tree.input].value;
    row.gradient = gradients[*tree.input];
  }
  for (auto* item : items) item->setData(row.gradient ? shown_->document->value(row.gradient).producer.index : -1, opRole);
  for (const auto& part : tree.parts) row.parts.push_back(add(part, gradients, items.first()));
  items.first()->setData(static_cast<int>(rows_.size()), rowRole);
  rows_.push_back(std::move(row));
  return rows_.size() - 1;
}

/// Opens what holds layers, and no layer.
void GradientFlowDock::expandToLayers(const ParameterTree& tree, QStandardItem* parent) {
  for (std::size_t i = 0; i < tree.parts.size(); ++i) {
    const auto& part = tree.parts[i];
    if (part.isMember || !part.holdsMembers()) continue;
    auto* item = parent->child(static_cast<int>(i));
    table_->setExpanded(shownIn(*table_, item->index()), true);
    expandToLayers(part, item);
  }
}

void GradientFlowDock::measure(std::size_t index) {
  auto& row = rows_[index];
  GradientFlowChart::Bar bar;
  bar.name = row.path;
  row.bad = 0;
  if (row.parameter) {
    const auto& numbers = context_.controller->ahead().numbers();
    const auto* value = numbers.statistics(row.parameter);
    const auto* gradient = row.gradient ? numbers.statistics(row.gradient) : nullptr;
    bar.hasGradient = row.gradient.valid();
    bar.isKnown = value && (gradient || !bar.hasGradient);
    if (value) bar.value = value->norm;
    if (gradient) {
      bar.gradient = gradient->norm;
      row.bad = gradient->nan + gradient->inf;
    }
  } else {
    bar.isKnown = true;
    for (const auto part : row.parts) {
      const auto& numbers = rows_[part].numbers;
      bar.isKnown = bar.isKnown && numbers.isKnown;
      bar.hasGradient = bar.hasGradient || numbers.hasGradient;
      bar.value = std::hypot(bar.value, numbers.value);
      bar.gradient = std::hypot(bar.gradient, numbers.gradient);
      row.bad += rows_[part].bad;
    }
  }
  row.numbers = std::move(bar);
}

void GradientFlowDock::showNumbers(const Row& row) {
  const auto index = row.item->index();
  const auto show = [&](Column column, const QString& text, double number) {
    auto* item = model_->itemFromIndex(index.siblingAtColumn(column));
    item->setText(text);
    item->setData(number, sortRole);
  };
  const auto& bar = row.numbers;
  show(valueColumn, bar.isKnown ? numberText(bar.value) : QString(), bar.isKnown ? bar.value : qQNaN());
  const bool isMeasured = bar.isKnown && bar.hasGradient;
  show(gradientColumn, isMeasured ? numberText(bar.gradient) : bar.hasGradient ? QString() : tr("none"), isMeasured ? bar.gradient : qQNaN());
  show(ratioColumn, isMeasured ? numberText(bar.ratio()) : QString(), isMeasured ? bar.ratio() : qQNaN());
  show(badColumn,
       !isMeasured   ? QString()
       : row.bad > 0 ? QStringLiteral("! %1").arg(row.bad)
                     : QStringLiteral("0"),
       isMeasured ? static_cast<double>(row.bad) : qQNaN());
}

/// One bar for each row that is not open, in the order of the layers whatever the table is sorted by.
void GradientFlowDock::showBars() {
  if (filling_) return;
  barRows_.clear();
  std::vector<GradientFlowChart::Bar> bars;
  const auto visit = [&](const auto& self, const QStandardItem* parent) -> void {
    for (int i = 0; i < parent->rowCount(); ++i) {
      const auto* item = parent->child(i);
      if (item->hasChildren() && table_->isExpanded(shownIn(*table_, item->index()))) {
        self(self, item);
        continue;
      }
      barRows_.push_back(item->data(rowRole).toUInt());
      bars.push_back(rows_[barRows_.back()].numbers);
    }
  };
  visit(visit, model_->invisibleRootItem());
  chart_->show(std::move(bars), whyNoNorms());
  markBar();
}

QString GradientFlowDock::whyNoNorms() const {
  const auto& open = context_.controller->document();
  if (open && !open->noRunReason.isEmpty()) return open->noRunReason;
  const auto key = keyText(*this, "continue");
  return tr("Run the model to see the norms: %1").arg(key.isEmpty() ? tr("Run > Continue") : key);
}

/// Names are longer than there is room: they get what the numbers leave, until a person chooses another width.
void GradientFlowDock::fitName() {
  if (isNameChosen_) return;
  auto* header = table_->header();
  fitting_ = true;
  header->resizeSection(0, std::max(leastName, table_->viewport()->width() - header->length() + header->sectionSize(0)));
  fitting_ = false;
}

void GradientFlowDock::arrange() {
  const auto* header = table_->header();
  const int numbers = header->length() - header->sectionSize(0) + table_->verticalScrollBar()->sizeHint().width();
  const auto wanted = width() < chart_->minimumWidth() + splitter_->handleWidth() + leastName + numbers ? Qt::Vertical : Qt::Horizontal;
  if (splitter_->orientation() == wanted) return;
  splitter_->setOrientation(wanted);
  splitter_->setSizes(shares);
}

void GradientFlowDock::resizeEvent(QResizeEvent* event) {
  Panel::resizeEvent(event);
  arrange();
}

bool GradientFlowDock::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_->viewport() && event->type() == QEvent::Resize) QMetaObject::invokeMethod(this, &GradientFlowDock::fitName, Qt::QueuedConnection);
  return Panel::eventFilter(watched, event);
}

void GradientFlowDock::forget() {
  filling_ = true;
  model_->removeRows(0, model_->rowCount());
  rows_.clear();
  barRows_.clear();
  shown_.reset();
  chart_->show({});
  filling_ = false;
}

const GradientFlowDock::Row* GradientFlowDock::rowOf(const QModelIndex& index) const {
  const auto at = ofModel(index).siblingAtColumn(nameColumn).data(rowRole);
  return at.isValid() ? &rows_[at.toUInt()] : nullptr;
}

void GradientFlowDock::markBar() {
  const auto* row = rowOf(table_->currentIndex());
  const auto bar = std::find(barRows_.begin(), barRows_.end(), row ? static_cast<std::size_t>(row - rows_.data()) : rows_.size());
  chart_->setCurrent(bar == barRows_.end() ? -1 : static_cast<int>(bar - barRows_.begin()));
}

/// Selects the op that makes the gradient, with the gradient as its value; of a parameter without one, the parameter.
void GradientFlowDock::choose(const QModelIndex& index) {
  markBar();
  const auto open = document();
  const auto* row = rowOf(index);
  if (!open || open->analysis != shown_ || !row || !row->parameter) return;
  if (const auto op = row->gradient ? shown_->document->value(row->gradient).producer : BoundSymbolId()) context_.selection->select(op, row->gradient);
  else context_.selection->selectValue(row->parameter);
}

}  // namespace retrograd::views
