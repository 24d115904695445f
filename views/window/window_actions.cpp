#include "views/window/window_actions.h"

#include "views/session/why_report.h"
#include "views/text/format.h"
#include "views/text/trace_index.h"
#include "views/widgets/controls.h"

namespace retrograd::views {
namespace {

constexpr const char* tipProperty = "what";
constexpr const char* iconProperty = "iconName";
constexpr const char* reasonProperty = "reason";

}  // namespace

WindowActions::WindowActions(ViewContext context, QWidget* window)
    : QObject(window), context_(context), window_(window) {
  addFileActions();
  addViewActions();
  addGoActions();
  addRunActions();
  addValueActions();
  keys = add("keys", tr("&Keys"), tr("Lists the keys"), QKeySequence(Qt::Key_F1));
  about = add("about", tr("&About Retrograd"), tr("Shows name, versions and licences"), {});
  connect(context_.theme, &Theme::changed, this, &WindowActions::updateIcons);
  connect(context_.execution, &ExecutionState::changed, this, &WindowActions::update);
  connect(context_.selection, &Selection::changed, this, &WindowActions::update);
  connect(context_.history, &JumpHistory::changed, this, &WindowActions::update);
  connect(context_.controller, &DocumentController::documentAboutToChange, this, [this] { noGain_.clear(); });
  connect(context_.controller, &DocumentController::documentChanged, this, &WindowActions::update);
  connect(context_.controller, &DocumentController::openingChanged, this, &WindowActions::update);
  connect(&context_.controller->edits(), &QUndoStack::indexChanged, this, &WindowActions::updateEdits);
  connect(&context_.controller->questions(), &Questions::askingChanged, this, &WindowActions::update);
  connect(&context_.controller->questions(), &Questions::valuesReady, this, &WindowActions::update);
  connect(context_.execution, &ExecutionState::badValuesChanged, this, &WindowActions::update);
  connect(context_.execution, &ExecutionState::watchesChanged, this, &WindowActions::update);
  updateIcons();
  update();
}

QAction* WindowActions::add(const char* name, const QString& text, const QString& tip, const QKeySequence& key,
                            const char* icon) {
  auto* action = named(new QAction(text, window_), QStringLiteral("action-") + QLatin1String(name));
  action->setShortcut(key);
  action->setProperty(tipProperty, tip);
  if (icon) action->setProperty(iconProperty, QLatin1String(icon));
  window_->addAction(action);
  all_.append(action);
  allow(action, {});
  return action;
}

void WindowActions::addFileActions() {
  open =
      add("open", tr("&Open..."),
          tr("Opens a torch.export archive (.pt2), a TorchScript file (.pt) or a session (.retrograd) in this window"),
          QKeySequence::Open, "open");
  openWindow = add("open-window", tr("Open in &New Window..."), tr("Opens a file in another window"),
                   QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O));
  reload = add("reload", tr("Re&load"), tr("Reads the file again; breakpoints are kept"),
               QKeySequence(Qt::CTRL | Qt::Key_R), "reload");
  inputs = add("inputs", tr("&Inputs..."), tr("Chooses or draws the inputs to run with"),
               QKeySequence(Qt::CTRL | Qt::Key_I));
  close = add("close", tr("&Close"), tr("Closes the file"), QKeySequence(Qt::CTRL | Qt::Key_W));
  quit = add("quit", tr("&Quit"), tr("Closes all windows"), QKeySequence::Quit);
  undo = add("undo", tr("&Undo"), tr("Takes back what was adopted last: a choice of what is saved, or a cut"),
             QKeySequence::Undo);
  redo = add("redo", tr("&Redo"), tr("Adopts again what was taken back last"), QKeySequence::Redo);
  undo->setIconText(tr("Undo"));  // on buttons
  redo->setIconText(tr("Redo"));
  quit->setMenuRole(QAction::QuitRole);
}

