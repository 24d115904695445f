// Pipeline stages, run in sequence, next to the whole model: the command, and the dock of what it found.
#include "views/docks/stage_check_dock.h"
#include "views/docks/values_dock.h"
#include "views/stages/stage_plan.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

QString whyNot(const ViewContext& context, const StageCheckDock& dock) {
  const auto& document = context.controller->document();
  if (!document) return tr("No file is open");
  if (!document->noRunReason.isEmpty()) return document->noRunReason;
  if (dock.checking()) return tr("The stages are being checked");
  if (context.stages->busy()) return tr("The model is being cut");
  if (!context.stages->cut() && !context.stages->problem().isEmpty())
    return tr("The cuts asked for are refused: see Stages");
  return context.stages->hasMarks() ? QString() : tr("The model is not cut: cut it first");
}

const WindowPart stageCheckPart(PartOrder::stageCheck, [](MainWindow& window) {
  const auto& context = window.context();
  auto& actions = window.actions();
  auto* check = actions.add("check-stages", tr("Chec&k Stages"),
                            tr("Runs the stages in sequence and compares every gradient with the whole model's"), {});
  auto* cancel =
      actions.add("cancel-check-stages", tr("Stop the Check of Stages"), tr("Ends the check of the stages"), {});
  check->setIconText(tr("Check"));
  cancel->setIconText(tr("Stop"));
  auto* dock = window.addPanel(new StageCheckDock(context, check, cancel), tr("Stage Check"), Qt::BottomDockWidgetArea,
                               &window.panel<ValuesDock>());
  actions.allowUnless(check, [context, dock] { return whyNot(context, *dock); });
  actions.allowUnless(cancel, [dock] { return dock->checking() ? QString() : tr("The stages are not being checked"); });
  QObject::connect(dock, &StageCheckDock::changed, &actions, &WindowActions::update);
  window.runIn(check, dock, &StageCheckDock::check);
  QObject::connect(cancel, &QAction::triggered, dock, &StageCheckDock::cancel);
  window.menu("pipeline", tr("Pi&peline"))->addActions({check, cancel});
});

}  // namespace
}  // namespace retrograd::views
