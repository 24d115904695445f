#include "views/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QMimeData>
#include <QScreen>
#include <QStatusBar>

#include "views/dialogs/inputs_dialog.h"
#include "views/session/kept_marks.h"
#include "views/session/own_names.h"
#include "views/settings/settings.h"
#include "views/stages/stage_plan.h"
#include "views/text/format.h"
#include "views/theme/tokens.h"
#include "views/widgets/controls.h"
#include "views/widgets/name_giver.h"
#include "views/window/quick_open.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const QString archiveFilter = QStringLiteral(
    "Models, logs, sessions, memory snapshots (*.pt2 *.pt *.log *.retrograd *.pickle *.pickle.gz *.pickle.xz *.pkl);;"
    "torch.export archives (*.pt2);;TorchScript files (*.pt);;Logs of torch.compile (*.log);;Sessions (*.retrograd);;"
    "Memory snapshots (*.pickle *.pickle.gz *.pickle.xz *.pkl);;All files (*)");

}  // namespace

MainWindow::MainWindow(Shared shared) : shared_(std::move(shared)) {
  setAttribute(Qt::WA_DeleteOnClose);
  setObjectName(QStringLiteral("main-window"));
  setWindowIcon(Theme::appIcon());
  setAcceptDrops(true);
  nameOwnControlsOfQt();
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
  controller_ = new DocumentController(shared_.worker, shared_.engine, &execution_, this);
  context_ = {controller_,
              &selection_,
              &execution_,
              &history_,
              shared_.theme,
              new OpFilter(controller_, this),
              new NoteBook(controller_, this),
              new StagePlan(controller_)};
  actions_ = new WindowActions(context_, this);
  recent_ = new RecentFiles(shared_.settings, this);

  makeCentre();
  makeMenus();
  makeToolBar();
  makeStatusBar();
  connectCommands();
  connectRun();
  connectFinding();
  connectMarks();
  connectState();
  installWindowParts(*this);
  resize(screen()->availableGeometry().size() * tokens::firstShare);
  restoreState();
  documentChanged();
  executionChanged();
}

MainWindow::~MainWindow() {
  // Views and actions hang on the members below by connections: they go first.
  disconnect(&selection_, nullptr, nullptr, nullptr);
  disconnect(&execution_, nullptr, nullptr, nullptr);
  disconnect(&history_, nullptr, nullptr, nullptr);
  delete takeCentralWidget();
  panels_.clear();
  qDeleteAll(std::exchange(docks_, {}));
  // Windows of this one ask the controller when they hide: a value tip that is up when the window closes asked one that
  // was gone.
  for (auto* child : findChildren<QWidget*>(Qt::FindDirectChildrenOnly))
    if (child->isWindow()) delete child;
  delete std::exchange(controller_, nullptr);
}

void MainWindow::connectCommands() {
  const auto on = [this](QAction* action, auto&& run) { connect(action, &QAction::triggered, this, run); };
  on(actions_->open, [this] { askForFile(false); });
  on(actions_->openWindow, [this] { askForFile(true); });
  on(actions_->reload, [this] { controller_->reload(); });
  on(actions_->inputs, [this] { editInputs(); });
  on(actions_->close, [this] { controller_->close(); });
  on(actions_->quit, [] { QApplication::closeAllWindows(); });
  connect(recent_, &RecentFiles::chosen, this, &MainWindow::openFile);
  connect(startPage_, &StartPage::chosen, this, &MainWindow::openFile);

  on(actions_->origin, [this] { goToOrigin(selection_.op()); });
  on(actions_->back, [this] { listings_->goTo(history_.back(selection_.op())); });
  on(actions_->forward, [this] { listings_->goTo(history_.forward(selection_.op())); });
  on(actions_->toExecution, [this] { jumpTo(execution_.now().current); });
  on(actions_->find, [this] { listings_->showFind(); });
  on(actions_->findNext, [this] { listings_->findNext(true); });
  on(actions_->findPrevious, [this] { listings_->findNext(false); });
  connect(listings_, &ListingsArea::jumpRequested, this, &MainWindow::goToOrigin);
  connect(listings_, &ListingsArea::placeChosen, this, &MainWindow::jumpTo);
  connect(listings_, &ListingsArea::breakpointRequested, this, &MainWindow::toggleBreakpoint);

  on(actions_->foldAll, [this] { listings_->setAllFolded(true); });
  on(actions_->unfoldAll, [this] { listings_->setAllFolded(false); });
  on(actions_->resetLayout, [this] { resetLayout(); });
  connect(actions_->shortNames, &QAction::toggled, listings_, &ListingsArea::setShortNames);
  connect(actions_->grouping, &QActionGroup::triggered, this,
          [this](QAction* action) { listings_->setGrouping(static_cast<Grouping>(action->data().toInt())); });
  connect(actions_->themes, &QActionGroup::triggered, this, [this](QAction* action) {
    kept::theme.keep(*shared_.settings, action->data().toInt());
    shared_.theme->choose(static_cast<Theme::Choice>(action->data().toInt()));
  });
}

