// File > Save Session As: what is open as it is now, with the partition that was chosen here and the notes, to one file
// that opens again or goes to somebody else.
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QStatusBar>

#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const QString tag = QStringLiteral("save-session ");  // and the path: saving to another one takes nobody's place

QString withWeights() { return tr("Session with its weights inside (*.retrograd)"); }

/// model.pt2 as model.retrograd; a session's own name is taken.
QString suggestion(const QString& opened) {
  const QFileInfo file(opened);
  const auto name = file.suffix() == QLatin1String("retrograd") ? file.completeBaseName() + QStringLiteral("-2")
                                                                : file.completeBaseName();
  return file.dir().filePath(name + QStringLiteral(".retrograd"));
}

void save(MainWindow& window, const QString& path, bool embed) {
  auto* messages = &window.messages();
  const auto shown = QDir::toNativeSeparators(path);
  const auto& document = window.context().controller->document();
  if (!document) return;
  if (const QFileInfo target(path);
      target.exists() && target.canonicalFilePath() == QFileInfo(toQt(document->request.path)).canonicalFilePath())
    return messages->show(MessageBar::Kind::error,
                          tr("The session was not saved: %1 is open here, choose another name").arg(shown));
  window.context().controller->questions().ask(
      &window, tag + path, tr("Saving the session"),
      [path, shown, embed, status = window.statusBar()](const QuestionContext& context,
                                                        const Progress& progress) -> Worker::Deliver {
        context.engine.save(*context.document.analysis, context.document.request.path, path.toStdString(), embed,
                            progress);
        return [path, shown, status] {
          status->showMessage(tr("Written: %1 (%2)").arg(shown, bytesText(QFileInfo(path).size())), 15000);
        };
      },
      [messages](const QString& problem) {
        messages->show(MessageBar::Kind::error, problem.isEmpty()
                                                    ? tr("Saving the session was cancelled; nothing was written")
                                                    : tr("The session was not saved: %1").arg(problem));
      });
}

void askForPath(MainWindow& window) {
  const auto opened = toQt(window.context().controller->document()->request.path);
  auto* dialog = named(new QFileDialog(&window, tr("Save Session As")), "session-path");
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(QStringLiteral("retrograd"));
  dialog->setNameFilters({tr("Session that refers to the model's file (*.retrograd)"), withWeights()});
  const auto suggested = suggestion(opened);
  dialog->setDirectory(QFileInfo(suggested).dir());
  dialog->selectFile(QFileInfo(suggested).fileName());
  QObject::connect(dialog, &QFileDialog::fileSelected, &window, [&window, dialog](const QString& path) {
    save(window, path, dialog->selectedNameFilter() == withWeights());
  });
  dialog->open();
}

const WindowPart saveSessionPart(PartOrder::saveSession, [](MainWindow& window) {
  auto& actions = window.actions();
  auto* action = actions.add(
      "save-session", tr("S&ave Session As..."),
      tr("Writes the traces as they are now, with the chosen partition, inputs and notes, to a file that opens again"),
      QKeySequence(Qt::CTRL | Qt::Key_S));
  actions.allowUnless(
      action, [&window] { return window.context().controller->document() ? QString() : tr("No file is open"); });
  QObject::connect(action, &QAction::triggered, &window, [&window] { askForPath(window); });
  window.menu("file")->insertAction(actions.close, action);
});

}  // namespace
}  // namespace retrograd::views
