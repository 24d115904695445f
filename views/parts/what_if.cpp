// What if something else were saved for the backward: choices for the whole model. What is tried shows in Why, its
// curve in Memory.
#include "views/docks/memory_dock.h"
#include "views/docks/why_dock.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const WindowPart whatIfPart(PartOrder::whatIf, [](MainWindow& window) {
  auto& actions = window.actions();
  auto* why = &window.panel<WhyDock>();
  auto* blocks = actions.add(
      "checkpoint-blocks", tr("Checkpoint &Each Block"),
      tr("What if each layer were recomputed from its input, as torch.utils.checkpoint around each does it?"), {});
  auto* budget = actions.add("what-if-budget", tr("Save Less"),
                             tr("What if less were saved? A slider goes from least memory to least time"), {});
  window.runIn(blocks, why, &WhyDock::checkpointBlocks);
  window.runIn(budget, why, &WhyDock::tryBudgets);
  const auto closed = [&window] {
    const auto& document = window.context().controller->document();
    return !document                        ? tr("No file is open")
           : !document->analysis->derived() ? tr("There is no forward and backward: see Problems")
                                            : QString();
  };
  actions.allowUnless(budget, closed);
  actions.allowUnless(blocks, closed);
  QObject::connect(why, &WhyDock::triedChanged, &window.panel<MemoryDock>(), &MemoryDock::showTried);
  auto* menu = window.menu("value");
  const auto entries = menu->actions();
  const auto after = entries.indexOf(actions.save);
  menu->insertActions(entries.value(after + 1), {blocks, budget});
});

}  // namespace
}  // namespace retrograd::views