void MainWindow::connectRun() {
  const auto on = [this](QAction* action, auto method) {
    connect(action, &QAction::triggered, &controller_->run(), method);
  };
  on(actions_->resume, &RunControl::continueForward);
  on(actions_->resumeBack, &RunControl::continueBackward);
  const auto steps = [this](QAction* action, Step step) {
    connect(action, &QAction::triggered, controller_, [this, step] { controller_->run().step(step); });
  };
  steps(actions_->stepOver, Step::over);
  steps(actions_->stepOverBack, Step::overBack);
  steps(actions_->stepInto, Step::into);
  steps(actions_->stepIntoBack, Step::intoBack);
  steps(actions_->stepOut, Step::out);
  steps(actions_->stepOutBack, Step::outBack);
  on(actions_->pause, &RunControl::pause);
  on(actions_->restart, &RunControl::restart);
  connect(actions_->stop, &QAction::triggered, this, [this] {
    controller_->cancelOpen();
    controller_->stop();
  });
  connect(actions_->toCursor, &QAction::triggered, this, [this] { controller_->run().runTo(selection_.op()); });
  connect(actions_->breakpoint, &QAction::triggered, this, [this] { toggleBreakpoint(selection_.op()); });
  connect(actions_->breakOnBad, &QAction::triggered, &controller_->run(), &RunControl::setBreakOnBadNumber);
}

void MainWindow::connectMarks() {
  const auto* marks = new KeptMarks(context_, shared_.settings, this);
  connect(marks, &KeptMarks::breakpointLost, this, [this](const QString& words, const QString& why) {
    messages_->show(MessageBar::Kind::warning, tr("The breakpoint '%1' was not set again: %2").arg(words, why));
  });
  connect(marks, &KeptMarks::watchLost, this, [this](const QString& name) {
    messages_->show(MessageBar::Kind::warning,
                    tr("The value %1 is not watched any more: the file has none of that name").arg(name));
  });
}

void MainWindow::connectFinding() {
  const auto commands = [this] {
    auto all = actions_->all();
    for (auto kind : traceKinds) all << listings_->toggleAction(kind);
    for (auto* dock : docks_) all << dock->toggleViewAction();
    return all;
  };
  quickOpen_ = new QuickOpen(context_, commands, this);
  const auto on = [this](QAction* action, auto&& run) { connect(action, &QAction::triggered, this, run); };
  on(actions_->goTo, [this] { quickOpen_->openPlaces(); });
  on(actions_->palette, [this] { quickOpen_->openCommands(); });
  connect(quickOpen_, &QuickOpen::placeChosen, this, [this](BoundSymbolId op, ValueId value) {
    if (!op) return messages_->show(MessageBar::Kind::warning, tr("No op uses it, so there is no line to go to"));
    jumpTo(op);
    if (value) selection_.selectValue(value);
  });
  connect(quickOpen_, &QuickOpen::refused, this,
          [this](const QString& reason) { statusBar()->showMessage(reason, 8000); });
}

void MainWindow::connectState() {
  connect(controller_, &DocumentController::documentChanged, this, &MainWindow::documentChanged);
  connect(controller_, &DocumentController::openFailed, this,
          [this](const QString& message) { messages_->show(MessageBar::Kind::error, message); });
  // Why a question has no answer is of the op that it was asked of: another op takes the message away.
  const auto askedOf = std::make_shared<BoundSymbolId>();
  const auto showError = [this, askedOf](const QString& message) {
    messages_->show(MessageBar::Kind::error, message);
    *askedOf = selection_.op();
  };
  connect(&selection_, &Selection::changed, messages_, [this, askedOf] {
    if (*askedOf && *askedOf != selection_.op()) messages_->hide();
  });
  connect(messages_, &MessageBar::shown, this, [askedOf] { *askedOf = {}; });
  connect(&controller_->run(), &RunControl::failed, this, showError);
  connect(&controller_->questions(), &Questions::failed, this, showError);
  connect(&controller_->ahead(), &RunAhead::failed, this, showError);
  connect(&execution_, &ExecutionState::changed, this, &MainWindow::executionChanged);
  connect(controller_, &DocumentController::documentAboutToChange, this, [this] {
    closePopups();
    selectedKey_.clear();
    if (const auto& document = controller_->document(); document && selection_.op())
      selectedKey_ = {keyOf(*document->analysis, selection_.op())};
    history_.clear();
    selection_.reset(nullptr);
  });
  connect(shared_.theme, &Theme::changed, this, [this] {
    for (auto* action : actions_->themes->actions())
      action->setChecked(action->data().toInt() == static_cast<int>(shared_.theme->choice()));
  });
}

