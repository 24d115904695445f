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
  auto* undo = actions.add("undo-cut", tr("&Undo"),
                           tr("Takes back the last adopted choice of what is saved, else the last change of the cuts"),
                           QKeySequence::Undo);
  auto* redo = actions.add("redo-cut", tr("R&edo Cut"), tr("Makes the change of the cuts again that was taken back"),
                           QKeySequence::Redo);
  auto* clear = actions.add("remove-cuts", tr("Remove A&ll Cuts"), tr("The file's own markers alone, as at first"), {});
  auto* measure = actions.add("measure-stages", tr("&Measure Times"),
                              tr("Runs forward and backward twice and shows the time of each stage"), {});
  auto* show = actions.add("stages", tr("&Stages"), tr("Shows the model in pipeline stages, and cuts it"),
                           QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_K));
  undo->setIconText(tr("Undo"));
  redo->setIconText(tr("Redo"));
  measure->setIconText(tr("Measure"));

  auto* dock = window.addPanel(new StagesDock(context, {undo, redo, measure}), tr("Stages"), Qt::BottomDockWidgetArea,
                               &window.panel<MemoryDock>());

  actions.allowUnless(before, [=] { return plan->noCutReason(selected(), false); });
  actions.allowUnless(after, [=] { return plan->noCutReason(selected(), true); });
  actions.allowUnless(remove, [=] { return plan->noRemoveReason(selected()); });
  auto* why = &window.panel<WhyDock>();
  actions.allowUnless(undo, [=] {
    return why->canUndo() || plan->history().canUndo() ? QString()
                                                       : tr("No adopted choice and no change of the cuts to take back");
  });
  QObject::connect(why, &WhyDock::canUndoChanged, &actions, &WindowActions::update);
  why->setUndo(undo);
  actions.allowUnless(
      redo, [=] { return plan->history().canRedo() ? QString() : tr("No change of the cuts was taken back"); });
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
  on(undo, [plan, why] { why->canUndo() ? why->undo() : plan->undo(); });
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
  menu->addSeparator();
  menu->addActions({undo, redo});
}

const WindowPart pipelinePart(PartOrder::stages, install);

}  // namespace
}  // namespace retrograd::views
