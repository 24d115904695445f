#include "views/docks/modules_dock.h"

#include <QAction>
#include <QHeaderView>
#include <QPainter>
#include <cmath>

#include "views/canvases/listing_view.h"
#include "views/text/format.h"
#include "views/theme/tokens.h"
#include "views/widgets/command_key.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

QFont smaller(QFont font) {
  font.setPointSizeF(font.pointSizeF() * tokens::smallType);
  return font;
}

/// Numbers with a bar behind them, as in listings, in smaller type.
class HeatDelegate : public RowDelegate {
 public:
  HeatDelegate(QTreeView* tree, const Theme& theme) : RowDelegate(tree), theme_(theme) {}

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    if (const auto share = index.data(shareRole); share.isValid() && !option.state.testFlag(QStyle::State_Selected)) {
      const auto cell = option.rect.adjusted(tokens::hair, tokens::hair, -tokens::hair, -tokens::hair);
      const bool isBad = index.column() == ModulesModel::bad || !std::isfinite(index.data(sortRole).toDouble());
      painter->fillRect(QRectF(cell.left(), cell.top(), cell.width() * share.toDouble(), cell.height()),
                        ListingView::barColor(theme_.colors(), isBad, false));
    }
    RowDelegate::paint(painter, option, index);
  }

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    RowDelegate::initStyleOption(option, index);
    if (index.column() != ModulesModel::name) option->font = smaller(option->font);
  }

 private:
  const Theme& theme_;
};

const QString sortedKey = QStringLiteral("sorted"), downKey = QStringLiteral("sorted-down");

}  // namespace

ModulesDock::ModulesDock(ViewContext context, QWidget* parent)
    : Panel(context, "modules", parent), model_(new ModulesModel(this)), tree_(new QTreeView(this)) {
  prepareTree(*tree_, model_, "modules", tr("Modules"));
  rows_ = new SortedRows(*tree_);
  tree_->setItemDelegate(new HeatDelegate(tree_, *context_.theme));
  tree_->setIndentation(8);
  tree_->setTextElideMode(Qt::ElideMiddle);  // the ends of names tell one from another
  auto* header = tree_->header();
  header->setStretchLastSection(false);
  for (int column = ModulesModel::time; column < ModulesModel::columns; ++column)
    header->setSectionResizeMode(column, QHeaderView::Fixed);
  header->setMinimumSectionSize(24);
  fitNumbers();
  columns_ = new NamesFirst(tree_, 6);
  columns_->leaveOut(ModulesModel::update, true);
  fillWith(tree_);
  setList(tree_);
  setDelay(100);
  connect(context_.selection, &Selection::changed, this, [this] {
    if (inSight()) follow();
    else invalidate();
  });
  connect(&context_.controller->ahead().numbers(), &RunNumbers::changed, this, &ModulesDock::invalidate);
  connect(tree_, &QTreeView::clicked, this, [this](const QModelIndex& row) {
    chosen_ = row.data(moduleRole).toString();
    if (const auto op = opOf(row)) Q_EMIT jumpRequested(op);
    tree_->setFocus();  // the arrows go on here
  });
  connect(this, &Panel::menuAboutToShow, this, [this](QMenu* menu, const QModelIndex& row) {
    if (!row.isValid()) return;
    auto* go = new QAction(withFixedKey(tr("Go to Its First Op"), Qt::Key_Enter), menu);
    connect(go, &QAction::triggered, this, [this, op = opOf(row)] { Q_EMIT jumpRequested(op); });
    go->setEnabled(opOf(row).valid());
    menu->insertAction(menu->actions().value(0), go);
  });
}

void ModulesDock::fitNumbers() {
  tree_->header()->setFont(smaller(tree_->font()));
  for (int column = ModulesModel::time; column < ModulesModel::columns; ++column)
    tree_->header()->resizeSection(column, widthOf(column));
}

/// By hand: Qt would keep room for the arrow of sorting, which the names need.
int ModulesDock::widthOf(int column) const {
  constexpr int margins = 8;
  const QFontMetrics metrics(smaller(tree_->font()));
  const auto title = model_->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
  int width = metrics.horizontalAdvance(title) + margins;
  for (const auto& text : model_->widest(static_cast<ModulesModel::Column>(column)))
    width = std::max(width, metrics.horizontalAdvance(text) + margins);
  return width;
}

QVariantMap ModulesDock::saveState() const {
  auto state = Panel::saveState();
  state.insert(sortedKey, rows_->sortColumn());
  state.insert(downKey, rows_->sortOrder() == Qt::DescendingOrder);
  return state;
}

void ModulesDock::restoreState(const QVariantMap& state) {
  Panel::restoreState(state);
  if (const int column = state.value(sortedKey, -1).toInt(); column >= 0 && column < ModulesModel::columns)
    tree_->sortByColumn(column, state.value(downKey).toBool() ? Qt::DescendingOrder : Qt::AscendingOrder);
}

void ModulesDock::refresh() {
  const auto open = document();
  if (!open) return forget();
  if (open == shown_) {
    if (!job_.busy()) measure();
    return follow();
  }
  forget();
  list(open);
}

void ModulesDock::list(const std::shared_ptr<const OpenDocument>& document) {
  shown_ = document;  // what comes meanwhile doesn't begin again
  job_.start([this, document](const Progress&) -> PoolJob::Deliver {
    auto modules = std::make_shared<ModulesModel::Modules>(ModulesModel::modulesOf(*document));
    constexpr std::size_t mostAtOnce = 40'000;  // more rows take the tree longer than an event may
    return [this, modules, opens = modules->all.size() < mostAtOnce] {
      model_->show(std::move(*modules));
      columns_->leaveOut(ModulesModel::update, !shown_->analysis->file.recording);
      measure();
      if (opens) tree_->expandToDepth(0);
      follow();
    };
  });
}

void ModulesDock::measure() {
  model_->measure(context_.controller->ahead().numbers());
  if (const int sorted = tree_->header()->sortIndicatorSection();
      sorted >= ModulesModel::time && sorted < ModulesModel::ops)
    rows_->invalidate();
  fitNumbers();
  tree_->viewport()->update();
  askForUpdates(shown_->analysis, [this, analysis = shown_->analysis](const Updates& updates) {
    if (!shown_ || shown_->analysis != analysis) return;
    model_->setUpdates(updates);
    measure();
  });
}

void ModulesDock::forget() {
  job_.cancel();
  shown_ = nullptr;
  model_->show({});
}

void ModulesDock::leave() {
  if (!job_.busy()) return;
  forget();
  invalidate();
}

void ModulesDock::follow() {
  const auto open = document();
  const auto op = context_.selection->op();
  if (!open || open != shown_ || !op) return;
  const auto& tables = *open->analysis->document;
  auto module = tables.boundSymbol(op).module;
  if (!module && context_.selection->origin()) module = tables.boundSymbol(context_.selection->origin()).module;
  const auto path = toQt(tables.text(module));
  // What one clicked stays chosen while its op is below it.
  if (!chosen_.isEmpty() && (path == chosen_ || path.startsWith(chosen_ + QLatin1Char('.')))) return;
  chosen_.clear();
  const auto index = shownIn(*tree_, model_->find(path));
  if (!index.isValid()) return tree_->clearSelection();
  tree_->setCurrentIndex(index);
  tree_->scrollTo(index);
}

}  // namespace retrograd::views
