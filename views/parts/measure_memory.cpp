// The allocator's own peak, measured on the side, as a command and as a button of the memory timeline.
#include "views/docks/memory_dock.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

QString whyNot(const ViewContext& context, const WindowActions& actions) {
  const auto& document = context.controller->document();
  const auto& now = context.execution->now();
  if (!document) return tr("No file is open");
  if (!now.available) return now.unavailableReason;
  if (document->analysis->device.type != Device::Type::cpu)
    return tr("The allocator is watched on the CPU; choose it under Run > Run On");
  return now.running ? actions.stopFirst() : QString();
}

const WindowPart measureMemoryPart(PartOrder::measureMemory, [](MainWindow& window) {
  auto* dock = &window.panel<MemoryDock>();
  auto* action =
      window.actions().add("measure-memory", tr("Measure &Memory"),
                           tr("Runs the model once on the side and shows what LibTorch's allocator hands out"), {});
  window.actions().allowUnless(
      action, [context = window.context(), actions = &window.actions()] { return whyNot(context, *actions); });
  window.runIn(action, dock, &MemoryDock::measure);
  dock->addMeasure(action);
  window.menu("run")->addAction(action);
});

}  // namespace
}  // namespace retrograd::views
