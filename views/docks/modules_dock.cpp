#include "views/docks/modules_dock.h"

#include <QContextMenuEvent>
#include <QHeaderView>

#include "views/docks/dock_tree.h"
#include "views/models/format.h"

namespace retrograd::views {

ModulesDock::ModulesDock(ViewContext context, QWidget* parent) : QTreeView(parent), context_(context), model_(new ModulesModel(this)) {
  setObjectName(QStringLiteral("modules"));
  setModel(model_);
  prepareTree(*this, tr("Modules"), true);
  setIndentation(14);
  header()->setStretchLastSection(false);
  header()->setSectionResizeMode(0, QHeaderView::Stretch);
  header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  header()->setSectionResizeMode(2, QHeaderView::ResizeToContents);
  header()->setMinimumSectionSize(24);
  connect(context_.controller, &DocumentController::documentChanged, this, [this] {
    model_->setDocument(context_.controller->document());
    expandToDepth(0);
  });
  connect(context_.selection, &Selection::changed, this, &ModulesDock::follow);
  connect(this, &QTreeView::activated, this, [this](const QModelIndex& index) {
    if (const auto op = opOf(index)) Q_EMIT jumpRequested(op);
  });
}

void ModulesDock::follow() {
  const auto& document = context_.controller->document();
  const auto op = context_.selection->op();
  if (!document || !op || context_.selection->analysis() != document->analysis) return;
  const auto& tables = *document->analysis->document;
  auto module = tables.boundSymbol(op).module;
  if (!module && context_.selection->origin()) module = tables.boundSymbol(context_.selection->origin()).module;
  const auto index = model_->find(toQt(tables.text(module)));
  if (!index.isValid()) return clearSelection();
  setCurrentIndex(index);
  scrollTo(index);
}

void ModulesDock::contextMenuEvent(QContextMenuEvent* event) {
  const auto index = currentIndex();
  if (!index.isValid()) return;
  QMenu menu(this);
  menu.setToolTipsVisible(true);
  const auto op = opOf(index);
  menu.addAction(tr("Go to Its First Op\tEnter"), this, [this, op] { Q_EMIT jumpRequested(op); })->setEnabled(op.valid());
  Q_EMIT menuAboutToShow(&menu, model_->path(index));
  const bool mouse = event->reason() == QContextMenuEvent::Mouse;
  menu.exec(mouse ? event->globalPos() : viewport()->mapToGlobal(visualRect(index).bottomLeft()));
}

}  // namespace retrograd::views
