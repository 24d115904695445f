// The furniture of the main window: menus, tool bar, docks, status bar, layout.
#include <QDockWidget>
#include <QMenuBar>
#include <QStatusBar>
#include <QToolBar>

#include "views/docks/breakpoints_dock.h"
#include "views/docks/checks_dock.h"
#include "views/docks/compare_dock.h"
#include "views/docks/findings_dock.h"
#include "views/docks/inspector_dock.h"
#include "views/docks/memory_dock.h"
#include "views/docks/modules_dock.h"
#include "views/docks/problems_dock.h"
#include "views/docks/references_dock.h"
#include "views/docks/values_dock.h"
#include "views/docks/watches_dock.h"
#include "views/docks/why_dock.h"
#include "views/main_window.h"
#include "views/session/pinned_selection.h"

namespace retrograd::views {
namespace {

constexpr int layoutVersion = 6;
constexpr quint8 graphBit = 1 << 4;   // beside one bit for each trace
constexpr std::array kinds{TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward};

QMenu* withTips(QMenu* menu) {
  menu->setToolTipsVisible(true);
  return menu;
}

}  // namespace

QDockWidget* MainWindow::placeDock(QWidget* content, const QString& title, const char* name, Qt::DockWidgetArea area, const char* behind) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(QLatin1String(name));
  dock->setAccessibleName(title);
  dock->setWidget(content);
  addDockWidget(area, dock);
  if (auto* front = behind ? findChild<QDockWidget*>(QLatin1String(behind)) : nullptr) {
    tabifyDockWidget(front, dock);
    front->raise();
  }
  docks_.append(dock);
  if (auto* list = menus_.value("docks")) list->addAction(dock->toggleViewAction());
  return dock;
}

ViewContext MainWindow::pinnable(const char* dock, const QList<QAction*>& releasing) {
  auto* selection = new PinnedSelection(&selection_, controller_, this);
  selection->setObjectName(QLatin1String(dock));
  for (const auto* action : releasing) connect(action, &QAction::triggered, selection, [selection] { selection->setPinned(false); });
  auto context = context_;
  context.selection = selection;
  return context;
}

QMenu* MainWindow::menu(const char* name, const QString& title) {
  auto*& found = menus_[name];
  if (!found) {
    found = withTips(new QMenu(title, this));
    auto* help = menus_.value("help");
    menuBar()->insertMenu(help ? help->menuAction() : nullptr, found);
  }
  return found;
}

void MainWindow::makeDocks() {
  auto& a = *actions_;
  constexpr auto bottom = Qt::BottomDockWidgetArea, right = Qt::RightDockWidgetArea;
  setCorner(Qt::BottomRightCorner, right);
  addDock(new ModulesDock(context_), tr("Modules"), "dock-modules", Qt::LeftDockWidgetArea);
  addDock(new InspectorDock(pinnable("dock-inspector")), tr("Inspector"), "dock-inspector", right);
  addDock(why_ = new WhyDock(pinnable("dock-why", {a.recompute, a.save}), a.recompute, a.save), tr("Why"), "dock-why", right);
  addDock(new ValuesDock(pinnable("dock-values"), {a.watch, a.fill, a.saveContents}), tr("Values"), "dock-values", bottom);
  addDock(new WatchesDock(context_), tr("Watches"), "dock-watches", bottom);
  addDock(new MemoryDock(context_), tr("Memory"), "dock-memory", bottom);
  addDock(new BreakpointsDock(context_), tr("Breakpoints"), "dock-breakpoints", bottom);
  addDock(findings_ = new FindingsDock(context_, a.walkToRoot, a.checkRun), tr("Findings"), "dock-findings", bottom);
  addDock(references_ = new ReferencesDock(pinnable("dock-references", {a.references})), tr("References"), "dock-references", bottom);
  addDock(checks_ = new ChecksDock(context_, a.checkGradient, a.terms), tr("Checks"), "dock-checks", bottom);
  addDock(compare_ = new CompareDock(context_, a.compare), tr("Compare"), "dock-compare", bottom);
  addDock(new ProblemsDock(context_), tr("Problems"), "dock-problems", bottom);
}

