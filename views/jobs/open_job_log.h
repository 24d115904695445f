#pragma once
#include <functional>
#include <memory>

#include "core/formats/jobs/job_log.h"
#include "views/engine/pool_job.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// The log of torch.compile that the open document came from. It is read on the thread pool, when somebody first wants
/// it.
class OpenJobLog : public QObject {
  Q_OBJECT

 public:
  explicit OpenJobLog(DocumentController* controller, QObject* parent = nullptr);

  /// Null until it is read.
  const std::shared_ptr<const jobs::JobLog>& log() const { return log_; }
  /// Why there is no log; empty where there is one, read or not.
  QString reason() const;
  /// Reads the log unless that is done, and calls `then` once it is there. A newer `then` takes the place of an older
  /// one.
  void want(std::function<void()> then = {});

 Q_SIGNALS:
  /// The log was read, or the reason changed.
  void changed();

 private:
  void read();

  DocumentController* controller_;
  PoolJob job_;
  std::shared_ptr<const jobs::JobLog> log_;
  QString why_;  ///< there is none
  bool wanted_ = false;
  std::function<void()> then_;
};

}  // namespace retrograd::views