void WindowActions::addViewActions() {
  shortNames =
      add("short-names", tr("Short &Op Names"), tr("aten.mm for torch.ops.aten.mm.default; copies stay long"), {});
  shortNames->setCheckable(true);
  shortNames->setChecked(true);
  foldAll = add("fold-all", tr("&Fold All"), tr("Folds every group of all listings that are shown"),
                QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Minus));
  unfoldAll = add("unfold-all", tr("&Unfold All"), tr("Unfolds every group of all listings that are shown"),
                  QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Plus));
  resetLayout = add("reset-layout", tr("&Default Layout"), tr("Puts listings and docks back in their places"),
                    QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_1));
  grouping = new QActionGroup(this);
  addChoice(grouping, "group-operation", tr("By &Operation"), static_cast<int>(Grouping::operation), true);
  addChoice(grouping, "group-module", tr("By &Module and Operation"), static_cast<int>(Grouping::module), false);
  addChoice(grouping, "group-none", tr("&Not at All"), static_cast<int>(Grouping::none), false);
  themes = new QActionGroup(this);
  addChoice(themes, "theme-system", tr("As the &System"), static_cast<int>(Theme::Choice::system), true);
  addChoice(themes, "theme-light", tr("&Light"), static_cast<int>(Theme::Choice::light), false);
  addChoice(themes, "theme-dark", tr("&Dark"), static_cast<int>(Theme::Choice::dark), false);
  addChoice(themes, "theme-contrast", tr("&High Contrast"), static_cast<int>(Theme::Choice::highContrast), false);
}

void WindowActions::addChoice(QActionGroup* group, const char* name, const QString& text, int data, bool checked) {
  const bool isTheme = group == themes;
  auto* action = add(
      name, text, isTheme ? tr("Shows all windows in this theme") : tr("Folds the lines of listings in this way"), {});
  // Apart from its menu the name of a choice does not say of what it is one.
  action->setProperty(
      "command", (isTheme ? tr("Theme: %1") : tr("Fold Listings: %1")).arg(QString(text).remove(QLatin1Char('&'))));
  action->setCheckable(true);
  action->setChecked(checked);
  action->setData(data);
  group->addAction(action);
}

void WindowActions::addGoActions() {
  origin = add("origin", tr("&Origin and Back"),
               tr("From a backward op to its forward op, from a forward op to its first backward op; again: back"),
               QKeySequence(Qt::Key_G), "origin");
  back = add("back", tr("&Back"), tr("To where the last jump came from"), QKeySequence(Qt::ALT | Qt::Key_Left), "back");
  forward = add("forward", tr("For&ward"), tr("To where the last jump went"), QKeySequence(Qt::ALT | Qt::Key_Right),
                "forward");
  toExecution =
      add("to-execution", tr("Op that Runs Ne&xt"), tr("Shows the current step"), QKeySequence(Qt::CTRL | Qt::Key_E));
  goTo = add("go-to", tr("Go to &Place..."), tr("An op, value, module or parameter by its name"),
             QKeySequence(Qt::CTRL | Qt::Key_P));
  palette = add("palette", tr("&Commands..."), tr("All commands by their names"),
                QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_P));
  references = add("references", tr("&References"),
                   tr("Who makes, reads and saves the selected value, and its gradient"), QKeySequence(Qt::Key_X));
  nextUse =
      add("next-use", tr("Next &Use"), tr("To the next use of the selected value"), QKeySequence(Qt::Key_BracketRight));
  previousUse = add("previous-use", tr("Previous U&se"), tr("To the previous use of the selected value"),
                    QKeySequence(Qt::Key_BracketLeft));
  find = add("find", tr("&Find..."), tr("Finds text in the active listing"), QKeySequence::Find);
  findNext = add("find-next", tr("Find &Next"), tr("Finds the next line with the text"), QKeySequence(Qt::Key_F3));
  findPrevious = add("find-previous", tr("Find Pre&vious"), tr("Finds the line before with the text"),
                     QKeySequence(Qt::SHIFT | Qt::Key_F3));
}

