// The panels by what they are about: groups of View > Docks, and keys that lead to those used most.
#include <QAbstractItemView>

#include "views/window/main_window.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

struct PanelGroup {
  const char* title;
  QStringList panels;
};

QList<PanelGroup> panelGroups() {
  return {{QT_TR_NOOP("The Selected Op"), {"inspector", "why", "values", "source", "references"}},
          {QT_TR_NOOP("The Run"),
           {"memory", "findings", "trace-table", "gradient-flow", "watches", "breakpoints", "checks", "compare"}},
          {QT_TR_NOOP("The Model"), {"modules", "problems", "notes", "stages", "schedule", "stage-check"}},
          {QT_TR_NOOP("A Job"), {"job", "save-plan", "recorded", "recorded-memory"}}};
}

QDockWidget* dockNamed(const MainWindow& window, const QString& panel) {
  return window.findChild<QDockWidget*>(QStringLiteral("dock-") + panel);
}

/// Those that nobody gave a group come at the end.
void groupDocks(MainWindow& window) {
  auto* menu = window.menu("docks");
  auto rest = menu->actions();
  for (auto* action : rest) menu->removeAction(action);
  for (const auto& group : panelGroups()) {
    menu->addSection(MainWindow::tr(group.title));
    for (const auto& panel : group.panels)
      if (auto* dock = dockNamed(window, panel)) {
        menu->addAction(dock->toggleViewAction());
        rest.removeOne(dock->toggleViewAction());
      }
  }
  menu->addSeparator();
  menu->addActions(rest);
}

/// Opens it, brings it before others, and gives its list the keyboard.
void leadTo(QDockWidget* dock) {
  dock->show();
  dock->raise();
  for (auto* list : dock->findChildren<QAbstractItemView*>())
    if (list->isVisible() && list->focusPolicy() != Qt::NoFocus) return list->setFocus();
  dock->widget()->setFocus();
}

const WindowPart panelKeys(PartOrder::panelKeys, [](MainWindow& window) {
  groupDocks(window);
  auto* go = window.menu("go");
  auto* panels = go->addMenu(MainWindow::tr("To Panel"));
  int number = 0;
  for (const char* panel :
       {"modules", "inspector", "why", "values", "memory", "findings", "source", "trace-table", "gradient-flow"}) {
    auto* dock = dockNamed(window, QLatin1String(panel));
    if (!dock) continue;
    const auto title = dock->accessibleName();
    auto* action =
        window.actions().add((QByteArray("to-") + panel).constData(), MainWindow::tr("To %1").arg(title),
                             MainWindow::tr("Opens %1, brings it before others and gives it the keyboard").arg(title),
                             QKeySequence(Qt::ALT | static_cast<Qt::Key>(Qt::Key_1 + number++)));
    QObject::connect(action, &QAction::triggered, dock, [dock] { leadTo(dock); });
    panels->addAction(action);
  }
});

}  // namespace
}  // namespace retrograd::views
