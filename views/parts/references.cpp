// Cross references: the panel, and the steps from one use of a value to the next; the verbs of a line's menu.
#include "views/docks/memory_dock.h"
#include "views/docks/references_dock.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// "module:h.3.attn", or "op:mm" for an op that is in no module.
QString filterFor(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto of = bound.module || !bound.origin.op ? op : bound.origin.op;
  if (const auto module = toQt(document.text(document.boundSymbol(of).module)); !module.isEmpty())
    return QStringLiteral("module:") + module;
  return QStringLiteral("op:") + shortOpName(document, op).section(QLatin1Char('.'), 1, 1);
}

/// The main verbs, in the menu of each line.
void addVerbs(MainWindow& window) {
  const auto extend = [&window](QMenu* menu) {
    const auto& actions = window.actions();
    const auto op = window.context().selection->op();
    QList<QAction*> verbs{actions.toCursor,
                          window.findChild<QAction*>(QStringLiteral("action-source")),
                          window.findChild<QAction*>(QStringLiteral("action-copy-line-of-python")),
                          actions.references,
                          actions.watch,
                          actions.recompute};
    verbs.removeAll(nullptr);
    const auto entries = menu->actions();  // behind the jump to the origin and the breakpoint
    const auto at = std::ranges::find_if(entries, [](const QAction* action) { return action->isSeparator(); });
    auto* before = at == entries.end() ? nullptr : *at;
    menu->insertActions(before, verbs);
    if (op) {
      const auto words = filterFor(*window.context().controller->document()->analysis->document, op);
      auto* filter = named(new QAction(tr("Filter to This (%1)").arg(words), menu), "filter-to-this");
      QObject::connect(filter, &QAction::triggered, &window,
                       [&window, words] { window.context().filter->apply(words); });
      menu->insertAction(before, filter);
    }
  };
  for (auto kind : traceKinds)
    QObject::connect(&window.listings().listing(kind), &ListingView::menuAboutToShow, &window, extend);
}

const WindowPart referencesPart(PartOrder::references, [](MainWindow& window) {
  const auto& actions = window.actions();
  auto* panel = window.addPanel(new ReferencesDock(window.pinnable("dock-references", {actions.references})),
                                tr("References"), Qt::BottomDockWidgetArea, &window.panel<MemoryDock>());
  panel->stepOnlyTo([&window](BoundSymbolId op) {  // walking uses opens no listing that someone has closed
    const auto& document = *window.context().controller->document()->analysis->document;
    return document.boundSymbol(op).origin.role != Role::none || window.listings().isShown(TraceKind::computation);
  });
  window.runIn(actions.references, panel);
  window.runIn(actions.nextUse, panel, [](ReferencesDock* uses) { uses->step(true); });
  window.runIn(actions.previousUse, panel, [](ReferencesDock* uses) { uses->step(false); });
  addVerbs(window);
});

}  // namespace
}  // namespace retrograd::views
