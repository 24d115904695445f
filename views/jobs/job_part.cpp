// The panel for what a log of torch.compile holds.
#include "views/docks/memory_dock.h"
#include "views/jobs/job_dock.h"
#include "views/window/main_window.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const WindowPart part(PartOrder::job, [](MainWindow& window) {
  window.addPanel(new JobDock(window.context()), MainWindow::tr("Job"), Qt::BottomDockWidgetArea, &window.panel<MemoryDock>());
});

}  // namespace
}  // namespace retrograd::views
