// File > Export: what is open to a file, the graph as it is shown among it.
#include <QFileInfo>
#include <QStatusBar>

#include "views/dialogs/export_dialog.h"
#include "views/text/format.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// The graph as it is laid out and coloured now; nothing while it is hidden, laid out or of another trace.
std::optional<GraphSheet> shownGraph(const MainWindow& window, const GraphView& graph, TraceKind kind, bool dark) {
  const auto& document = window.context().controller->document();
  if (!graph.isVisible() || graph.kind() != kind || !graph.picture() || !document) return {};
  const auto file = QFileInfo(toQt(document->request.path)).fileName();
  return GraphSheet{graph.picture(), graph.look(dark), QStringLiteral("%1: %2").arg(file, titleText(kind))};
}

const WindowPart exportMenuPart(PartOrder::exports, [](MainWindow& window) {
  auto* action =
      window.actions().add("export", tr("&Export..."),
                           tr("Traces as text, page, script or table, the graph as a picture, a run as a profile"),
                           QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_X));
  window.actions().allowUnless(
      action, [&window] { return window.context().controller->document() ? QString() : tr("No file is open"); });
  window.menu("file")->insertAction(window.actions().close, action);
  window.menu("file")->insertSeparator(window.actions().close);
  auto* dialog = new ExportDialog(
      window.context(), window.shared().settings,
      [&window](TraceKind kind, bool dark) { return shownGraph(window, window.listings().graph(), kind, dark); },
      &window);
  QObject::connect(action, &QAction::triggered, dialog, [dialog] {
    dialog->show();
    dialog->raise();
    dialog->activateWindow();
  });
  QObject::connect(dialog, &ExportDialog::exported, &window, [&window](const QString& path) {
    window.statusBar()->showMessage(tr("Written: %1 (%2)").arg(path, bytesText(QFileInfo(path).size())), 15000);
  });
});

}  // namespace
}  // namespace retrograd::views
