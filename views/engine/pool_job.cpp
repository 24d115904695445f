#include "views/engine/pool_job.h"

#include <QCoreApplication>
#include <QPointer>
#include <chrono>

namespace retrograd::views {

QThreadPool& PoolJob::pool() {
  static QPointer<QThreadPool> pool;
  if (!pool) pool = new QThreadPool(QCoreApplication::instance());
  return *pool;
}

PoolJob::~PoolJob() { stop_.request_stop(); }

void PoolJob::cancel() {
  stop_.request_stop();
  ++number_;
  busy_ = false;
}

void PoolJob::start(Work work) {
  cancel();
  stop_ = std::stop_source();
  busy_ = true;
  const auto deliver = [self = QPointer(this), number = number_](const Deliver& answer) {
    // The application outlives the object, which must only be looked at on its own thread.
    if (!QCoreApplication::instance()) return;
    QMetaObject::invokeMethod(
        QCoreApplication::instance(),
        [self, number, answer] {
          if (!self || self->number_ != number) return;
          self->busy_ = false;
          if (answer) answer();
        },
        Qt::QueuedConnection);
  };
  const auto report = [self = QPointer(this), number = number_, last = std::chrono::steady_clock::time_point()](
                          std::string_view stage, double fraction) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(33)) return;
    last = now;
    if (!QCoreApplication::instance()) return;
    QMetaObject::invokeMethod(
        QCoreApplication::instance(),
        [self, number, stage = QString::fromUtf8(stage.data(), static_cast<qsizetype>(stage.size())), fraction] {
          if (self && self->number_ == number) Q_EMIT self->progressed(stage, fraction);
        },
        Qt::QueuedConnection);
  };
  pool().start([work = std::move(work), deliver, report, stop = stop_.get_token()] {
    Deliver answer;
    try {
      answer = work(Progress(stop, report));
    } catch (const Error&) {           // cancelled, or the document does not answer this
    } catch (const std::bad_alloc&) {  // what was asked for stays without an answer, the window stays
    }
    deliver(answer);
  });
}

}  // namespace retrograd::views
