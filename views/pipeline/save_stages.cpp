// Pipeline > Save Stages: each stage as a file that opens as a model of its own.
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>

#include "views/engine/pipeline_engine.h"
#include "views/stages/stage_plan.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const QString tag = QStringLiteral("save-stages ");  // and the folder: saving into another one takes nobody's place

QString whyNot(const ViewContext& context) {
  const auto& document = context.controller->document();
  if (!document) return tr("No file is open");
  if (!document->noRunReason.isEmpty()) return document->noRunReason;
  if (context.stages->busy()) return tr("The model is being cut");
  if (!context.stages->cut() && !context.stages->problem().isEmpty())
    return tr("The cuts asked for are refused: see Stages");
  return context.stages->hasMarks() ? QString() : tr("The model is not cut: cut it first");
}

void save(MainWindow& window, const QString& folder) {
  const auto& context = window.context();
  const auto cut = context.stages->cut();
  if (!cut) return;
  auto* messages = &window.messages();
  context.controller->questions().ask(
      &window, tag + folder, tr("Saving the stages"),
      [cut, folder, messages](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
        auto* engine = context.engine.pipelines();
        if (!engine) throw Error(ErrorCode::badUse, "nothing here can derive the stages");
        engine->writeStages(context.document.analysis, cut->split, cut->notes, folder.toStdString(), progress);
        return [cut, folder, messages] {
          messages->show(MessageBar::Kind::note,
                         tr("%1 stages saved in %2: each stage_N.retrograd there opens as a model of its own")
                             .arg(cut->stages())
                             .arg(QDir::toNativeSeparators(folder)));
        };
      },
      [messages](const QString& message) {
        messages->show(MessageBar::Kind::error, message.isEmpty() ? tr("Saving the stages was cancelled")
                                                                  : tr("The stages were not saved: %1").arg(message));
      });
}

void askForFolder(MainWindow& window) {
  const auto& document = window.context().controller->document();
  const QFileInfo model(toQt(document->request.path));
  auto* dialog = named(new QFileDialog(&window, tr("Folder for the Stages"), model.absolutePath()), "stages-folder");
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::Directory);
  dialog->setOption(QFileDialog::ShowDirsOnly);
  QObject::connect(dialog, &QFileDialog::fileSelected, &window,
                   [&window](const QString& folder) { save(window, folder); });
  dialog->open();
}

const WindowPart saveStagesPart(PartOrder::saveStages, [](MainWindow& window) {
  auto& actions = window.actions();
  auto* action = actions.add(
      "save-stages", tr("Save Sta&ges..."),
      tr("Writes each stage with its weights into a folder, as a file that opens as a model of its own"), {});
  actions.allowUnless(action, [context = window.context()] { return whyNot(context); });
  QObject::connect(action, &QAction::triggered, &window, [&window] { askForFolder(window); });
  window.menu("pipeline")->addAction(action);
});

}  // namespace
}  // namespace retrograd::views