void WindowActions::addRunActions() {
  const auto back = Qt::CTRL | Qt::SHIFT;
  resume = add("continue", tr("&Continue"), tr("Runs to the next breakpoint or the end"), QKeySequence(Qt::Key_F5),
               "continue");
  resumeBack = add("continue-back", tr("Run Bac&k"), tr("Runs back to the breakpoint before or the start"),
                   QKeySequence(back | Qt::Key_F5), "continue-back");
  pause = add("pause", tr("&Pause"), tr("Pauses between two ops; continue in either direction"),
              QKeySequence(Qt::Key_F6), "pause");
  stop = add("stop", tr("&Stop"), tr("Stops the run, a question, or the reading of a file"),
             QKeySequence(Qt::SHIFT | Qt::Key_F5), "stop");
  stepOver = add("step-over", tr("Step &Over"),
                 tr("Runs all ops of one operation of the computation, a branch of cond included"),
                 QKeySequence(Qt::Key_F10), "step-over");
  stepOverBack = add("step-over-back", tr("Step Back"), tr("Undoes the ops of one operation"),
                     QKeySequence(back | Qt::Key_F10), "step-over-back");
  stepInto = add("step-into", tr("Step &Into"), tr("Runs one op: into what an operation or a branch consists of"),
                 QKeySequence(Qt::Key_F11), "step-into");
  stepIntoBack = add("step-into-back", tr("Step Back Into"), tr("Undoes one op"), QKeySequence(back | Qt::Key_F11),
                     "step-into-back");
  stepOut = add("step-out", tr("Step Ou&t"), tr("Runs to the end of the current operation or branch"),
                QKeySequence(Qt::SHIFT | Qt::Key_F11), "step-out");
  stepOutBack =
      add("step-out-back", tr("Step Back Out"), tr("Undoes to the beginning of the current operation or branch"),
          QKeySequence(Qt::CTRL | Qt::Key_F11), "step-out-back");
  toCursor = add("to-cursor", tr("Run to C&ursor"),
                 tr("Runs forwards or back to the selected op, or to a breakpoint on the way"),
                 QKeySequence(Qt::CTRL | Qt::Key_F10), "run-to-cursor");
  restart = add("restart", tr("&Restart"), tr("Back to the start of the forward, with the same seed"),
                QKeySequence(Qt::CTRL | Qt::Key_F5), "restart");
  breakpoint = add("breakpoint", tr("Toggle &Breakpoint"), tr("Stops before the selected op, or no longer"),
                   QKeySequence(Qt::Key_F9), "breakpoint");
  breakOnBad = add("break-on-bad", tr("Bre&ak on NaN"), tr("Stops after an op that first makes NaN or Inf"),
                   QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_N), "break-bad");
  breakOnBad->setCheckable(true);
  toCursor->setIconText(tr("To Cursor"));
}

void WindowActions::addValueActions() {
  recompute =
      add("recompute", tr("&Recompute It"), tr("What if the chosen saved value were recomputed in the backward?"),
          QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_R));
  save =
      add("save-value", tr("&Save for the Backward"), tr("What if the recomputed value were saved for the backward?"),
          QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S));
  save->setIconText(tr("Keep Saved"));  // on buttons
  walkToRoot =
      add("walk-to-root", tr("Wa&lk to the Root"), tr("Leads from a NaN or Inf back to the op that produced it"),
          QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_W));
  checkRun = add("check-run", tr("&Check the Run"),
                 tr("Runs the whole model separately and reports the first NaN or Inf"), {});
  checkGradient = add("check-gradient", tr("Check the &Gradient"),
                      tr("Compares the gradient of the selected op, or of the range in Checks, with finite differences "
                         "and LibTorch's autograd"),
                      QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_G));
  terms = add("terms", tr("&Terms of Its Gradient"),
              tr("Lists what the chosen value's gradient is summed up from, each with its norm"),
              QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_T));
  compare = add("compare-runs", tr("Co&mpare Runs"),
                tr("Runs this model and another one op by op and shows where they diverge"),
                QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_D));
  // Next to what is checked or compared, on a button, a word will do.
  checkGradient->setIconText(tr("Check"));
  terms->setIconText(tr("Terms"));
  compare->setIconText(tr("Compare"));
  watch = add("watch", tr("&Watch"), tr("Shows the chosen value after each stop, or no longer"),
              QKeySequence(Qt::CTRL | Qt::Key_T));
  fill = add("fill", tr("&Fill With..."),
             tr("Puts one number into every element of the chosen value; the run goes on with it"),
             QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F));
  saveContents = add("save-contents", tr("Sa&ve Contents..."),
                     tr("Writes the chosen value's elements to a .npy or .safetensors file"),
                     QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_E));
}

