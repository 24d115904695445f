// The panels that show and have no commands of their own; the size of those of the default layout; groups of
// View > Docks, and keys that lead to the panels used most.
#include <QAbstractItemView>
#include <QApplication>
#include <QStatusBar>
#include <QTimer>

#include "views/docks/breakpoints_dock.h"
#include "views/docks/memory_dock.h"
#include "views/docks/modules_dock.h"
#include "views/docks/optimizer_dock.h"
#include "views/docks/problems_dock.h"
#include "views/docks/values_dock.h"
#include "views/docks/watches_dock.h"
#include "views/docks/why_dock.h"
#include "views/settings/settings.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

constexpr auto bottom = Qt::BottomDockWidgetArea;
constexpr int roomForAll = 1500;  ///< width from which panels below and Why fit beside each other

const WindowPart modules(PartOrder::modules, [](MainWindow& window) {
  window.addPanel(new ModulesDock(window.context()), tr("Modules"), Qt::LeftDockWidgetArea);
});

const WindowPart values(PartOrder::values, [](MainWindow& window) {
  const auto& actions = window.actions();
  window.addPanel(new ValuesDock(window.pinnable("dock-values"), {actions.watch, actions.fill, actions.saveContents}),
                  tr("Values"), bottom);
});

const WindowPart watches(PartOrder::watches, [](MainWindow& window) {
  window.addPanel(new WatchesDock(window.context()), tr("Watches"), bottom, &window.panel<ValuesDock>());
});

const WindowPart optimizer(PartOrder::optimizer, [](MainWindow& window) {
  window.addPanel(new OptimizerDock(window.context()), tr("Optimizer"), bottom, &window.panel<ValuesDock>());
});

const WindowPart memory(PartOrder::memory, [](MainWindow& window) {
  const auto* panel = window.addPanel(new MemoryDock(window.context()), tr("Memory"), bottom);
  auto& strip = window.listings().strip();
  QObject::connect(panel, &MemoryDock::peakKnown, &strip, &RunStrip::setPeak);
  QObject::connect(&strip, &RunStrip::rangeSaid, &window,
                   [&window](const QString& text) { window.statusBar()->showMessage(text); });
});

const WindowPart breakpoints(PartOrder::breakpoints, [](MainWindow& window) {
  window.addPanel(new BreakpointsDock(window.context()), tr("Breakpoints"), bottom, &window.panel<MemoryDock>());
});

const WindowPart problems(PartOrder::problems, [](MainWindow& window) {
  window.addPanel(new ProblemsDock(window.context()), tr("Problems"), bottom, &window.panel<MemoryDock>());
});

void resizePanels(MainWindow& window) {
  const auto dock = [](const Panel& panel) { return panel.dock(); };
  auto* values = dock(window.panel<ValuesDock>());
  const int modules = std::clamp(window.width() * 12 / 100, 166, 192),  // names, and numbers as there is room
      why = window.width() < 1200
                ? 290
                : std::clamp(window.width() * 22 / 100, 364, 420);  // its sentences and calls are read whole
  // In a narrow window the panels below need its whole width; else Why is as high as it is.
  const bool isNarrow = window.width() < roomForAll;
  window.setCorner(Qt::BottomRightCorner, isNarrow ? Qt::BottomDockWidgetArea : Qt::RightDockWidgetArea);
  const int below = std::max(window.width() - (isNarrow ? 0 : why), 2);
  const int memory = std::max(isNarrow ? below / 3 : below * 2 / 5, 350);  // its legend and buttons are whole
  window.resizeDocks({values, dock(window.panel<MemoryDock>())}, {std::max(below - memory, 1), memory}, Qt::Horizontal);
  window.resizeDocks({values}, {std::clamp(window.height() * 3 / 10, 250, 360)}, Qt::Vertical);
  window.resizeDocks({dock(window.panel<ModulesDock>()), dock(window.panel<WhyDock>())}, {modules, why},
                     Qt::Horizontal);
}

// Once more with the first file, in the window as large as it is by then, and once more when what the panels need is
// known: so the default layout is that of the first start.
const WindowPart sizes(PartOrder::panelSizes, [](MainWindow& window) {
  resizePanels(window);
  const auto resizeSoon = [&window] { QTimer::singleShot(0, &window, [&window] { resizePanels(window); }); };
  QObject::connect(&window, &MainWindow::layoutReset, &window, [&window, resizeSoon] {
    resizePanels(window);
    resizeSoon();
  });
  if (kept::arrangement(name(FileKind::model)).of(*window.shared().settings).isEmpty())
    QObject::connect(
        &window, &MainWindow::docksBack, &window,
        [&window, resizeSoon] {
          resizePanels(window);
          resizeSoon();
        },
        Qt::SingleShotConnection);
});

struct PanelGroup {
  const char* title;
  QStringList panels;
};

QList<PanelGroup> panelGroups() {
  return {{QT_TR_NOOP("The Selected Op"), {"why", "values", "source", "references"}},
          {QT_TR_NOOP("The Run"),
           {"memory", "findings", "optimizer", "trace-table", "gradient-flow", "watches", "breakpoints", "checks",
            "compare"}},
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
    menu->addSection(tr(group.title));
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

/// The dock that has the keyboard; null where none has.
QDockWidget* dockWithFocus(const MainWindow& window) {
  for (auto* widget = QApplication::focusWidget(); widget && widget != &window; widget = widget->parentWidget())
    if (auto* dock = qobject_cast<QDockWidget*>(widget)) return dock;
  return nullptr;
}

void addCloseKey(MainWindow& window) {
  auto* action =
      window.actions().add("close-panel", tr("Close This Panel"), tr("Closes the panel that has the keyboard"),
                           QKeySequence(Qt::CTRL | Qt::Key_F4));
  QObject::connect(action, &QAction::triggered, &window, [&window] {
    auto* dock = dockWithFocus(window);
    if (!dock) return window.statusBar()->showMessage(tr("No panel has the keyboard"), 8000);
    dock->close();
    window.listings().active().setFocus();
  });
  window.menu("docks")->addAction(action);
}

const WindowPart panelKeys(PartOrder::panelKeys, [](MainWindow& window) {
  groupDocks(window);
  auto* go = window.menu("go");
  auto* panels = go->addMenu(tr("To Panel"));
  int number = 0;
  for (const char* panel :
       {"modules", "why", "values", "memory", "findings", "source", "trace-table", "gradient-flow"}) {
    auto* dock = dockNamed(window, QLatin1String(panel));
    if (!dock) continue;
    const auto title = dock->accessibleName();
    auto* action = window.actions().add((QByteArray("to-") + panel).constData(), tr("To %1").arg(title),
                                        tr("Opens %1, brings it before others and gives it the keyboard").arg(title),
                                        QKeySequence(Qt::ALT | static_cast<Qt::Key>(Qt::Key_1 + number++)));
    QObject::connect(action, &QAction::triggered, dock, [dock] { leadTo(dock); });
    panels->addAction(action);
  }
  addCloseKey(window);
});

}  // namespace
}  // namespace retrograd::views
