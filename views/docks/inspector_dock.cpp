#include "views/docks/inspector_dock.h"

#include <QHeaderView>

#include "views/widgets/dock_tree.h"
#include "views/widgets/read_by_enter.h"

namespace retrograd::views {
namespace {

const QString collapsedKey = QStringLiteral("collapsed");
const QString widestLabel = QStringLiteral("gradient of");  // of most: the values get the room

}  // namespace

InspectorDock::InspectorDock(ViewContext context, QWidget* parent)
    : Panel(context, "inspector", parent), model_(new InspectorModel(this)), tree_(new QTreeView(this)) {
  prepareTree(*tree_, model_, "inspector", tr("Inspector of the selected op"), {.wraps = true});
  tree_->setIndentation(10);
  tree_->setTextElideMode(Qt::ElideMiddle);  // shapes and line numbers are at the ends
  tree_->header()->resizeSection(0, 2 * tree_->indentation() + tree_->fontMetrics().horizontalAdvance(widestLabel) + 8);
  fillWith(tree_);
  setList(tree_);
  new ReadByEnter(tree_);
  connect(context_.selection, &Selection::changed, this, &InspectorDock::invalidate);
  connect(context_.notes, &NoteBook::changed, this, &InspectorDock::invalidate);
  connect(tree_, &QTreeView::clicked, this, [this](const QModelIndex& index) {
    if (const int value = index.data(valueRole).toInt(); value >= 0) context_.selection->selectValue(ValueId(value));
  });
  connect(tree_, &QTreeView::collapsed, this,
          [this](const QModelIndex& section) { collapsed_.insert(section.data().toString()); });
  connect(tree_, &QTreeView::expanded, this,
          [this](const QModelIndex& section) { collapsed_.remove(section.data().toString()); });
}

void InspectorDock::refresh() {
  model_->show(document(), context_.selection->op(), context_.notes);
  expandSections();
}

void InspectorDock::expandSections() {
  for (int row = 0; row < model_->rowCount(); ++row)
    if (const auto section = model_->index(row, 0); !collapsed_.contains(section.data().toString()))
      tree_->expand(section);
}

void InspectorDock::activate(const QModelIndex& row) {
  if (const auto heading = row.siblingAtColumn(0); !row.parent().isValid())
    return tree_->setExpanded(heading, !tree_->isExpanded(heading));
  if (const auto module = row.data(moduleRole).toString(); !module.isEmpty()) return Q_EMIT moduleChosen(module);
  if (const auto frame = row.data(frameRole); frame.isValid() && frame.toInt() >= 0)
    return Q_EMIT frameChosen(frame.toInt());
  const auto op = opOf(row);
  if (op && op != context_.selection->op()) return Panel::activate(row);
  showWholeText(*tree_, row);
}

QVariantMap InspectorDock::saveState() const {
  auto state = Panel::saveState();
  state[collapsedKey] = QStringList(collapsed_.values());
  return state;
}

void InspectorDock::restoreState(const QVariantMap& state) {
  Panel::restoreState(state);
  const auto names = state.value(collapsedKey).toStringList();
  collapsed_ = QSet<QString>(names.begin(), names.end());
  expandSections();
}

}  // namespace retrograd::views