void MainWindow::arrangeDocks() {
  const auto dock = [this](const char* name) { return findChild<QDockWidget*>(QLatin1String(name)); };
  const auto stack = [&](std::initializer_list<const char*> names) {
    for (auto name = names.begin(); name + 1 != names.end(); ++name) tabifyDockWidget(dock(name[0]), dock(name[1]));
    dock(*names.begin())->raise();
  };
  stack({"dock-inspector", "dock-why"});
  stack({"dock-values", "dock-watches", "dock-checks", "dock-compare"});
  stack({"dock-memory", "dock-breakpoints", "dock-findings", "dock-references", "dock-problems"});
  resizeDocks({dock("dock-modules"), dock("dock-inspector")}, {180, 340}, Qt::Horizontal);
  resizeDocks({dock("dock-values"), dock("dock-memory")}, {720, 540}, Qt::Horizontal);
  resizeDocks({dock("dock-values")}, {280}, Qt::Vertical);
}

void MainWindow::makeMenus() {
  auto& a = *actions_;
  auto* file = menu("file", tr("&File"));
  file->addActions({a.open, a.openWindow});
  file->addMenu(recent_);
  file->addActions({a.reload, a.inputs});
  file->addSeparator();
  file->addActions({a.close, a.quit});

  auto* view = menu("view", tr("&View"));
  for (auto kind : kinds) {
    auto* toggle = listings_->toggleAction(kind);
    toggle->setShortcut(kind == TraceKind::computation
                            ? QKeySequence(Qt::Key_C)
                            : QKeySequence(Qt::CTRL | static_cast<Qt::Key>(Qt::Key_1 + static_cast<int>(kind) - 1)));
    addAction(toggle);
    view->addAction(toggle);
  }
  listings_->graphAction()->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_4));
  addAction(listings_->graphAction());
  view->addAction(listings_->graphAction());
  listings_->refreshToggles();
  view->addSeparator();
  auto* grouping = withTips(view->addMenu(tr("&Fold")));
  grouping->addActions(a.grouping->actions());
  grouping->addSeparator();
  grouping->addActions({a.foldAll, a.unfoldAll});
  view->addAction(a.shortNames);
  view->addSeparator();
  auto* docks = menus_["docks"] = withTips(view->addMenu(tr("&Docks")));
  for (auto* dock : docks_) docks->addAction(dock->toggleViewAction());
  withTips(view->addMenu(tr("&Theme")))->addActions(a.themes->actions());

  auto* go = menu("go", tr("&Go"));
  go->addActions({a.goTo, a.origin, a.back, a.forward, a.toExecution});
  go->addSeparator();
  go->addActions({a.references, a.nextUse, a.previousUse});
  go->addSeparator();
  go->addActions({a.find, a.findNext, a.findPrevious});

  auto* run = menu("run", tr("&Run"));
  run->addActions({a.resume, a.stepOver, a.stepInto, a.stepOut, a.toCursor});
  run->addSeparator();
  run->addActions({a.resumeBack, a.stepOverBack, a.stepIntoBack, a.stepOutBack, a.restart});
  run->addSeparator();
  run->addActions({a.pause, a.stop, a.breakpoint, a.breakOnBad});

  auto* value = menu("value", tr("V&alue"));
  value->addActions({a.watch, a.fill, a.saveContents});
  value->addSeparator();
  value->addActions({a.recompute, a.save});
  value->addSeparator();
  value->addActions({a.walkToRoot, a.checkRun});
  value->addSeparator();
  value->addActions({a.checkGradient, a.terms, a.compare});

  menu("help", tr("&Help"))->addActions({a.palette, a.keys, a.about});
}

