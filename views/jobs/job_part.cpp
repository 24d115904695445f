// The panel for what a log of torch.compile holds with its commands, and File > Open Folder: a job leaves folders of
// logs.
#include <QFileDialog>
#include <QFileInfo>

#include "views/docks/memory_dock.h"
#include "views/findings/finding_board.h"
#include "views/jobs/job_dock.h"
#include "views/jobs/save_plan_dock.h"
#include "views/text/format.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// Of a recorded step the whole check is the second opinion.
bool isStep(const MainWindow& window) {
  const auto& document = window.context().controller->document();
  return document && document->kind == FileKind::step;
}

void askForFolder(MainWindow& window) {
  const auto& document = window.context().controller->document();
  const QFileInfo open(document ? toQt(document->request.path) : QString());
  // Not modal, as in File > Open: what runs goes on.
  auto* dialog = new QFileDialog(&window, tr("Open Folder"), open.absolutePath());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::Directory);
  dialog->setOption(QFileDialog::ShowDirsOnly, false);
  QObject::connect(dialog, &QFileDialog::fileSelected, &window, &MainWindow::openFile);
  dialog->open();
}

/// A log of more than one compile or rank is a question first: which of them? Once for each log that is opened.
void showTreeOfSeveral(MainWindow& window, OpenJobLog& log, JobDock& dock) {
  QObject::connect(&log, &OpenJobLog::changed, &window, [&window, &log, &dock, shown = std::string()]() mutable {
    const auto& document = window.context().controller->document();
    if (!document) return shown.clear();
    if (!log.reason().isEmpty() || shown == document->request.path) return;
    if (!log.log()) return log.want();
    shown = document->request.path;
    std::size_t compiles = 0;
    for (const auto& process : log.log()->processes) compiles += process.compiles.size();
    if (compiles > 1) window.showPanel(dock);
  });
}

/// The listing is not the backward that the job ran: its title says so.
void nameSourceOfBackward(MainWindow& window, const OpenJobLog& log) {
  QObject::connect(&log, &OpenJobLog::changed, &window, [&window, &log] {
    const bool isJob = log.reason().isEmpty();
    window.listings().setBackwardSource(
        isJob ? tr("derived here") : QString(),
        isJob ? tr("Retrograd derived it from the job's forward. Job > Show the Job's Own Graphs has the "
                   "backward that the job ran.")
              : QString());
  });
}

void fillMenu(MainWindow& window, const QList<QAction*>& commands, const QList<QWidget*>& panels) {
  auto* menu = window.menu("job", tr("&Job"));
  menu->addActions(commands);
  menu->addSeparator();
  for (const auto* panel : panels)
    menu->addAction(qobject_cast<QDockWidget*>(panel->parentWidget())->toggleViewAction());
}

const WindowPart jobPart(PartOrder::job, [](MainWindow& window) {
  auto& actions = window.actions();
  auto* folder = actions.add("open-folder", tr("Open &Folder..."),
                             tr("Opens a folder: logs of the ranks of a job, what tlparse wrote, a repro "
                                "folder, graphs recorded from Python"),
                             QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_O));
  QObject::connect(folder, &QAction::triggered, &window, [&window] { askForFolder(window); });
  window.menu("file")->insertAction(actions.openWindow, folder);

  auto* graphs = actions.add("job-graphs", tr("Show the &Job's Own Graphs"),
                             tr("Shows joint, forward and backward of the chosen compile as the log has "
                                "them: the job's own split and saved tensors"),
                             QKeySequence(Qt::CTRL | Qt::Key_J));
  auto* opinion = actions.add(
      "second-opinion", tr("Second &Opinion"),
      tr("Compares the job's own backward of the chosen compile with the one derived from its forward, by value"),
      QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_J));
  graphs->setIconText(tr("Own Graphs"));
  opinion->setIconText(tr("Compare with the Derived Backward"));
  auto* passes =
      actions.add("job-passes", tr("Compare the Passes"),
                  tr("Lists the graphs of the chosen compile as a chain of passes and shows what each of them changed"),
                  QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_P));
  passes->setIconText(tr("Passes"));
  auto* log = new OpenJobLog(window.context().controller, &window);
  auto* dock = window.addPanel(new JobDock(window.context(), log, {graphs, passes, opinion}), tr("Job"),
                               Qt::BottomDockWidgetArea, &window.panel<MemoryDock>());
  for (auto* action : {graphs, passes}) actions.allowUnless(action, [log] { return log->reason(); });
  actions.allowUnless(opinion, [&window, log] { return isStep(window) ? QString() : log->reason(); });
  QObject::connect(log, &OpenJobLog::changed, &actions, &WindowActions::update);
  QObject::connect(graphs, &QAction::triggered, dock, &JobDock::showOwnGraphs);
  window.runIn(passes, dock, &JobDock::askPasses);
  QObject::connect(opinion, &QAction::triggered, dock, [&window, dock] {
    if (isStep(window)) return window.actions().checkRun->trigger();
    window.showPanel(*dock);
    dock->askOpinion();
  });
  QObject::connect(log, &OpenJobLog::changed, dock, [&window, log, dock] {
    auto& board = FindingBoard::of(*window.context().controller);
    if (!log->reason().isEmpty() || board.has(dock->name())) return;
    Report due;
    due.notJudged.push_back({"the job's backward", "it was not compared with the derived one"});
    board.setReport(dock->name(), due, QStringLiteral("second-opinion"));
  });
  auto* plan =
      actions.add("save-plan", tr("S&how the Save Plan"),
                  tr("Lists what the open compile saves for its backward, layer by layer, and how equal layers differ"),
                  QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_J));
  auto* budgets =
      actions.add("save-plan-budgets", tr("&Peaks at Several Budgets"),
                  tr("Splits the model at four budgets of saved bytes and lists the peak of memory of each"), {});
  budgets->setIconText(tr("Budgets"));
  auto* plans = window.addPanel(new SavePlanDock(window.context(), log, budgets), tr("Save Plan"),
                                Qt::BottomDockWidgetArea, &window.panel<MemoryDock>());
  for (auto* action : {plan, budgets}) actions.allowUnless(action, [plans] { return plans->reason(); });
  QObject::connect(plans, &SavePlanDock::changed, &actions, &WindowActions::update);
  window.runIn(plan, plans);
  window.runIn(budgets, plans, &SavePlanDock::askBudgets);
  fillMenu(window, {opinion, graphs, passes, plan, budgets}, {dock, plans});
  showTreeOfSeveral(window, *log, *dock);
  nameSourceOfBackward(window, *log);
});

}  // namespace
}  // namespace retrograd::views
