// View > Compare Traces: the window with two traces side by side, and the way there from a what-if.
#include "views/docks/why_dock.h"
#include "views/window/diff_window.h"
#include "views/window/main_window.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const WindowPart compareTracesPart(PartOrder::compareTraces, [](MainWindow& window) {
  auto* action = window.actions().add(
      "compare-traces", MainWindow::tr("Compare Tr&aces..."),
      MainWindow::tr("Two traces side by side: before and after a pass, under another partition, of another file"),
      QKeySequence(Qt::CTRL | Qt::Key_D));
  window.actions().allowUnless(action, [&window] {
    return window.context().controller->document() ? QString() : MainWindow::tr("No file is open");
  });
  auto* view = window.menu("view");
  view->addSeparator();
  view->addAction(action);
  auto* compared = new DiffWindow(window.context(), &window);
  QObject::connect(action, &QAction::triggered, compared, &DiffWindow::open);
  QObject::connect(compared, &DiffWindow::jumpRequested, &window, [&window](BoundSymbolId op) {
    window.jumpTo(op);
    window.activateWindow();
  });
  QObject::connect(&window.panel<WhyDock>(), &WhyDock::compareRequested, compared, &DiffWindow::compareWith);
});

}  // namespace
}  // namespace retrograd::views
