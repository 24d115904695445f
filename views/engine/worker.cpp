#include "views/engine/worker.h"

#include <QElapsedTimer>
#include <QPointer>
#include <algorithm>
#include <exception>

namespace retrograd::views {

struct Worker::Entry {
  QPointer<QObject> owner;
  QObject* ownerKey = nullptr;  ///< compared only, never followed
  Job job;
  std::stop_source stop;
  std::string stage;  ///< guarded by the queue's mutex, as the next three
  double fraction = 0;
  bool reportPending = false;
  QElapsedTimer lastReport;
};

struct Worker::Queue {
  mutable std::mutex mutex;
  std::condition_variable_any ready;
  std::deque<std::shared_ptr<Entry>> waiting;
  std::shared_ptr<Entry> running;
  std::function<void()> rest;
  std::chrono::milliseconds restAfter{};
};

Worker::Worker(QObject* parent) : QObject(parent), queue_(std::make_shared<Queue>()) {
  thread_ = std::jthread([queue = queue_, this](const std::stop_token& stop) { loop(stop, queue, this); });
}

Worker::~Worker() {
  {
    std::lock_guard lock(queue_->mutex);
    // Jobs without an owner tidy up after documents and still run: what they destroy hangs on the worker's thread.
    std::erase_if(queue_->waiting, [](const std::shared_ptr<Entry>& entry) { return entry->ownerKey != nullptr; });
    if (queue_->running) queue_->running->stop.request_stop();
  }
  thread_.request_stop();
  queue_->ready.notify_all();
}

void Worker::setRest(std::function<void()> rest, std::chrono::milliseconds after) {
  std::lock_guard lock(queue_->mutex);
  queue_->rest = std::move(rest);
  queue_->restAfter = after;
}

void Worker::post(QObject* owner, Job job) {
  auto entry = std::make_shared<Entry>();
  entry->owner = owner;
  entry->ownerKey = owner;
  entry->job = std::move(job);
  const auto sameTag = [&](const Entry& other) { return other.ownerKey == owner && other.job.tag == entry->job.tag; };
  const bool replace = entry->job.replaceRunning;
  if (!entry->job.tag.isEmpty()) dropWhere(sameTag, [&](const Entry& other) { return replace && sameTag(other); });
  std::lock_guard lock(queue_->mutex);
  queue_->waiting.push_back(entry);
  queue_->ready.notify_one();
}

void Worker::cancel(QObject* owner, const QString& tag) {
  cancelWhere([&](const Entry& entry) { return entry.ownerKey == owner && entry.job.tag == tag; });
}

void Worker::cancelAll(QObject* owner) {
  cancelWhere([&](const Entry& entry) { return entry.ownerKey == owner; });
}

bool Worker::busy(QObject* owner, const QString& tag) const {
  return holds([&](const Entry& entry) { return entry.ownerKey == owner && entry.job.tag == tag; });
}

bool Worker::busy(QObject* owner) const {
  return holds([&](const Entry& entry) { return entry.ownerKey == owner; });
}

bool Worker::holds(const Filter& matches) const {
  const std::lock_guard lock(queue_->mutex);
  return (queue_->running && matches(*queue_->running)) ||
         std::ranges::any_of(queue_->waiting, [&](const auto& entry) { return matches(*entry); });
}

std::vector<std::shared_ptr<Worker::Entry>> Worker::dropWhere(const Filter& matches, const Filter& stops) {
  std::vector<std::shared_ptr<Entry>> dropped;
  std::lock_guard lock(queue_->mutex);
  std::erase_if(queue_->waiting, [&](const std::shared_ptr<Entry>& entry) {
    if (!matches(*entry)) return false;
    dropped.push_back(entry);
    return true;
  });
  if (queue_->running && stops(*queue_->running)) queue_->running->stop.request_stop();
  return dropped;
}

void Worker::cancelWhere(const Filter& matches) {
  const auto error = std::make_shared<const Error>(ErrorCode::cancelled, "cancelled before it began");
  for (const auto& entry : dropWhere(matches, matches))
    QMetaObject::invokeMethod(this, [this, entry, error] { deliver(entry, {}, error); }, Qt::QueuedConnection);
}

void Worker::loop(const std::stop_token& stop, const std::shared_ptr<Queue>& queue, Worker* self) {
  bool rested = true;  // nothing has run yet
  for (;;) {
    std::shared_ptr<Entry> entry;
    {
      std::unique_lock lock(queue->mutex);
      const auto asked = [&] { return !queue->waiting.empty(); };
      if (!rested && queue->rest && !queue->ready.wait_for(lock, stop, queue->restAfter, asked)) {
        rested = true;
        const auto rest = queue->rest;
        lock.unlock();
        if (!stop.stop_requested()) rest();
        lock.lock();
      }
      queue->ready.wait(lock, stop, asked);
      if (queue->waiting.empty()) return;  // and a stop was asked for
      entry = queue->waiting.front();
      queue->waiting.pop_front();
      queue->running = entry;
    }
    runEntry(queue, self, entry);
    rested = false;
  }
}

void Worker::runEntry(const std::shared_ptr<Queue>& queue, Worker* self, const std::shared_ptr<Entry>& entry) {
  // The Worker joins this thread before it goes, so `self` outlives every call here.
  QMetaObject::invokeMethod(
      self, [self, entry] { Q_EMIT self->started(entry->ownerKey, entry->job.tag, entry->job.title); },
      Qt::QueuedConnection);
  Deliver result;
  std::shared_ptr<const Error> error;
  try {
    const Progress progress(entry->stop.get_token(), [&queue, self, entry](std::string_view stage, double fraction) {
      reportProgress(queue, self, entry, stage, fraction);
    });
    progress.check();
    result = entry->job.work(progress);
  } catch (const Error& e) {
    error = std::make_shared<const Error>(e);
  } catch (const std::exception& e) {
    error = std::make_shared<const Error>(ErrorCode::internal, messageOf(e));
  }
  {
    std::lock_guard lock(queue->mutex);
    queue->running.reset();
  }
  QMetaObject::invokeMethod(
      self, [self, entry, result, error] { self->deliver(entry, result, error); }, Qt::QueuedConnection);
}

void Worker::deliver(const std::shared_ptr<Entry>& entry, const Deliver& result,
                     const std::shared_ptr<const Error>& error) {
  Q_EMIT finished(entry->ownerKey, entry->job.tag);
  if (!entry->owner) return;
  if (error) {
    if (entry->job.failed) entry->job.failed(*error);
  } else if (result) {
    result();
  }
}

void Worker::reportProgress(const std::shared_ptr<Queue>& queue, Worker* self, const std::shared_ptr<Entry>& entry,
                            std::string_view stage, double fraction) {
  constexpr qint64 millisecondsBetweenReports = 33;
  {
    std::lock_guard lock(queue->mutex);
    entry->stage = stage;
    entry->fraction = fraction;
    if (entry->reportPending) return;
    if (entry->lastReport.isValid() && entry->lastReport.elapsed() < millisecondsBetweenReports) return;
    entry->reportPending = true;
    entry->lastReport.start();
  }
  QMetaObject::invokeMethod(
      self,
      [queue, self, entry] {
        std::unique_lock lock(queue->mutex);
        entry->reportPending = false;
        const auto stage = QString::fromStdString(entry->stage);
        const double fraction = entry->fraction;
        lock.unlock();
        Q_EMIT self->progressed(entry->ownerKey, entry->job.tag, stage, fraction);
      },
      Qt::QueuedConnection);
}

}  // namespace retrograd::views