/// Menus of this window: what their entries are for, ids and rows, goes with the document.
void MainWindow::closePopups() {
  while (auto* popup = QApplication::activePopupWidget()) {
    const QWidget* owner = popup;
    while (owner && owner != this) owner = owner->parentWidget();
    if (!owner || !popup->close() || QApplication::activePopupWidget() == popup) return;
  }
}

void MainWindow::openFile(const QString& path) {
  messages_->hide();
  if (opensOtherwise_ && opensOtherwise_(path)) return;
  OpenRequest request;
  request.path = QFileInfo::exists(path) ? QFileInfo(path).absoluteFilePath().toStdString() : path.toStdString();
  controller_->open(request);
}

void MainWindow::documentChanged() {
  const auto& document = controller_->document();
  const auto path = document ? toQt(document->request.path) : QString();
  const bool sameFile = document && path == openPath_;
  BoundSymbolId kept;
  if (sameFile && !selectedKey_.empty()) kept = findKeys(*document->analysis, selectedKey_).front();
  openPath_ = path;
  selection_.reset(document ? document->analysis : nullptr);
  // Of a log: which of its graphs it is.
  QStringList names{QFileInfo(path).fileName()};
  if (document && !document->request.data.compile.empty())
    names << tr("compile %1").arg(toQt(document->request.data.compile));
  if (document && document->request.data.rank) names << tr("rank %1").arg(*document->request.data.rank);
  setWindowTitle(document ? tr("%1 - Retrograd").arg(names.join(QStringLiteral(" \u00b7 "))) : tr("Retrograd"));
  setWindowFilePath(path);
  auto& active = listings_->active();  // hiding the start page gives the focus to the first listing instead
  startWanted_ = false;
  const auto* alone = document ? std::exchange(alone_, nullptr) : nullptr;
  showCentre();
  keepDocksAway(!document);
  if (document) useLayoutOf(document->kind);
  if (alone) showPanel(*alone);
  if (document && !sameFile) active.setFocus();
  if (!document) return inputsLabel_->clear();
  if (!sameFile) recent_->add(path);
  if (kept) listings_->goTo(kept);
  // In an event of its own: with a million ops this one is long enough.
  else QMetaObject::invokeMethod(this, [this] { listings_->begin(); }, Qt::QueuedConnection);
  QStringList sources;
  for (const auto& source : document->analysis->inputSource) sources << toQt(source);
  inputsLabel_->setText(sources.mid(0, 3).join(QStringLiteral("  ·  ")) +
                        (sources.size() > 3 ? QStringLiteral("  ...") : QString()));
  inputsLabel_->setToolTip(sources.join(QLatin1Char('\n')));
  if (!document->analysis->derived()) {
    messages_->show(MessageBar::Kind::warning,
                    tr("The computation is shown, but no backward could be derived: see Problems."));
  } else if (!document->noRunReason.isEmpty()) {
    messages_->show(MessageBar::Kind::warning, document->noRunReason);
  } else {
    messages_->hide();
  }
}

void MainWindow::executionChanged() {
  const auto& now = execution_.now();
  if (!now.available) {
    position_->clear();
    return;
  }
  const bool inBackward = now.position >= now.forwardSize && now.size > now.forwardSize;
  const auto at = inBackward ? now.position - now.forwardSize : now.position;
  const auto of = inBackward ? now.size - now.forwardSize : now.forwardSize;
  position_->setText(tr("%1 %2/%3  ·  live %4  ·  peak %5")
                         .arg(inBackward ? tr("backward") : tr("forward"))
                         .arg(at)
                         .arg(of)
                         .arg(bytesText(now.liveBytes), bytesText(now.peakBytes)));
  if (now.running) return;
  switch (now.reason) {
    case StopReason::breakpoint: statusBar()->showMessage(hitText(), 15000); break;
    case StopReason::badNumber: statusBar()->showMessage(badNumberText(), 15000); break;
    case StopReason::cancelled: statusBar()->showMessage(tr("Stopped"), 8000); break;
    case StopReason::end: statusBar()->showMessage(tr("At the end of the backward"), 8000); break;
    default:  // what was said of another place
      statusBar()->clearMessage();
      break;
  }
}

QString MainWindow::badNumberText() const {
  const auto& now = execution_.now();
  const auto& open = controller_->document();
  const auto op = open && now.position > 0 ? open->program.opAt(now.position - 1) : BoundSymbolId();
  if (!op) return tr("Stopped at NaN or Inf");
  return tr("Stopped: #%1 %2 made NaN or Inf").arg(op.index).arg(shortOpName(*open->analysis->document, op));
}

