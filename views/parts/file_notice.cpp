#include "views/parts/file_notice.h"

#include <QFileInfo>
#include <QVBoxLayout>

#include "views/text/format.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const WindowPart fileNoticePart(PartOrder::fileNotice, [](MainWindow& window) {
  auto* column = qobject_cast<QVBoxLayout*>(window.centralWidget()->layout());
  column->insertWidget(
      1, new FileNotice(window.context(), window.centralWidget()));  // under the messages, which come and go
});

}  // namespace

FileNotice::FileNotice(ViewContext context, QWidget* parent) : MessageBar(context.theme, parent), context_(context) {
  setObjectName(QStringLiteral("file-notice"));
  reload_ = addButton();
  reload_->setObjectName(QStringLiteral("file-notice-reload"));
  reload_->setText(tr("Reload"));
  connect(reload_, &QPushButton::clicked, this, &FileNotice::reload);
  connect(this, &MessageBar::dismissed, this, [this] { waiting_ = false; });
  connect(&watch_, &FileWatch::stateChanged, this, &FileNotice::fileChanged);
  connect(context_.controller, &DocumentController::documentChanged, this, &FileNotice::documentChanged);
  // Not within the signal: its sender has not yet let everyone else know that the run is over.
  connect(context_.controller, &DocumentController::openingChanged, this, &FileNotice::reloadIfIdle,
          Qt::QueuedConnection);
  connect(&context_.controller->questions(), &Questions::askingChanged, this, &FileNotice::reloadIfIdle,
          Qt::QueuedConnection);
  connect(context_.execution, &ExecutionState::changed, this, &FileNotice::reloadIfIdle, Qt::QueuedConnection);
}

void FileNotice::documentChanged() {
  const auto& document = context_.controller->document();
  if (document && document->file == watch_.read() && watch_.state() != FileWatch::State::same)
    return tell();  // made of the same contents, partitioned otherwise
  waiting_ = false;
  watch_.watch(document ? toQt(document->request.path) : QString(), document ? document->file : FileStamp());
  hide();
}

void FileNotice::fileChanged() {
  if (watch_.state() == FileWatch::State::same) return hide();  // it came back
  if (watch_.state() == FileWatch::State::gone) waiting_ = false;
  tell();
}

void FileNotice::reload() {
  waiting_ = !waiting_;
  tell();
  reloadIfIdle();
}

void FileNotice::reloadIfIdle() {
  if (isHidden()) return;
  if (waiting_ && !runs() && !context_.controller->opening()) {
    waiting_ = false;
    context_.controller->reload();
  }
  tell();
}

QString FileNotice::whatHappened() const {
  const auto name = QFileInfo(toQt(context_.controller->document()->request.path)).fileName();
  switch (watch_.state()) {
    case FileWatch::State::gone:
      return tr("%1 is no longer there: it was removed or renamed. You can go on with what is open, and reload when "
                "the file is back.")
          .arg(name);
    case FileWatch::State::replaced:
      return tr("%1 was replaced by another file. You can go on with the one that is open.").arg(name);
    case FileWatch::State::cutShort:
      return tr("%1 was cut short on disk, from %2 to %3. A run that needs what is missing stops with an error.")
          .arg(name, bytesText(watch_.read().size), bytesText(watch_.now().size));
    case FileWatch::State::changed:
      return tr("%1 was changed on disk. Numbers read from it from now on may be the new ones: reload it to be sure.")
          .arg(name);
    case FileWatch::State::same: break;
  }
  return {};
}

void FileNotice::tell() {
  auto text = whatHappened();
  const bool isGone = watch_.state() == FileWatch::State::gone;
  if (waiting_) text += tr(" It is reloaded when nothing runs any more.");
  reload_->setVisible(!isGone);
  reload_->setEnabled(!context_.controller->opening());
  reload_->setText(waiting_ ? tr("Do Not Reload") : runs() ? tr("Reload After the Run") : tr("Reload"));
  reload_->setToolTip(waiting_ ? tr("Takes back the reload")
                               : tr("Reads the file again; breakpoints and watches are kept, the run starts again"));
  show(Kind::warning, text);
}

}  // namespace retrograd::views