void WindowActions::allow(QAction* action, const QString& reason) {
  action->setEnabled(reason.isEmpty());
  action->setProperty(reasonProperty, reason);
  auto name = action->text();
  name.remove(QLatin1Char('&')).remove(QStringLiteral("..."));
  const auto key = action->shortcut().toString(QKeySequence::NativeText);
  const auto what = reason.isEmpty() ? action->property(tipProperty).toString() : reason;
  action->setToolTip((key.isEmpty() ? name : QStringLiteral("%1 (%2)").arg(name, key)) + QLatin1Char('\n') + what);
  action->setStatusTip(what);
}

void WindowActions::refreshTips() {
  for (auto* action : all_) allow(action, action->property(reasonProperty).toString());
}

QString WindowActions::stopFirst() const {
  const auto key = stop->shortcut().toString(QKeySequence::NativeText);
  return key.isEmpty() ? tr("It runs: stop it first") : tr("It runs: stop it first (%1)").arg(key);
}

QString WindowActions::reasonFor(const QKeySequence& keys) const {
  for (const auto* action : all_)
    if (!action->isEnabled() && !action->shortcut().isEmpty() && action->shortcut() == keys)
      return QString(action->text()).remove(QLatin1Char('&')) + QStringLiteral(": ") +
             action->property(reasonProperty).toString();
  return {};
}

void WindowActions::updateIcons() {
  for (auto* action : all_)
    if (const auto name = action->property(iconProperty).toString(); !name.isEmpty())
      action->setIcon(context_.theme->icon(name));
}

void WindowActions::update() {
  const auto document = context_.controller->document();
  const auto nothingOpen = document ? QString() : tr("No file is open");
  for (auto* action : {reload, inputs, find, findNext, findPrevious, foldAll, unfoldAll}) allow(action, nothingOpen);
  if (context_.controller->opening()) {
    allow(reload, tr("A file is being read"));
    allow(inputs, tr("A file is being read"));
  }
  const auto selected = context_.selection->op();
  const auto nothingSelected = !document ? nothingOpen : selected ? QString() : tr("No op is selected");
  auto noOrigin = nothingSelected;
  if (selected && document) {
    const bool linked = context_.history->returnFrom(selected) || context_.selection->origin();
    if (!linked) noOrigin = tr("This op comes from no op: its value is an input of the graph");
  }
  allow(origin, noOrigin);
  allow(goTo, nothingOpen);
  for (auto* action : {references, nextUse, previousUse}) allow(action, nothingSelected);
  allow(back, context_.history->canGoBack() ? QString() : tr("No jump to go back from"));
  allow(forward, context_.history->canGoForward() ? QString() : tr("No jump to repeat"));
  updateEdits();
  updateRun();
  updateQuestions();
  for (const auto& [action, reason] : reasons_) allow(action, reason());
}

void WindowActions::noteNoGain(ValueId value, const QString& reason) {
  noGain_[value] = reason;
  update();
}

void WindowActions::allowUnless(QAction* action, std::function<QString()> reason) {
  allow(action, reason());
  reasons_.emplace_back(action, std::move(reason));
}

