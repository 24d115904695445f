#include "views/numbers/trace_table_dock.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

#include "views/canvases/listing_view.h"
#include "views/numbers/why_no_numbers.h"
#include "views/theme/tokens.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/item_view.h"

namespace retrograd::views {
namespace {

const QString traceKey = QStringLiteral("trace");

/// Costs have a bar behind them as in listings: what takes most is seen without reading. Numbers of the last run are
/// paler, their bars an outline.
class CostDelegate : public RowDelegate {
 public:
  CostDelegate(QTreeView* table, const TraceTableModel& model, const RunNumbers& numbers, const Theme& theme)
      : RowDelegate(table), model_(model), numbers_(numbers), theme_(theme) {}

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const auto kind = TraceTableModel::figureOf(index.column());
    const double scale = figureColumns()[kind].isCost ? numbers_.scale(kind) : 0;
    if (const auto number = numbers_.number(kind, opOf(index));
        number && scale > 0 && !option.state.testFlag(QStyle::State_Selected)) {
      const auto cell = option.rect.adjusted(tokens::hair, tokens::hair, -tokens::hair, -tokens::hair);
      const double share = std::clamp(*number / scale, 0.0, 1.0);
      const QRectF bar(cell.left(), cell.top(), cell.width() * share, cell.height());
      if (model_.isOfLastRun(index) && bar.width() >= 3) {
        painter->setPen(ListingView::barColor(theme_.colors(), false, true));
        painter->setBrush(Qt::NoBrush);
        painter->drawRect(bar.adjusted(0, 0, -1, -1));
      } else {
        painter->fillRect(bar, ListingView::barColor(theme_.colors(), false, *number > scale));
      }
    }
    RowDelegate::paint(painter, option, index);
  }

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    RowDelegate::initStyleOption(option, index);
    if (model_.isOfLastRun(index))
      option->palette.setColor(QPalette::Text, controlColorsOf(theme_.dark(), theme_.highContrast()).columnText);
  }

 private:
  const TraceTableModel& model_;
  const RunNumbers& numbers_;
  const Theme& theme_;
};

}  // namespace

TraceTableDock::TraceTableDock(ViewContext context, QWidget* parent)
    : Panel(context, "trace-table", parent),
      model_(new TraceTableModel(context.controller->ahead().numbers(), *context.execution, this)),
      traces_(new QComboBox(this)),
      table_(new QTreeView(this)) {
  prepareTree(*table_, model_, "trace-table", tr("Ops of the trace with their numbers"), {.isFlat = true});
  table_->setItemDelegate(new CostDelegate(table_, *model_, context_.controller->ahead().numbers(), *context_.theme));
  table_->setSortingEnabled(true);
  table_->sortByColumn(TraceTableModel::number, Qt::AscendingOrder);
  table_->header()->setStretchLastSection(false);
  for (int column : {TraceTableModel::opName, TraceTableModel::module, TraceTableModel::type})
    table_->header()->resizeSection(column, 150);
  table_->header()->resizeSection(TraceTableModel::output, 76);
  // The numbers come first: people sort by them, and a narrow panel shows little more.
  for (int column = TraceTableModel::figures; column < TraceTableModel::columns; ++column) {
    table_->header()->resizeSection(column, figureColumns()[TraceTableModel::figureOf(column)].width);
    table_->header()->moveSection(column, column - TraceTableModel::figures + TraceTableModel::module);
  }
  table_->header()->resizeSection(TraceTableModel::number, 70);
  auto* content = new QWidget(this);
  auto* layout = withMargins(new QVBoxLayout(content), {}, 0);
  layout->addWidget(makeChoice());
  layout->addWidget(table_, 1);
  fillWith(content);
  setList(table_);
  setDelay(100);
  connect(&context_.controller->ahead().numbers(), &RunNumbers::changed, this, &TraceTableDock::invalidate);
  connect(context_.execution, &ExecutionState::changed, table_->viewport(), qOverload<>(&QWidget::update));
  connect(context_.selection, &Selection::changed, this, [this] {
    if (inSight()) follow();
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
    if (const auto op = model_->opAt(now.row()); op && !following_) context_.selection->select(op);
  });
}

QWidget* TraceTableDock::makeChoice() {
  auto* row = new QWidget(this);
  auto* layout = withMargins(new QHBoxLayout(row), {tokens::gap, tokens::tight, tokens::gap, tokens::tight});
  auto* label = new QLabel(tr("Trace"), row);
  label->setBuddy(traces_);
  traces_->setObjectName(QStringLiteral("trace-table-trace"));
  prepareBox(traces_, tr("Trace that the table lists"));
  for (auto kind : {TraceKind::joint, TraceKind::forward, TraceKind::backward, TraceKind::computation})
    traces_->addItem(titleText(kind), static_cast<int>(kind));
  layout->addWidget(label);
  layout->addWidget(traces_);
  hint_ = named(new ElidedLabel(row), "trace-table-hint");
  hint_->setForegroundRole(QPalette::PlaceholderText);
  layout->addWidget(hint_, 1);
  connect(traces_, &QComboBox::currentIndexChanged, this, &TraceTableDock::invalidate);
  return row;
}

QVariantMap TraceTableDock::saveState() const {
  auto state = Panel::saveState();
  state[traceKey] = static_cast<int>(kind());
  return state;
}

void TraceTableDock::restoreState(const QVariantMap& state) {
  Panel::restoreState(state);
  if (const int row = traces_->findData(state.value(traceKey)); row >= 0) traces_->setCurrentIndex(row);
}

void TraceTableDock::refresh() {
  following_ = true;
  if (shown_ != document() || shownKind_ != kind()) {
    shown_ = document();
    shownKind_ = kind();
    model_->show(shown_, shownKind_);
  } else {
    model_->update();
    table_->viewport()->update();
  }
  following_ = false;
  const auto& ahead = context_.controller->ahead();
  const auto& numbers = context_.controller->ahead().numbers();
  hint_->setText(shown_ && !ahead.running() && !context_.execution->now().running && numbers.known() < numbers.size()
                     ? whyNoNumbers(*this, *context_.controller)
                     : QString());
  follow();
}

void TraceTableDock::forget() {
  following_ = true;
  shown_.reset();
  model_->show(nullptr, kind());
  hint_->clear();
  following_ = false;
}

void TraceTableDock::follow() {
  const auto op = context_.selection->op();
  if (model_->opAt(table_->currentIndex().row()) == op) return;
  const int row = op ? model_->rowOf(op) : -1;
  if (row < 0) return;
  following_ = true;
  table_->setCurrentIndex(model_->index(row, std::max(0, table_->currentIndex().column())));
  following_ = false;
}

/// The titles of columns by keyboard: Alt and an arrow sorts by the column that the keyboard is on.
bool TraceTableDock::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->modifiers() == Qt::AltModifier && (key->key() == Qt::Key_Up || key->key() == Qt::Key_Down)) {
      table_->sortByColumn(std::max(0, table_->currentIndex().column()),
                           key->key() == Qt::Key_Up ? Qt::AscendingOrder : Qt::DescendingOrder);
      return true;
    }
  }
  return Panel::eventFilter(watched, event);
}

}  // namespace retrograd::views
