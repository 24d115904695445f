#include "views/jobs/open_job_log.h"

#include "views/text/format.h"

namespace retrograd::views {

OpenJobLog::OpenJobLog(DocumentController* controller, QObject* parent) : QObject(parent), controller_(controller) {
  connect(controller_, &DocumentController::documentAboutToChange, this, [this] {
    job_.cancel();
    log_.reset();
    why_.clear();
    then_ = {};
    looked_ = wanted_ = false;
  });
  connect(controller_, &DocumentController::documentChanged, this, &OpenJobLog::look);
}

QString OpenJobLog::reason() const {
  if (!controller_->document()) return tr("No file is open");
  return looked_ ? why_ : tr("The file is being read");
}

void OpenJobLog::look() {
  const auto& document = controller_->document();
  if (document) {
    job_.start([this, path = document->request.path](const Progress&) -> PoolJob::Deliver {
      bool is = false;
      try {
        is = jobs::isJobLog(path);
      } catch (const Error&) {
        is = false;  // it is gone
      }
      return [this, is] {
        looked_ = true;
        if (!is) why_ = tr("The open file is not a log of torch.compile");
        if (is && wanted_) read();
        Q_EMIT changed();
      };
    });
  }
  Q_EMIT changed();
}

void OpenJobLog::want(std::function<void()> then) {
  if (log_) {
    if (then) then();
    return;
  }
  if (then) then_ = std::move(then);
  if (std::exchange(wanted_, true)) return;
  if (looked_ && why_.isEmpty() && controller_->document()) read();
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
