#include "views/docks/inspector_dock.h"

#include <QHeaderView>

#include "views/docks/dock_tree.h"

namespace retrograd::views {

InspectorDock::InspectorDock(ViewContext context, QWidget* parent)
    : QTreeView(parent), context_(context), model_(new InspectorModel(this)) {
  setObjectName(QStringLiteral("inspector"));
  setModel(model_);
  prepareTree(*this, tr("Inspector of the selected op"), false);
  setWordWrap(true);
  setIndentation(14);
  header()->setStretchLastSection(true);
  header()->resizeSection(0, 110);
  connect(context_.selection, &Selection::changed, this, &InspectorDock::refresh);
  connect(context_.notes, &NoteBook::changed, this, &InspectorDock::refresh);
  connect(this, &QTreeView::activated, this, [this](const QModelIndex& index) {
    const auto op = opOf(index);
    if (op && op != context_.selection->op()) Q_EMIT jumpRequested(op);
  });
  connect(this, &QTreeView::clicked, this, [this](const QModelIndex& index) {
    if (const int value = index.data(valueRole).toInt(); value >= 0) context_.selection->selectValue(ValueId(value));
  });
}

void InspectorDock::refresh() {
  if (!isVisible()) return;
  const auto& document = context_.controller->document();
  const bool same = document && context_.selection->analysis() == document->analysis;
  model_->show(same ? document : nullptr, context_.selection->op(), context_.notes);
  for (int row = 0; row < model_->rowCount(); ++row) expand(model_->index(row, 0));
}

void InspectorDock::showEvent(QShowEvent* event) {
  QTreeView::showEvent(event);
  refresh();
}

}  // namespace retrograd::views
