#include "views/jobs/open_job_log.h"

#include "views/text/format.h"

namespace retrograd::views {

OpenJobLog::OpenJobLog(DocumentController* controller, QObject* parent) : QObject(parent), controller_(controller) {
  connect(controller_, &DocumentController::documentAboutToChange, this, [this] {
    job_.cancel();
    log_.reset();
    why_.clear();
    then_ = {};
    wanted_ = false;
  });
  connect(controller_, &DocumentController::documentChanged, this, [this] {
    if (wanted_ && !job_.busy() && reason().isEmpty()) read();  // asked for while the file was being opened
    Q_EMIT changed();
  });
}

QString OpenJobLog::reason() const {
  const auto& document = controller_->document();
  if (!document) return tr("No file is open");
  return document->analysis->file.format == Format::job ? why_ : tr("The open file is not a log of torch.compile");
}

void OpenJobLog::want(std::function<void()> then) {
  if (log_) {
    if (then) then();
    return;
  }
  if (then) then_ = std::move(then);
  if (std::exchange(wanted_, true)) return;
  if (reason().isEmpty()) read();
}

void OpenJobLog::read() {
  job_.start([this, path = controller_->document()->request.path](const Progress& progress) -> PoolJob::Deliver {
    std::shared_ptr<const jobs::JobLog> log;
    QString why;
    try {
      log = std::make_shared<jobs::JobLog>(jobs::openJobLog(path, progress));
    } catch (const Error& e) {
      why = toQt(e.what());
    }
    return [this, log, why] {
      log_ = log;
      why_ = why;
      Q_EMIT changed();
      if (const auto then = std::exchange(then_, {}); log_ && then) then();
    };
  });
}

}  // namespace retrograd::views
