// The panels of numbers of the whole run: the trace as a table, gradient flow.
#include "views/docks/memory_dock.h"
#include "views/docks/values_dock.h"
#include "views/numbers/gradient_flow_dock.h"
#include "views/numbers/trace_table_dock.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const WindowPart table(PartOrder::traceTable, [](MainWindow& window) {
  window.addPanel(new TraceTableDock(window.context()), tr("Trace Table"), Qt::BottomDockWidgetArea,
                  &window.panel<ValuesDock>());
});

const WindowPart flow(PartOrder::gradientFlow, [](MainWindow& window) {
  window.addPanel(new GradientFlowDock(window.context()), tr("Gradient Flow"), Qt::BottomDockWidgetArea,
                  &window.panel<MemoryDock>());
});

}  // namespace
}  // namespace retrograd::views
