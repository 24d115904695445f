#pragma once
#include <QObject>
#include <QString>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/progress.h"

namespace retrograd::views {

/// The one thread that owns LibTorch: reading, tracing and execution happen there and only there.
///
/// Jobs wait in a queue under a tag. A newer job drops an older one of its tag that has not begun, of which nothing
/// more is heard; with `replaceRunning` it also asks a running one of its tag to stop. What a job returns is called on
/// the owner's thread, unless the job was cancelled or the owner is gone. All public functions are for the thread that
/// made the Worker; none of them waits.
class Worker : public QObject {
  Q_OBJECT

 public:
  /// Called on the owner's thread with the job's result.
  using Deliver = std::function<void()>;
  /// Runs on the worker; throws retrograd::Error. May return nothing to deliver.
  using Work = std::function<Deliver(const Progress&)>;
  /// Called on the owner's thread; an error of code cancelled says that it was cancelled.
  using Failed = std::function<void(const Error&)>;

  struct Job {
    QString tag;    ///< empty: neither drops nor is dropped
    QString title;  ///< for people: "Opening model.pt2"
    bool replaceRunning = false;
    Work work;
    Failed failed;
  };

  explicit Worker(QObject* parent = nullptr);
  /// Calls `rest` on the worker's thread once whenever nothing was asked of it for so long; for before the first job.
  void setRest(std::function<void()> rest, std::chrono::milliseconds after = std::chrono::seconds(5));
  /// Asks what runs to stop, drops the rest except jobs without an owner, and joins.
  ~Worker() override;

  /// An owner may be null: then nothing is delivered. Results reach `owner` only while it lives.
  void post(QObject* owner, Job job);
  /// Drops what waits under the tag and asks what runs under it to stop. Takes effect between ops.
  void cancel(QObject* owner, const QString& tag);
  /// Drops and stops everything of this owner.
  void cancelAll(QObject* owner);
  bool busy(QObject* owner, const QString& tag) const;
  /// Anything of this owner waits or runs.
  bool busy(QObject* owner) const;

 Q_SIGNALS:
  void started(QObject* owner, const QString& tag, const QString& title);
  /// At most some 30 a second; fraction from 0 to 1.
  void progressed(QObject* owner, const QString& tag, const QString& stage, double fraction);
  void finished(QObject* owner, const QString& tag);

 private:
  struct Entry;
  struct Queue;

  using Filter = std::function<bool(const Entry&)>;
  /// One that matches waits or runs.
  bool holds(const Filter& matches) const;
  /// Takes waiting jobs out of the queue and asks a running one to stop; returns those taken out.
  std::vector<std::shared_ptr<Entry>> dropWhere(const Filter& matches, const Filter& stops);
  void cancelWhere(const Filter& matches);
  static void loop(const std::stop_token& stop, const std::shared_ptr<Queue>& queue, Worker* self);
  static void runEntry(const std::shared_ptr<Queue>& queue, Worker* self, const std::shared_ptr<Entry>& entry);
  void deliver(const std::shared_ptr<Entry>& entry, const Deliver& result, const std::shared_ptr<const Error>& error);
  static void reportProgress(const std::shared_ptr<Queue>& queue, Worker* self, const std::shared_ptr<Entry>& entry,
                             std::string_view stage, double fraction);

  std::shared_ptr<Queue> queue_;
  std::jthread thread_;
};

}  // namespace retrograd::views
