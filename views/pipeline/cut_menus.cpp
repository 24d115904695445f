#include "views/docks/modules_dock.h"
#include "views/models/tree_model.h"
#include "views/stages/stage_plan.h"
#include "views/text/format.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// The modules that an op is in, innermost first; of a derived op those of its origin where it has none itself.
std::vector<std::string> modulesAround(const Document& tables, BoundSymbolId op) {
  std::vector<std::string> all;
  if (!op) return all;
  auto module = tables.boundSymbol(op).module;
  if (const auto origin = OriginLinks::origin(tables, op); !module && origin)
    module = tables.boundSymbol(origin).module;
  for (std::string path(tables.text(module)); !path.empty();
       path.resize(path.rfind('.') == std::string::npos ? 0 : path.rfind('.')))
    all.push_back(path);
  return all;
}

void addCuts(QMenu* menu, StagePlan* plan, const std::string& module) {
  for (const bool after : {false, true}) {
    auto* action = menu->addAction(after ? tr("Cut After %1").arg(toQt(module)) : tr("Cut Before %1").arg(toQt(module)),
                                   plan, [plan, module, after] { plan->cutAtModule(module, after); });
    const auto reason = plan->noCutReason(module, after);
    action->setEnabled(reason.isEmpty());
    action->setToolTip(reason.isEmpty() ? tr("A stage begins at each call of the module") : reason);
    action->setStatusTip(action->toolTip());
  }
}

/// "Before" and "after" for each module that the selected op is in.
void fill(QMenu* menu, const ViewContext& context) {
  menu->clear();
  const auto& document = context.controller->document();
  const auto modules =
      document ? modulesAround(*document->analysis->document, context.selection->op()) : std::vector<std::string>();
  for (const auto& module : modules) {
    if (!menu->isEmpty()) menu->addSeparator();
    addCuts(menu, context.stages, module);
  }
  if (modules.empty())
    menu->addAction(document ? tr("Select an op that is in a module") : tr("No file is open"))->setEnabled(false);
}

QMenu* moduleMenu(const ViewContext& context, QWidget* parent) {
  auto* menu = new QMenu(tr("Cut at Mo&dule"), parent);
  menu->setToolTipsVisible(true);
  QObject::connect(menu, &QMenu::aboutToShow, menu, [menu, context] { fill(menu, context); });
  return menu;
}

/// Cutting where one is: in the menus of listings, graph and modules, and at the modules of the selected op in the menu
/// bar.
void install(MainWindow& window) {
  const auto& context = window.context();
  QList<QAction*> cuts;
  for (const char* name : {"action-cut-before", "action-cut-after", "action-remove-cut"})
    cuts << window.findChild<QAction*>(QLatin1String(name));
  window.menu("pipeline")->insertMenu(cuts.last(), moduleMenu(context, &window));
  const auto extend = [context, cuts](QMenu* menu) {
    menu->addSeparator();
    menu->addActions(cuts);
    menu->insertMenu(cuts.last(), moduleMenu(context, menu));
  };
  for (auto kind : traceKinds)
    QObject::connect(&window.listings().listing(kind), &ListingView::menuAboutToShow, &window, extend);
  QObject::connect(&window.listings().graph(), &GraphView::menuAboutToShow, &window, extend);
  QObject::connect(&window.panel<ModulesDock>(), &Panel::menuAboutToShow, &window,
                   [context](QMenu* menu, const QModelIndex& row) {
                     if (!row.isValid()) return;
                     menu->addSeparator();
                     addCuts(menu, context.stages, row.data(moduleRole).toString().toStdString());
                   });
}

const WindowPart cutMenusPart(PartOrder::cutMenus, install);

}  // namespace
}  // namespace retrograd::views