void MainWindow::makeToolBar() {
  auto& a = *actions_;
  auto* bar = addToolBar(tr("Run"));
  bar->setObjectName(QStringLiteral("toolbar-run"));
  bar->setAccessibleName(tr("Run tool bar"));
  bar->setIconSize({18, 18});
  bar->setMovable(false);
  bar->addActions({a.open, a.reload});
  bar->addSeparator();
  bar->addActions({a.resumeBack, a.stepOutBack, a.stepOverBack, a.stepIntoBack, a.stepInto, a.stepOver, a.stepOut, a.resume});
  bar->addSeparator();
  bar->addActions({a.pause, a.stop, a.toCursor, a.restart, a.breakpoint, a.breakOnBad});
  bar->addSeparator();
  bar->addActions({a.back, a.forward, a.origin});
  for (auto* action : {a.toCursor, a.breakOnBad, a.origin})
    if (auto* button = qobject_cast<QToolButton*>(bar->widgetForAction(action))) button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  auto* gap = new QWidget(bar);
  gap->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  bar->addWidget(gap);
  position_ = new QLabel(bar);
  position_->setObjectName(QStringLiteral("position"));
  position_->setAccessibleName(tr("Where execution stands"));
  position_->setContentsMargins(8, 0, 10, 0);
  bar->addWidget(position_);
}

void MainWindow::makeStatusBar() {
  inputsLabel_ = new QLabel(this);
  inputsLabel_->setAccessibleName(tr("Inputs"));
  inputsLabel_->setTextFormat(Qt::PlainText);
  inputsLabel_->setMinimumWidth(1);
  busy_ = new BusyPanel(controller_, this);
  statusBar()->addPermanentWidget(busy_);
  statusBar()->addPermanentWidget(inputsLabel_);
}

void MainWindow::resetLayout() {
  QMainWindow::restoreState(defaultLayout_, layoutVersion);
  for (auto* dock : docks_) dock->show();
  listings_->resetLayout();
}

QByteArray MainWindow::arrangement() const {
  QByteArray bytes;
  QDataStream stream(&bytes, QIODevice::WriteOnly);
  quint8 shown = listings_->isGraphShown() ? graphBit : 0;
  for (auto kind : kinds)
    if (listings_->isShown(kind)) shown |= 1 << static_cast<int>(kind);
  stream << QMainWindow::saveState(layoutVersion) << listings_->saveLayout() << shown;
  return bytes;
}

bool MainWindow::arrange(const QByteArray& arrangement) {
  QDataStream stream(arrangement);
  QByteArray docks, listings;
  quint8 shown = 0;
  stream >> docks >> listings >> shown;
  if (stream.status() != QDataStream::Ok || shown == 0 || !QMainWindow::restoreState(docks, layoutVersion)) return false;
  // Those that are to be shown first: the last one that is shown cannot be hidden.
  for (bool on : {true, false}) {
    for (auto kind : kinds)
      if (static_cast<bool>(shown & (1 << static_cast<int>(kind))) == on) listings_->toggleAction(kind)->setChecked(on);
    if (static_cast<bool>(shown & graphBit) == on) listings_->graphAction()->setChecked(on);
  }
  listings_->restoreLayout(listings);
  return true;
}

void MainWindow::saveState() {
  auto& settings = *shared_.settings;
  settings.setValue(QStringLiteral("window/geometry"), saveGeometry());
  settings.setValue(QStringLiteral("window/arrangement"), arrangement());
  settings.setValue(QStringLiteral("window/short-names"), actions_->shortNames->isChecked());
  settings.setValue(QStringLiteral("window/fold"), actions_->grouping->checkedAction()->data());
}

void MainWindow::restoreState() {
  auto& settings = *shared_.settings;
  defaultLayout_ = QMainWindow::saveState(layoutVersion);
  restoreGeometry(settings.value(QStringLiteral("window/geometry")).toByteArray());
  arrange(settings.value(QStringLiteral("window/arrangement")).toByteArray());
  actions_->shortNames->setChecked(settings.value(QStringLiteral("window/short-names"), true).toBool());
  for (auto* action : actions_->grouping->actions())
    if (action->data() == settings.value(QStringLiteral("window/fold"), action->data())) {
      action->setChecked(true);
      listings_->setGrouping(static_cast<Grouping>(action->data().toInt()));
      break;
    }
  for (auto* action : actions_->themes->actions()) action->setChecked(action->data().toInt() == static_cast<int>(shared_.theme->choice()));
}

}  // namespace retrograd::views
