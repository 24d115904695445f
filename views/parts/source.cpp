// The Python source behind an op: the dock, its settings, the editor; its line as text.
#include <QApplication>
#include <QClipboard>

#include "core/trace/source.h"
#include "views/dialogs/source_dialog.h"
#include "views/docks/inspector_dock.h"
#include "views/docks/source_dock.h"
#include "views/docks/values_dock.h"
#include "views/settings/editor.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

void editSettings(MainWindow& window, SourceDock* dock) {
  auto* settings = window.shared().settings;
  auto* dialog = new SourceDialog(SourcePaths::load(*settings), editorCommand(*settings), &window);
  QObject::connect(dialog, &QDialog::accepted, dock, [dialog, dock, settings] {
    dialog->paths().save(*settings);
    setEditorCommand(*settings, dialog->editor());
    dock->readAgain();
  });
  dialog->open();
}

void findFile(MainWindow& window, SourceDock* dock) {
  const auto name = QFileInfo(dock->file()).fileName();
  chooseFile(&window, tr("Find %1").arg(name), QFileInfo(window.windowFilePath()).absolutePath(),
             tr("%1 (%1);;Python (*.py);;All files (*)").arg(name), dock, &SourceDock::useFile);
}

const WindowPart sourcePart(PartOrder::source, [](MainWindow& window) {
  auto& actions = window.actions();
  auto* show = actions.add("source", tr("Sour&ce"), tr("Shows the Python source that the selected op comes from"),
                           QKeySequence(Qt::CTRL | Qt::Key_U));
  auto* edit = actions.add("open-in-editor", tr("Open in &Editor"),
                           tr("Opens the source at its line in the editor of Source Settings"),
                           QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_U));
  auto* copy = actions.add("copy-line-of-python", tr("Copy Line of P&ython"),
                           tr("Copies file and line that the selected op comes from, as model.py:31"), {});
  auto* find = actions.add("find-source", tr("Find Fi&le..."),
                           tr("Asks where the file is; files next to it are then found too"), {});
  auto* settings = actions.add("source-settings", tr("Source Se&ttings..."),
                               tr("Where sources lie that were exported elsewhere, and the command of the editor"), {});
  auto* dock =
      window.addPanel(new SourceDock(window.pinnable("dock-source"), window.shared().settings, {edit, find, settings}),
                      tr("Source"), Qt::BottomDockWidgetArea, &window.panel<ValuesDock>());
  const auto noSource = [&window] {
    const auto& selection = *window.context().selection;
    if (!selection.analysis()) return tr("No file is open");
    if (!selection.op()) return tr("No op is selected");
    return sourceOf(*selection.analysis()->document, selection.op()).empty() ? tr("The selected op has no source")
                                                                             : QString();
  };
  for (auto* action : {edit, copy, find}) actions.allowUnless(action, noSource);
  window.runIn(show, dock);
  window.runIn(edit, dock, [&window](SourceDock* source) {
    if (editorCommand(*window.shared().settings).isEmpty()) return editSettings(window, source);
    source->openInEditor();
  });
  QObject::connect(copy, &QAction::triggered, &window, [&window] {
    const auto& selection = *window.context().selection;
    const auto* frame = shownFrame(sourceOf(*selection.analysis()->document, selection.op()));
    QApplication::clipboard()->setText(QStringLiteral("%1:%2").arg(toQt(frame->file)).arg(frame->line));
  });
  window.runIn(find, dock, [&window](SourceDock* source) { findFile(window, source); });
  QObject::connect(settings, &QAction::triggered, dock, [&window, dock] { editSettings(window, dock); });
  QObject::connect(dock, &SourceDock::placeChosen, &window, [&window](BoundSymbolId op) { window.jumpTo(op); });
  QObject::connect(&window.panel<InspectorDock>(), &InspectorDock::frameChosen, dock, [&window, dock](int frame) {
    window.showPanel(*dock);
    dock->chooseFrame(frame);
  });
  QObject::connect(dock, &SourceDock::failed, &window,
                   [&window](const QString& message) { window.messages().show(MessageBar::Kind::warning, message); });
  auto* go = window.menu("go");
  go->addSeparator();
  go->addActions({show, edit, copy, find, settings});
});

}  // namespace
}  // namespace retrograd::views
