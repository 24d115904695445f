#include "views/docks/memory_dock.h"
#include "views/docks/stages_dock.h"
#include "views/docks/why_dock.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// The commands of the pipeline with their menu, and the dock of its stages.
void install(MainWindow& window) {
  const auto& context = window.context();
  auto* plan = context.stages;
  auto& actions = window.actions();
  const auto selected = [context] { return context.selection->op(); };
  auto* before = actions.add("cut-before", tr("Cut &Before Here"), tr("Lets a pipeline stage begin at the selected op"),
                             QKeySequence(Qt::Key_K));
  auto* after = actions.add("cut-after", tr("Cut &After Here"), tr("Lets a pipeline stage end with the selected op"),
                            QKeySequence(Qt::SHIFT | Qt::Key_K));
  auto* remove =
      actions.add("remove-cut", tr("&Remove Cut"), tr("Joins the stage of the selected op to the one before"),
                  QKeySequence(Qt::CTRL | Qt::Key_K));
  auto *undo = actions.undo, *redo = actions.redo;
  auto* clear = actions.add("remove-cuts", tr("Remove A&ll Cuts"), tr("The file's own markers alone, as at first"), {});
  auto* measure = actions.add("measure-stages", tr("&Measure Times"),
                              tr("Runs forward and backward twice and shows the time of each stage"), {});
  auto* show = actions.add("stages", tr("&Stages"), tr("Shows the model in pipeline stages, and cuts it"),
                           QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_K));
  measure->setIconText(tr("Measure"));

  auto* dock = window.addPanel(new StagesDock(context, {undo, redo, measure}), tr("Stages"), Qt::BottomDockWidgetArea,
                               &window.panel<MemoryDock>());

  actions.allowUnless(before, [=] { return plan->noCutReason(selected(), false); });
  actions.allowUnless(after, [=] { return plan->noCutReason(selected(), true); });
  actions.allowUnless(remove, [=] { return plan->noRemoveReason(selected()); });
  window.panel<WhyDock>().setUndo(undo);
  actions.allowUnless(clear, [=] { return plan->isClear() ? tr("No cut was asked for") : QString(); });
  actions.allowUnless(measure, [=] {
    const auto& document = context.controller->document();
    if (!document) return tr("No file is open");
    if (!document->noRunReason.isEmpty()) return document->noRunReason;
    return plan->measuring() ? tr("The ops are being measured") : QString();
  });
  actions.allowUnless(show, [context] { return context.controller->document() ? QString() : tr("No file is open"); });
  QObject::connect(plan, &StagePlan::changed, &actions, &WindowActions::update);

  const auto on = [&window](QAction* action, auto&& run) {
    QObject::connect(action, &QAction::triggered, &window, run);
  };
  on(before, [=] { plan->cutBefore(selected()); });
  on(after, [=] { plan->cutAfter(selected()); });
  on(remove, [=] { plan->removeCut(selected()); });
  on(undo, [plan] { plan->undo(); });
  on(redo, [plan] { plan->redo(); });
  on(clear, [plan] { plan->clear(); });
  on(measure, [plan] { plan->measure(); });
  window.runIn(show, dock);
  // A refusal in a listing is shown over the listings; the dock, where it shows, has it too.
  QObject::connect(plan, &StagePlan::changed, &window, [&window, plan, dock] {
    if (!plan->problem().isEmpty() && !dock->inSight())
      window.messages().show(MessageBar::Kind::warning, tr("Not cut: %1").arg(plan->problem()));
  });

  auto* menu = window.menu("pipeline", tr("Pi&peline"));
  menu->addActions({show, measure});
  menu->addSeparator();
  menu->addActions({before, after, remove, clear});
}

const WindowPart pipelinePart(PartOrder::stages, install);

}  // namespace
}  // namespace retrograd::views
