#include "views/docks/modules_dock.h"

#include <QAction>
#include <QHeaderView>
#include <array>

#include "views/text/format.h"
#include "views/widgets/command_key.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

constexpr std::array numbers{ModulesModel::forward, ModulesModel::backward};

}  // namespace

ModulesDock::ModulesDock(ViewContext context, QWidget* parent)
    : Panel(context, "modules", parent), model_(new ModulesModel(this)), tree_(new QTreeView(this)) {
  tree_->setObjectName(QStringLiteral("modules"));
  tree_->setModel(model_);
  new SortedRows(*tree_);
  prepareTree(*tree_, tr("Modules"), true);
  tree_->setIndentation(12);
  auto* header = tree_->header();
  header->setStretchLastSection(false);
  for (int column : numbers) header->setSectionResizeMode(column, QHeaderView::Fixed);
  header->setMinimumSectionSize(24);
  fitNumbers();
  new NamesFirst(tree_);
  fillWith(tree_);
  setList(tree_);
  connect(context_.selection, &Selection::changed, this, &ModulesDock::invalidate);
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
  // By hand: Qt would keep room for the arrow of sorting, which the names need.
  for (const auto column : numbers) {
    const auto digits = QString::number(model_->most(column)).size() + 1;
    const int width = std::max(tree_->header()->fontMetrics().horizontalAdvance(QStringLiteral("0000")),
                               tree_->fontMetrics().horizontalAdvance(QString(digits, QLatin1Char('0'))));
    tree_->header()->resizeSection(column, width + 4);
  }
}

void ModulesDock::refresh() {
  const auto open = document();
  if (!open) return forget();
  if (open == shown_) return follow();
  forget();
  list(open);
}

void ModulesDock::list(const std::shared_ptr<const OpenDocument>& document) {
  shown_ = document;  // what comes meanwhile doesn't begin again
  job_.start([this, document](const Progress&) -> PoolJob::Deliver {
    auto modules = std::make_shared<ModulesModel::Modules>(ModulesModel::modulesOf(*document));
    return [this, modules] {
      model_->show(std::move(*modules));
      fitNumbers();
      tree_->expandToDepth(0);
      follow();
    };
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
