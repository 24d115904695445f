// Pipeline stages, run in sequence, next to the whole model: the command, and the dock of what it found.
#include "views/docks/stage_check_dock.h"
#include "views/docks/values_dock.h"
#include "views/stages/stage_plan.h"
#include "views/window/main_window.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

QString whyNot(const ViewContext& context, const StageCheckDock& dock) {
  const auto& document = context.controller->document();
  if (!document) return QObject::tr("No file is open");
  if (!document->noRunReason.isEmpty()) return document->noRunReason;
  if (dock.checking()) return QObject::tr("The stages are being checked");
  if (context.stages->busy()) return QObject::tr("The model is being cut");
  if (!context.stages->cut() && !context.stages->problem().isEmpty())
    return QObject::tr("The cuts asked for are refused: see Stages");
  return context.stages->hasMarks() ? QString() : QObject::tr("The model is in one piece: cut it first");
}

const WindowPart stageCheckPart(PartOrder::stageCheck, [](MainWindow& window) {
  const auto& context = window.context();
  auto& actions = window.actions();
  auto* check =
      actions.add("check-stages", QObject::tr("Chec&k Stages"),
                  QObject::tr("Runs the stages in sequence and compares every gradient with the whole model's"), {});
  auto* cancel = actions.add("cancel-check-stages", QObject::tr("Stop the Check of Stages"),
                             QObject::tr("Ends the check of the stages"), {});
  check->setIconText(QObject::tr("Check"));
  cancel->setIconText(QObject::tr("Stop"));
  auto* dock = window.addPanel(new StageCheckDock(context, check, cancel), QObject::tr("Stage Check"),
                               Qt::BottomDockWidgetArea, &window.panel<ValuesDock>());
  actions.allowUnless(check, [context, dock] { return whyNot(context, *dock); });
  actions.allowUnless(
      cancel, [dock] { return dock->checking() ? QString() : QObject::tr("The stages are not being checked"); });
  QObject::connect(dock, &StageCheckDock::changed, &actions, &WindowActions::update);
  QObject::connect(check, &QAction::triggered, dock, [&window, dock] {
    window.showPanel(*dock);
    dock->check();
  });
  QObject::connect(cancel, &QAction::triggered, dock, &StageCheckDock::cancel);
  window.menu("pipeline", QObject::tr("Pi&peline"))->addActions({check, cancel});
});

}  // namespace
}  // namespace retrograd::views
