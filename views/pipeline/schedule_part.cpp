// Pipeline schedules over time: the dock, its command and its place in the menu Pipeline.
#include <QFileDialog>
#include <QStatusBar>

#include "views/docks/memory_dock.h"
#include "views/docks/schedule_dock.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

void askWhere(MainWindow& window, ScheduleDock* dock) {
  const auto lowered = tr("Schedule with its sends and receives (*.csv)");
  const QStringList forms{tr("Drawing (*.svg)"), tr("Schedule (*.csv)"), lowered, tr("All figures (*.json)")};
  const QStringList suffixes{QStringLiteral("svg"), QStringLiteral("csv"), QStringLiteral("csv"),
                             QStringLiteral("json")};
  auto* dialog =
      named(new QFileDialog(&window, tr("Save the Schedule"), {}, forms.join(QStringLiteral(";;"))), "schedule-file");
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(QStringLiteral("svg"));
  QObject::connect(dialog, &QFileDialog::filterSelected, dialog, [dialog, forms, suffixes](const QString& form) {
    dialog->setDefaultSuffix(suffixes.value(forms.indexOf(form)));
  });
  QObject::connect(dialog, &QFileDialog::fileSelected, &window, [&window, dock, dialog, lowered](const QString& path) {
    try {
      dock->save(path, dialog->selectedNameFilter() == lowered);
      window.statusBar()->showMessage(tr("The schedule was written to %1").arg(path), 8000);
    } catch (const Error& error) {
      window.messages().show(MessageBar::Kind::error, QString::fromStdString(error.what()));
    }
  });
  dialog->open();
}

const WindowPart schedulePart(PartOrder::schedule, [](MainWindow& window) {
  const auto& context = window.context();
  auto& actions = window.actions();
  auto* show = actions.add("schedule", tr("S&chedule"), tr("Shows when each rank of a pipeline runs which microbatch"),
                           QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_L));
  auto* save =
      actions.add("save-schedule", tr("Sa&ve Schedule..."),
                  tr("Writes the schedule as a drawing (SVG), as PyTorch's CSV or with all figures (JSON)"), {});
  save->setIconText(tr("Save..."));
  auto* dock = window.addPanel(new ScheduleDock(context, save), tr("Schedule"), Qt::BottomDockWidgetArea,
                               &window.panel<MemoryDock>());
  actions.allowUnless(show, [context] { return context.controller->document() ? QString() : tr("No file is open"); });
  actions.allowUnless(save, [dock] {
    if (!dock->run()) return tr("No schedule was shown yet");
    return dock->run()->runs() ? QString() : tr("The schedule does not run: see Schedule");
  });
  QObject::connect(dock, &ScheduleDock::changed, &actions, &WindowActions::update);
  window.runIn(show, dock);
  QObject::connect(save, &QAction::triggered, &window, [&window, dock] { askWhere(window, dock); });
  auto* menu = window.menu("pipeline", tr("Pi&peline"));
  menu->addSeparator();
  menu->addActions({show, save});
});

}  // namespace
}  // namespace retrograd::views