void WindowActions::updateQuestions() {
  const auto document = context_.controller->document();
  const auto& now = context_.execution->now();
  const auto op = context_.selection->op();
  const auto value = context_.selection->chosenValue();
  const auto closed = !document                        ? tr("No file is open")
                      : !document->analysis->derived() ? tr("There is no forward and backward: see Problems")
                                                       : QString();
  const auto selected = !closed.isEmpty() ? closed : op ? QString() : tr("No op is selected");
  const auto chosen = !closed.isEmpty() ? closed : value ? QString() : tr("No value is selected");
  auto noRun = !closed.isEmpty() ? closed : now.available ? QString() : now.unavailableReason;
  if (noRun.isEmpty() && now.running) noRun = stopFirst();
  auto notSaved = selected, notRecomputed = selected;
  if (selected.isEmpty()) {
    const auto saved = savedValueOf(*document, op, context_.selection->value());
    if (!saved) notSaved = tr("The selected op has no value that is saved for the backward");
    else if (const auto known = noGain_.find(saved); known != noGain_.end()) notSaved = known->second;
    if (!recomputationOf(*document->analysis, op))
      notRecomputed = tr("The backward does not recompute the selected op");
  }
  allow(recompute, notSaved);
  allow(save, notRecomputed);
  for (auto* action : {walkToRoot, checkRun, checkGradient, compare}) allow(action, noRun);
  allow(terms, !noRun.isEmpty() ? noRun : chosen);
  allow(watch, chosen);
  const auto& watches = context_.execution->watches();
  watch->setText(std::ranges::find(watches, value) == watches.end() ? tr("&Watch") : tr("No Longer &Watch"));
  auto absent = !noRun.isEmpty() ? noRun : chosen, unknown = absent;
  if (const auto& report = context_.controller->questions().values();
      absent.isEmpty() && report && report->position == now.position)
    for (const auto& row : report->rows)
      if (row.value == value) {
        const auto reason = [&](const std::string& why) {
          return row.state.number ? tr("The chosen value is a number")
                                  : tr("The chosen value is not there: %1").arg(toQt(why));
        };
        if (row.state.number || !row.absentNow.empty()) absent = reason(row.absentNow);
        if (!row.statistics) unknown = reason(row.state.reason);
      }
  allow(fill, absent);
  allow(saveContents, unknown);
}

void WindowActions::updateEdits() {
  const auto& edits = context_.controller->edits();
  const auto name = [](const QString& word, const QString& what) {
    return what.isEmpty()
               ? word
               : QStringLiteral("%1: %2").arg(word, QString(what).replace(QLatin1Char('&'), QStringLiteral("&&")));
  };
  undo->setText(name(tr("&Undo"), edits.undoText()));
  redo->setText(name(tr("&Redo"), edits.redoText()));
  allow(undo, edits.canUndo() ? QString() : tr("Nothing was adopted here"));
  allow(redo, edits.canRedo() ? QString() : tr("Nothing was taken back"));
}

void WindowActions::updateRun() {
  const auto document = context_.controller->document();
  const auto& now = context_.execution->now();
  const auto selected = context_.selection->op();
  const auto unavailable = !document ? tr("No file is open") : now.available ? QString() : now.unavailableReason;
  const auto busy = !unavailable.isEmpty() ? unavailable : now.running && !now.walking ? stopFirst() : QString();
  const auto ahead =
      busy.isEmpty() && !now.running && now.position >= now.size ? tr("At the end: step back or restart") : busy;
  const auto behind =
      busy.isEmpty() && !now.running && now.position == 0 ? tr("At the start: nothing has run yet") : busy;
  for (auto* action : {resume, stepOver, stepInto, stepOut}) allow(action, ahead);
  for (auto* action : {resumeBack, stepOverBack, stepIntoBack, stepOutBack, restart}) allow(action, behind);
  for (auto* action : {resume, resumeBack, restart, toCursor})
    if (busy.isEmpty() && now.running) allow(action, tr("It steps: wait or stop it"));
  const auto target = document ? document->program.executed(selected) : BoundSymbolId();
  const auto noTarget = !unavailable.isEmpty() ? unavailable
                        : !selected            ? tr("No op is selected")
                        : target               ? QString()
                                               : tr("The selected op is not among those that run");
  allow(breakpoint, noTarget);
  if (!now.running || !busy.isEmpty()) allow(toCursor, !busy.isEmpty() ? busy : noTarget);
  allow(pause, now.running ? QString() : tr("Nothing runs"));
  allow(stop, now.running || context_.controller->opening() || context_.controller->questions().asking()
                  ? QString()
                  : tr("Nothing runs"));
  allow(toExecution, !unavailable.isEmpty() ? unavailable
                     : now.current          ? QString()
                                            : tr("At the end: no op runs next"));
  allow(breakOnBad, unavailable);
  breakOnBad->setChecked(now.breakOnBadNumber);
}

}  // namespace retrograd::views
