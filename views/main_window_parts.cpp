// The furniture of the main window: menus, tool bar, docks, status bar, layout.
#include <QApplication>
#include <QDialog>
#include <QDockWidget>
#include <QHeaderView>
#include <QMenuBar>
#include <QMessageBox>
#include <QStatusBar>
#include <QTableWidget>
#include <QToolBar>
#include <QVBoxLayout>

#include "views/device_menu.h"
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

namespace retrograd::views {
namespace {

constexpr int layoutVersion = 5;
constexpr std::array kinds{TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward};

QMenu* withTips(QMenu* menu) {
  menu->setToolTipsVisible(true);
  return menu;
}

}  // namespace

void MainWindow::makeDocks() {
  const auto add = [this](const QString& title, const char* name, Qt::DockWidgetArea area, QWidget* content) {
    auto* dock = new QDockWidget(title, this);
    dock->setObjectName(QLatin1String(name));
    dock->setAccessibleName(title);
    dock->setWidget(content);
    addDockWidget(area, dock);
    docks_.append(dock);
    return dock;
  };
  const auto follow = [this](auto* view) {
    using View = std::remove_pointer_t<decltype(view)>;
    connect(view, &View::jumpRequested, this, &MainWindow::jumpTo);
    return view;
  };
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  add(tr("Modules"), "dock-modules", Qt::LeftDockWidgetArea, follow(new ModulesDock(context_)));
  auto* inspector = add(tr("Inspector"), "dock-inspector", Qt::RightDockWidgetArea, follow(new InspectorDock(context_)));
  why_ = follow(new WhyDock(context_, actions_->recompute, actions_->save));
  auto* why = add(tr("Why"), "dock-why", Qt::RightDockWidgetArea, why_);
  auto* values = add(tr("Values"), "dock-values", Qt::BottomDockWidgetArea, follow(new ValuesDock(context_, {actions_->watch, actions_->fill, actions_->saveContents})));
  auto* watches = add(tr("Watches"), "dock-watches", Qt::BottomDockWidgetArea, follow(new WatchesDock(context_)));
  auto* memory = add(tr("Memory"), "dock-memory", Qt::BottomDockWidgetArea, follow(new MemoryDock(context_)));
  auto* breakpoints = add(tr("Breakpoints"), "dock-breakpoints", Qt::BottomDockWidgetArea, follow(new BreakpointsDock(context_)));
  findings_ = follow(new FindingsDock(context_, actions_->walkToRoot, actions_->checkRun));
  auto* findings = add(tr("Findings"), "dock-findings", Qt::BottomDockWidgetArea, findings_);
  references_ = follow(new ReferencesDock(context_));
  auto* references = add(tr("References"), "dock-references", Qt::BottomDockWidgetArea, references_);
  checks_ = follow(new ChecksDock(context_, actions_->checkGradient, actions_->terms));
  auto* checks = add(tr("Checks"), "dock-checks", Qt::BottomDockWidgetArea, checks_);
  compare_ = follow(new CompareDock(context_, actions_->compare));
  auto* compare = add(tr("Compare"), "dock-compare", Qt::BottomDockWidgetArea, compare_);
  auto* problems = add(tr("Problems"), "dock-problems", Qt::BottomDockWidgetArea, follow(new ProblemsDock(context_)));
  tabifyDockWidget(inspector, why);
  tabifyDockWidget(values, watches);
  tabifyDockWidget(memory, breakpoints);
  tabifyDockWidget(breakpoints, findings);
  tabifyDockWidget(findings, references);
  tabifyDockWidget(references, problems);
  tabifyDockWidget(watches, checks);
  tabifyDockWidget(checks, compare);
  for (auto* front : {inspector, values, memory}) front->raise();
  resizeDocks({docks_[0], inspector}, {180, 340}, Qt::Horizontal);
  resizeDocks({values, memory}, {720, 540}, Qt::Horizontal);
  resizeDocks({values}, {280}, Qt::Vertical);
}

void MainWindow::makeMenus() {
  auto& a = *actions_;
  auto* file = withTips(menuBar()->addMenu(tr("&File")));
  file->addActions({a.open, a.openWindow});
  file->addMenu(recent_);
  file->addActions({a.reload, a.inputs});
  file->addSeparator();
  file->addActions({a.close, a.quit});

  auto* view = withTips(menuBar()->addMenu(tr("&View")));
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
  auto* docks = withTips(view->addMenu(tr("&Docks")));
  for (auto* dock : docks_) docks->addAction(dock->toggleViewAction());
  withTips(view->addMenu(tr("&Theme")))->addActions(a.themes->actions());
  view->addAction(a.resetLayout);

  auto* go = withTips(menuBar()->addMenu(tr("&Go")));
  go->addActions({a.goTo, a.origin, a.back, a.forward, a.toExecution});
  go->addSeparator();
  go->addActions({a.references, a.nextUse, a.previousUse});
  go->addSeparator();
  go->addActions({a.find, a.findNext, a.findPrevious});

  auto* run = withTips(menuBar()->addMenu(tr("&Run")));
  run->addActions({a.resume, a.stepOver, a.stepInto, a.stepOut, a.toCursor});
  run->addSeparator();
  run->addActions({a.resumeBack, a.stepOverBack, a.stepIntoBack, a.stepOutBack, a.restart});
  run->addSeparator();
  run->addActions({a.pause, a.stop, a.breakpoint, a.breakOnBad});
  run->addSeparator();
  run->addMenu(new DeviceMenu(context_, run));

  auto* value = withTips(menuBar()->addMenu(tr("V&alue")));
  value->addActions({a.watch, a.fill, a.saveContents});
  value->addSeparator();
  value->addActions({a.recompute, a.save});
  value->addSeparator();
  value->addActions({a.walkToRoot, a.checkRun});
  value->addSeparator();
  value->addActions({a.checkGradient, a.terms, a.compare});

  withTips(menuBar()->addMenu(tr("&Help")))->addActions({a.palette, a.keys, a.about});
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

void MainWindow::saveState() {
  auto& settings = *shared_.settings;
  settings.setValue(QStringLiteral("window/geometry"), saveGeometry());
  settings.setValue(QStringLiteral("window/docks"), QMainWindow::saveState(layoutVersion));
  settings.setValue(QStringLiteral("window/listings"), listings_->saveLayout());
  for (auto kind : kinds) settings.setValue(QStringLiteral("window/show-%1").arg(static_cast<int>(kind)), listings_->isShown(kind));
  settings.setValue(QStringLiteral("window/show-graph"), listings_->isGraphShown());
  settings.setValue(QStringLiteral("window/short-names"), actions_->shortNames->isChecked());
  settings.setValue(QStringLiteral("window/fold"), actions_->grouping->checkedAction()->data());
}

void MainWindow::restoreState() {
  auto& settings = *shared_.settings;
  defaultLayout_ = QMainWindow::saveState(layoutVersion);
  restoreGeometry(settings.value(QStringLiteral("window/geometry")).toByteArray());
  QMainWindow::restoreState(settings.value(QStringLiteral("window/docks")).toByteArray(), layoutVersion);
  for (auto kind : kinds) {
    auto* toggle = listings_->toggleAction(kind);
    toggle->setChecked(settings.value(QStringLiteral("window/show-%1").arg(static_cast<int>(kind)), toggle->isChecked()).toBool());
  }
  listings_->graphAction()->setChecked(settings.value(QStringLiteral("window/show-graph"), false).toBool());
  listings_->restoreLayout(settings.value(QStringLiteral("window/listings")).toByteArray());
  actions_->shortNames->setChecked(settings.value(QStringLiteral("window/short-names"), true).toBool());
  for (auto* action : actions_->grouping->actions())
    if (action->data() == settings.value(QStringLiteral("window/fold"), action->data())) {
      action->setChecked(true);
      listings_->setGrouping(static_cast<Grouping>(action->data().toInt()));
      break;
    }
  for (auto* action : actions_->themes->actions()) action->setChecked(action->data().toInt() == static_cast<int>(shared_.theme->choice()));
}

void MainWindow::showKeys() {
  auto* dialog = new QDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Keys"));
  auto* table = new QTableWidget(0, 3, dialog);
  table->setAccessibleName(tr("Keys"));
  table->setHorizontalHeaderLabels({tr("Key"), tr("Command"), tr("What it does")});
  const auto add = [&](const QString& key, const QString& command, const QString& what) {
    const int row = table->rowCount();
    table->insertRow(row);
    int column = 0;
    for (const auto& text : {key, command, what}) table->setItem(row, column++, new QTableWidgetItem(text));
  };
  for (const auto* action : actions_->all())
    if (!action->shortcut().isEmpty())
      add(action->shortcut().toString(QKeySequence::NativeText),
          QString(action->text()).remove(QLatin1Char('&')).remove(QStringLiteral("...")), action->property("what").toString());
  for (auto kind : kinds)
    add(listings_->toggleAction(kind)->shortcut().toString(QKeySequence::NativeText), titleText(kind), tr("Shows or hides this listing"));
  add(QStringLiteral("Ctrl+4"), tr("Graph"), tr("Shows or hides the graph"));
  add(tr("Space"), tr("Listing or Graph"), tr("From a listing to the selected op in the graph, and back"));
  add(tr("In the graph: arrows, Backspace"), tr("Walk"), tr("Along edges, across the ladder; out of the group"));
  add(tr("In the graph: F, Home, S, 1, [, ]"), tr("Look"), tr("Whole graph, whole width, the selection, full size, away, closer"));
  add(tr("Arrows, Page Up/Down, Home, End"), tr("Move"), tr("Moves the line in a listing; with Shift: selects lines to copy"));
  add(tr("+, -, *, /"), tr("Fold"), tr("Unfolds, folds, unfolds all, folds all; in the graph: opens and closes groups"));
  add(tr("Enter"), tr("Origin and Back"), tr("As G; on a header: folds or unfolds"));
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->verticalHeader()->hide();
  table->setShowGrid(false);
  table->resizeColumnsToContents();
  table->horizontalHeader()->setStretchLastSection(true);
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(table);
  dialog->resize(820, 640);
  dialog->show();
}

void MainWindow::showAbout() {
  auto* box = new QMessageBox(
      QMessageBox::NoIcon, tr("About Retrograd"),
      tr("<b>Retrograd</b><p>A desktop debugger for autograd: open a saved model trace, see its backward beside its forward, every "
         "backward op linked to the forward op it came from, and run both op by op.</p>"),
      QMessageBox::Close, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setIconPixmap(shared_.theme->icon(QStringLiteral("app")).pixmap(48, 48));
  box->open();
}

}  // namespace retrograd::views
