// What is asked of values and gradients: Why, Findings, Checks and Compare with their commands.
#include <QStatusBar>
#include <utility>

#include "core/base/error.h"
#include "core/formats/folder/folder.h"
#include "views/docks/checks_dock.h"
#include "views/docks/compare_dock.h"
#include "views/docks/findings_dock.h"
#include "views/docks/inspector_dock.h"
#include "views/docks/memory_dock.h"
#include "views/docks/modules_dock.h"
#include "views/docks/values_dock.h"
#include "views/docks/why_dock.h"
#include "views/findings/finding_sources.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// Where to walk from: the selected value if it is known to be bad, else another bad value of the selected op, else
/// any.
ValueId badStart(const ViewContext& context) {
  const auto& document = context.controller->document();
  if (!document) return {};
  const auto& numbers = context.controller->ahead().numbers();
  const auto isKnownBad = [&](ValueId value) {
    const auto* s = value ? numbers.statistics(value) : nullptr;
    return context.execution->badValues().contains(value) || (s && document->intended.isFault(value, *s));
  };
  if (isKnownBad(context.selection->value())) return context.selection->value();
  ValueId start;
  if (context.selection->op())
    for (const auto& row : valueRows(*document->analysis->document, context.selection->op()))
      if (isKnownBad(row.value)) start = row.value;
  return start;
}

/// Whether a path is a recorded folder of a step that went wrong.
bool isFailure(const std::string& path) {
  try {
    const auto choice = chooseGraph(path);
    return choice && choice->atRoot;
  } catch (const Error&) {
    return false;
  }
}

const WindowPart why(PartOrder::why, [](MainWindow& window) {
  const auto& actions = window.actions();
  const auto context = window.pinnable("dock-why", {actions.recompute, actions.save});
  auto* inspector = window.addPart(new InspectorDock(context));
  auto* panel = window.addPanel(new WhyDock(context, actions.recompute, actions.save, inspector), tr("Why"),
                                Qt::RightDockWidgetArea);
  QObject::connect(inspector, &InspectorDock::moduleChosen, &window, [&window] {
    window.showPanel(window.panel<ModulesDock>());
    window.panel<ModulesDock>().takeFocus();
  });
  window.runIn(actions.recompute, panel, &WhyDock::recompute);
  window.runIn(actions.save, panel, &WhyDock::save);
  QObject::connect(panel, &WhyDock::sourceWanted, &window, [&window] { window.showPanel(QStringLiteral("source")); });
  QObject::connect(panel, &WhyDock::nothingGained, &window.actions(), &WindowActions::noteNoGain);
  QObject::connect(panel, &WhyDock::failed, &window,
                   [&window](const QString& message) { window.messages().show(MessageBar::Kind::warning, message); });
});

const WindowPart findings(PartOrder::findings, [](MainWindow& window) {
  const auto& actions = window.actions();
  auto* panel = window.addPanel(new FindingsDock(window.context(), actions.walkToRoot, actions.checkRun),
                                tr("Findings"), Qt::BottomDockWidgetArea, &window.panel<MemoryDock>());
  window.runIn(actions.walkToRoot, panel, [context = window.context()](FindingsDock* panel) {
    if (context.controller->document()) panel->walk(badStart(context));
  });
  window.runIn(actions.checkRun, panel, &FindingsDock::check);
  new FindingSources(window.context(), panel);
  QObject::connect(panel, &FindingsDock::commandChosen, &window, [&window](const QString& command) {
    if (auto* action = window.findChild<QAction*>(QStringLiteral("action-") + command))
      return action->isEnabled() ? action->trigger() : window.statusBar()->showMessage(action->statusTip(), 8000);
    window.showPanel(command);
  });
  QObject::connect(
      window.context().controller, &DocumentController::documentChanged, panel,
      [&window, panel, last = std::string()]() mutable {
        const auto document = window.context().controller->document();
        const auto path = document ? document->request.path : std::string();
        if (std::exchange(last, path) == path || !document || !document->analysis->derived() || !isFailure(path))
          return;
        window.showPanel(*panel);
        panel->walk({});
      });
});

const WindowPart checks(PartOrder::checks, [](MainWindow& window) {
  const auto& actions = window.actions();
  auto* panel = window.addPanel(new ChecksDock(window.context(), actions.checkGradient, actions.terms), tr("Checks"),
                                Qt::BottomDockWidgetArea, &window.panel<ValuesDock>());
  window.runIn(actions.checkGradient, panel, &ChecksDock::check);
  window.runIn(actions.terms, panel, &ChecksDock::terms);
});

const WindowPart compare(PartOrder::compare, [](MainWindow& window) {
  auto* action = window.actions().compare;
  auto* panel = window.addPanel(new CompareDock(window.context(), action), tr("Compare"), Qt::BottomDockWidgetArea,
                                &window.panel<ValuesDock>());
  window.runIn(action, panel, &CompareDock::compare);
});

}  // namespace
}  // namespace retrograd::views
