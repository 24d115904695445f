// Running small models on opening, and running ahead when a person wants that.
#include "views/settings/settings.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const WindowPart runOnOpenPart(PartOrder::runOnOpen, [](MainWindow& window) {
  auto* settings = window.shared().settings;
  auto* ahead = &window.context().controller->ahead();
  ahead->setKeptBytes(kept::keptBytes.of(*settings));
  ahead->setRunsOnOpen(kept::runsOnOpen.of(*settings));

  auto* onOpen = window.actions().add("run-on-open", tr("Run Small Mod&els on Opening"),
                                      tr("Runs a model of under two seconds once when it is opened, apart "
                                         "from the position, so that the values of every line are there"),
                                      {});
  onOpen->setCheckable(true);
  onOpen->setChecked(ahead->runsOnOpen());
  QObject::connect(onOpen, &QAction::toggled, &window, [ahead, settings](bool on) {
    kept::runsOnOpen.keep(*settings, on);
    ahead->setRunsOnOpen(on);
  });

  auto* runAhead = window.actions().add(
      "run-ahead", tr("Run A&head"),
      tr("Runs all of the model apart from the position: fills values and columns of every line"), {}, "run-ahead");
  QObject::connect(runAhead, &QAction::triggered, &window, [ahead] { ahead->runAll(); });
  window.actions().allowUnless(runAhead, [&window, ahead] {
    const auto& now = window.context().execution->now();
    const auto& numbers = ahead->numbers();
    return !window.context().controller->document() ? tr("No file is open")
           : !now.available                         ? now.unavailableReason
           : ahead->running()                       ? tr("It runs already")
           : numbers.known() >= numbers.size()
               ? tr("Every op has run once, apart from the position: all numbers are there")
               : QString();
  });
  QObject::connect(ahead, &RunAhead::changed, &window.actions(), &WindowActions::update);

  // Where the numbers of lines are missing, the way to them is next to the listings.
  auto* button = commandButton(runAhead, &window.listings());
  button->setObjectName(QStringLiteral("run-ahead-button"));
  button->setToolButtonStyle(Qt::ToolButtonIconOnly);  // the row has to fit next to the docks of a narrow window
  window.listings().addToSwitches(button);
  const auto offer = [&window, ahead, button] {
    const auto& numbers = ahead->numbers();
    button->setVisible(window.context().controller->document() && window.context().execution->now().available &&
                       !ahead->running() && numbers.known() < numbers.size());
  };
  QObject::connect(ahead, &RunAhead::changed, button, offer);
  QObject::connect(&ahead->numbers(), &RunNumbers::changed, button, offer);
  QObject::connect(window.context().execution, &ExecutionState::changed, button, offer);
  offer();
  window.listings().graphPane().setRunAction(runAhead);
  window.menu("run")->addActions({runAhead, onOpen});
});

}  // namespace
}  // namespace retrograd::views
