// Cross references: the panel, and the steps from one use of a value to the next.
#include "views/docks/memory_dock.h"
#include "views/docks/references_dock.h"
#include "views/window/main_window.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const WindowPart part(PartOrder::references, [](MainWindow& window) {
  const auto& actions = window.actions();
  auto* panel = window.addPanel(new ReferencesDock(window.pinnable("dock-references", {actions.references})),
                                MainWindow::tr("References"), Qt::BottomDockWidgetArea, &window.panel<MemoryDock>());
  panel->stepOnlyTo([&window](BoundSymbolId op) {  // walking uses opens no listing that someone has closed
    const auto& document = *window.context().controller->document()->analysis->document;
    return document.boundSymbol(op).origin.role != Role::none || window.listings().isShown(TraceKind::computation);
  });
  const auto on = [&window, panel](QAction* action, auto run) {
    QObject::connect(action, &QAction::triggered, panel, [&window, panel, run] {
      window.showPanel(*panel);
      run();
    });
  };
  on(actions.references, [] {});
  on(actions.nextUse, [panel] { panel->step(true); });
  on(actions.previousUse, [panel] { panel->step(false); });
});

}  // namespace
}  // namespace retrograd::views
