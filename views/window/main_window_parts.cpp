// The furniture of the main window: menus, tool bar, docks, status bar, layout.
#include <QFileInfo>
#include <QMenuBar>
#include <QPointer>
#include <QStatusBar>
#include <QToolBar>
#include <QVBoxLayout>

#include "views/session/pinned_selection.h"
#include "views/settings/settings.h"
#include "views/theme/tokens.h"
#include "views/widgets/controls.h"
#include "views/widgets/window_size.h"
#include "views/window/main_window.h"

namespace retrograd::views {
namespace {

constexpr int layoutVersion = 8;
constexpr quint8 graphBit = 1 << 4;  // besides one bit for each trace
/// Open at the first start. The others open when they are asked for or have something to say.
const QStringList startDocks{QStringLiteral("modules"), QStringLiteral("why"), QStringLiteral("values"),
                             QStringLiteral("memory")};

QMenu* withTips(QMenu* menu) {
  menu->setToolTipsVisible(true);
  return menu;
}

}  // namespace

void MainWindow::makeCentre() {
  auto* centre = new QWidget(this);
  auto* layout = withMargins(new QVBoxLayout(centre), {}, 0);
  messages_ = new MessageBar(shared_.theme, centre);
  listings_ = new ListingsArea(context_, centre);
  startPage_ = new StartPage(recent_, actions_->open, {actions_->open, actions_->palette, actions_->keys}, centre);
  firstLines_ = new FirstLinesView(shared_.theme, centre);
  layout->addWidget(startPage_, 1);
  layout->addWidget(firstLines_, 1);
  layout->addWidget(listings_, 1);
  layout->addWidget(messages_);  // below: what is under the pointer stays there
  setCentralWidget(centre);
  connect(controller_, &DocumentController::computationRead, this, [this](const FirstLines& first) {
    firstLines_->show(first);
    showCentre();
  });
  connect(controller_, &DocumentController::openingChanged, this, [this] {
    if (firstLines_->rowCount() == 0) return;
    firstLines_->clear();
    showCentre();
  });
}

void MainWindow::showCentre() {
  const bool isOpen = controller_->document() != nullptr, isRead = firstLines_->rowCount() > 0;
  const bool isStart = startWanted_ || (!isOpen && !isRead && !alone_);
  startPage_->setVisible(isStart);
  firstLines_->setVisible(!isStart && !isOpen && isRead);
  listings_->setVisible(!isStart && isOpen);
  // A panel that is alone leaves room for messages only.
  const bool isSmall = !isStart && !isOpen && !isRead && alone_;
  centralWidget()->setSizePolicy(QSizePolicy::Preferred, isSmall ? QSizePolicy::Maximum : QSizePolicy::Preferred);
}

void MainWindow::showStartPage(bool on) {
  if (on == startWanted_) return;
  startWanted_ = on;
  showCentre();
  keepDocksAway(on || !controller_->document());
  if (alone_) dockOf(*alone_)->setVisible(!on);
  actions_->update();
  if (on) startPage_->setFocus();
  else if (controller_->document()) listings_->active().setFocus();
}

void MainWindow::showAlone(Panel* panel, const QString& path) {
  startWanted_ = false;
  if (alone_ && alone_ != panel) dockOf(*alone_)->hide();
  alone_ = panel;
  showCentre();
  setWindowTitle(panel ? tr("%1 - Retrograd").arg(QFileInfo(path).fileName()) : tr("Retrograd"));
  setWindowFilePath(path);
  actions_->update();
  if (!panel) return;
  showPanel(*panel);
  resizeDocks({dockOf(*panel)}, {height()}, Qt::Vertical);
}

void MainWindow::placePanel(Panel* panel, const QString& title, Qt::DockWidgetArea area, const Panel* behind) {
  auto* dock = named(new QDockWidget(title, this), QStringLiteral("dock-") + panel->name(), title);
  dock->setWidget(panel);
  addDockWidget(area, dock);
  if (auto* front = behind ? dockOf(*behind) : nullptr) {
    tabifyDockWidget(front, dock);
    front->raise();
  }
  if (!startDocks.contains(panel->name())) dock->hide();
  docks_.append(dock);
  menus_.value("docks")->addAction(dock->toggleViewAction());
  // Who asks for a dock wants to see it, not a tab behind another.
  connect(dock->toggleViewAction(), &QAction::triggered, dock, [dock](bool on) {
    if (on) dock->raise();
  });
  connect(panel, &Panel::jumpRequested, this, &MainWindow::jumpTo);
}

ViewContext MainWindow::pinnable(const char* dock, const QList<QAction*>& releasing) {
  auto* selection = named(new PinnedSelection(&selection_, controller_, this), dock);
  for (const auto* action : releasing)
    connect(action, &QAction::triggered, selection, [selection] { selection->setPinned(false); });
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

void MainWindow::makeMenus() {
  auto& a = *actions_;
  auto* file = menu("file", tr("&File"));
  file->addActions({a.open, a.openWindow});
  file->addMenu(recent_);
  file->addActions({a.reload, a.inputs});
  file->addSeparator();
  file->addActions({a.close, a.quit});

  menu("edit", tr("&Edit"))->addActions({a.undo, a.redo});

  auto* view = menu("view", tr("&View"));
  for (auto kind : traceKinds) {
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
  menus_["docks"] = withTips(view->addMenu(tr("&Docks")));
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
  named(bar, "toolbar-run", tr("Run tool bar"));
  bar->setIconSize({tokens::toolIcon, tokens::toolIcon});
  bar->setMovable(false);
  const auto group = [bar](const QString& name, const QList<QAction*>& actions) {
    bar->addSeparator();
    auto* label = new QLabel(name, bar);
    label->setForegroundRole(QPalette::PlaceholderText);
    label->setContentsMargins(tokens::tight, 0, tokens::hair, 0);
    bar->addWidget(label);
    bar->addActions(actions);
  };
  bar->addActions({a.open, a.reload});
  group(tr("Run back"), {a.resumeBack, a.stepOverBack, a.stepIntoBack, a.stepOutBack});
  group(tr("Run"), {a.resume, a.stepOver, a.stepInto, a.stepOut});
  bar->addActions({a.toCursor, a.pause, a.stop, a.restart});
  bar->addSeparator();
  bar->addActions({a.breakpoint, a.breakOnBad});
  bar->addSeparator();
  bar->addActions({a.back, a.forward, a.origin});
  for (auto* action : {a.resume, a.toCursor, a.breakOnBad})
    if (auto* button = qobject_cast<QToolButton*>(bar->widgetForAction(action)))
      button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  auto* gap = new QWidget(bar);
  gap->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  bar->addWidget(gap);
  position_ = named(new QLabel(bar), "position", tr("The current step"));
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

void MainWindow::keepDocksAway(bool away) {
  if (away == withoutDocks_.has_value()) return;
  QList<QDockWidget*> open;
  for (auto* dock : docks_)
    if (!dock->isHidden() && !dock->isFloating()) open << dock;
  if (away) {
    withoutDocks_ = QMainWindow::saveState(layoutVersion);
    for (auto* dock : open) dock->hide();
    return;
  }
  QMainWindow::restoreState(*std::exchange(withoutDocks_, {}), layoutVersion);
  for (auto* dock : open) dock->show();  // those that a person opened next to the start page
  Q_EMIT docksBack();
}

void MainWindow::resetLayout() {
  const QPointer focused = focusWidget();
  withoutDocks_.reset();
  QMainWindow::restoreState(defaultLayout_, layoutVersion);
  listings_->resetLayout();
  Q_EMIT layoutReset();
  listings_->takeFocusFrom(focused);
}

QByteArray MainWindow::arrangement() const {
  QByteArray bytes;
  QDataStream stream(&bytes, QIODevice::WriteOnly);
  quint8 shown = listings_->isGraphShown() ? graphBit : 0;
  for (auto kind : traceKinds)
    if (listings_->isShown(kind)) shown |= 1 << static_cast<int>(kind);
  stream << withoutDocks_.value_or(QMainWindow::saveState(layoutVersion)) << listings_->saveLayout() << shown;
  return bytes;
}

bool MainWindow::arrange(const QByteArray& arrangement) {
  QDataStream stream(arrangement);
  QByteArray docks, listings;
  quint8 shown = 0;
  stream >> docks >> listings >> shown;
  if (stream.status() != QDataStream::Ok || shown == 0 || !QMainWindow::restoreState(docks, layoutVersion))
    return false;
  withoutDocks_.reset();
  // Those that are to be shown first: the last one that is shown cannot be hidden.
  for (bool on : {true, false}) {
    for (auto kind : traceKinds)
      if (static_cast<bool>(shown & (1 << static_cast<int>(kind))) == on) listings_->toggleAction(kind)->setChecked(on);
    if (static_cast<bool>(shown & graphBit) == on) listings_->graphAction()->setChecked(on);
  }
  listings_->restoreLayout(listings);
  return true;
}

void MainWindow::useLayoutOf(FileKind kind) {
  if (kind == layoutKind_) return;
  auto& settings = *shared_.settings;
  kept::arrangement(name(layoutKind_)).keep(settings, arrangement());
  layoutKind_ = kind;
  if (!arrange(kept::arrangement(name(kind)).of(settings))) resetLayout();
}

void MainWindow::saveState() {
  auto& settings = *shared_.settings;
  kept::geometry.keep(settings, saveGeometry());
  kept::arrangement(name(layoutKind_)).keep(settings, arrangement());
  for (const auto* panel : panels_) kept::panel(panel->name()).keep(settings, panel->saveState());
  kept::shortNames.keep(settings, actions_->shortNames->isChecked());
  kept::grouping.keep(settings, actions_->grouping->checkedAction()->data().toInt());
}

void MainWindow::restoreState() {
  auto& settings = *shared_.settings;
  defaultLayout_ = QMainWindow::saveState(layoutVersion);
  restoreGeometry(kept::geometry.of(settings));
  keepWithinScreen(*this);
  arrange(kept::arrangement(name(layoutKind_)).of(settings));
  for (auto* panel : panels_)
    if (const auto state = kept::panel(panel->name()).of(settings); !state.isEmpty()) panel->restoreState(state);
  actions_->shortNames->setChecked(kept::shortNames.of(settings));
  for (auto* action : actions_->grouping->actions())
    if (action->data().toInt() == kept::grouping.of(settings, action->data().toInt())) {
      action->setChecked(true);
      listings_->setGrouping(static_cast<Grouping>(action->data().toInt()));
      break;
    }
  for (auto* action : actions_->themes->actions())
    action->setChecked(action->data().toInt() == static_cast<int>(shared_.theme->choice()));
}

}  // namespace retrograd::views