QString MainWindow::hitText() const {
  const auto& now = execution_.now();
  if (!now.hit || !controller_->document()) return tr("Stopped at a breakpoint");
  const auto& analysis = *controller_->document()->analysis;
  auto words = toQt(describe(analysis, *now.hit));
  if (now.hit->where == Breakpoint::Where::op)  // with what it makes, behind its number
    if (const auto outputs = analysis.document->outputs(now.hit->op); !outputs.empty() && outputs[0])
      words.insert(words.section(QLatin1Char(' '), 0, 0).size(),
                   QLatin1Char(' ') + nameOf(*analysis.document, outputs[0], context_.notes));
  return (looksAtOutputs(*now.hit) ? tr("Stopped: the op before meets the breakpoint '%1'")
                                   : tr("Stopped at the breakpoint '%1'"))
      .arg(words);
}

void MainWindow::jumpTo(BoundSymbolId op) {
  if (!op) return;
  showStartPage(false);
  history_.jumped(selection_.op(), op);
  listings_->goTo(op);
}

void MainWindow::goToOrigin(BoundSymbolId op) {
  const auto& document = controller_->document();
  if (!document || !op) return;
  // A heading "backward of x" leads to x at once, whatever led to the ops below it before.
  const auto start = listings_->graph().hasFocus() ? op : listings_->active().startOfJump(op);
  if (const auto from = history_.returnFrom(op); from && start == op) {
    history_.originJumped(op, from);
    return listings_->goTo(from);
  }
  op = start;
  const auto& tables = *document->analysis->document;
  const auto& links = document->analysis->links;
  BoundSymbolId target;
  if (isBackwardRole(tables.boundSymbol(op).origin.role)) {
    target = links.forwardOf(tables, op);
    if (!target) target = OriginLinks::origin(tables, op);
  } else {
    for (auto derived : links.derived(OriginLinks::origin(tables, op))) {
      if (!isBackwardRole(tables.boundSymbol(derived).origin.role)) continue;
      target = derived;
      break;
    }
  }
  if (!target) {
    statusBar()->showMessage(isBackwardRole(tables.boundSymbol(op).origin.role)
                                 ? tr("This op comes from no op: its value is an input of the graph")
                                 : tr("No backward op comes from this op"),
                             8000);
    return;
  }
  history_.originJumped(op, target);
  listings_->goTo(target);
}

void MainWindow::toggleBreakpoint(BoundSymbolId op) {
  QString problem;
  if (!controller_->marks().toggleBreakpoint(op, &problem)) statusBar()->showMessage(problem, 8000);
}

void MainWindow::askForFile(bool newWindow) {
  const auto open = [this, newWindow](const QString& path) {
    if (!newWindow || !controller_->document()) return openFile(path);
    auto* window = new MainWindow(shared_);
    window->show();
    window->openFile(path);
  };
  chooseFile(this, tr("Open"), QFileInfo(openPath_).absolutePath(), archiveFilter, this, open);
}

void MainWindow::editInputs() {
  const auto& document = controller_->document();
  if (!document) return;
  auto* dialog = new InputsDialog(*document, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(controller_, &DocumentController::documentAboutToChange, dialog,
          &QDialog::reject);  // it is for the file as it was opened
  connect(dialog, &InputsDialog::chosen, this, [this](const OpenRequest& request) {
    messages_->hide();
    controller_->reopen(request);
  });
  dialog->open();
}

void MainWindow::showPanel(const Panel& panel) {
  auto* dock = dockOf(panel);
  dock->show();
  dock->raise();
}

bool MainWindow::showPanel(const QString& name) {
  for (const auto* panel : panels_) {
    if (panel->name() != name) continue;
    showPanel(*panel);
    return true;
  }
  return false;
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  for (const auto& url : event->mimeData()->urls())
    if (url.isLocalFile()) return event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  bool first = true;
  for (const auto& url : event->mimeData()->urls()) {
    if (!url.isLocalFile()) continue;
    event->acceptProposedAction();
    if (takesDrop_ && takesDrop_(url.toLocalFile())) continue;
    if (opensOtherwise_ && opensOtherwise_(url.toLocalFile())) continue;
    auto* window = first ? this : new MainWindow(shared_);
    if (!first) window->show();
    window->openFile(url.toLocalFile());
    first = false;
  }
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
  // A key whose action is disabled arrives here: it says why rather than doing nothing.
  const auto reason = actions_->reasonFor(QKeySequence(event->keyCombination()));
  if (!reason.isEmpty()) return statusBar()->showMessage(reason, 8000);
  if (event->key() == Qt::Key_Escape && messages_->isVisible()) return messages_->hide();
  if (event->key() == Qt::Key_Escape && startWanted_) return showStartPage(false);
  QMainWindow::keyPressEvent(event);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  saveState();
  controller_->close();
  event->accept();
}

}  // namespace retrograd::views
