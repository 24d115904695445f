#pragma once
#include <QObject>
#include <QThreadPool>
#include <functional>
#include <stop_token>

#include "core/base/progress.h"

namespace retrograd::views {

/// Work that needs no LibTorch, on a thread pool: it never waits behind what the worker runs. A newer job takes the
/// place of the older, which is asked to stop and of which nothing more is heard. All functions are for the thread of
/// the object.
class PoolJob : public QObject {
  Q_OBJECT

 public:
  /// Called on the object's thread.
  using Deliver = std::function<void()>;
  /// Runs on the pool, and must hold on to what it uses itself. Errors end it without an answer.
  using Work = std::function<Deliver(const Progress&)>;

  using QObject::QObject;
  ~PoolJob() override;

  void start(Work work);
  void cancel();
  bool busy() const { return busy_; }

  /// Where all jobs run. Not Qt's own pool: its painter waits for threads of that one when it fills large areas.
  static QThreadPool& pool();

 Q_SIGNALS:
  /// How far the newest job is, from 0 to 1; at most some 30 a second.
  void progressed(const QString& stage, double fraction);

 private:
  std::stop_source stop_;
  quint64 number_ = 0;
  bool busy_ = false;
};

}  // namespace retrograd::views
