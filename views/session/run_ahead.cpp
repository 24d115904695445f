#include "views/session/run_ahead.h"

#include <mutex>

namespace retrograd::views {

/// Reports news as it comes, from the worker; nothing any more once its owner let go of it.
struct RunAhead::Listener {
  std::mutex mutex;
  RunAhead* owner = nullptr;
  QElapsedTimer last;

  static void tell(const std::shared_ptr<Listener>& listener, Runner& runner, bool atOnce) {
    constexpr qint64 millisecondsBetween = 50;
    const std::lock_guard lock(listener->mutex);
    if (!listener->owner || (!atOnce && listener->last.isValid() && listener->last.elapsed() < millisecondsBetween))
      return;
    listener->last.start();
    const auto deliver = [listener, owner = listener->owner, news = runner.news()] {
      if (owner->listener_ == listener) owner->numbers_.add(news);
    };
    QMetaObject::invokeMethod(listener->owner, deliver, Qt::QueuedConnection);
  }
};

struct RunAhead::Slice {
  std::size_t from = 0, known = 0;
  QString failure;
};

namespace {

const QString aheadTag = QStringLiteral("ahead");
constexpr qint64 longestOnOpen = 4000, sliceOnOpen = 30;  // milliseconds
constexpr double smallRun = 2;                            // seconds

}  // namespace

RunAhead::RunAhead(OpenState& state, QObject* parent) : QObject(parent), state_(state) {
  connect(state_.execution, &ExecutionState::changed, this, [this] {
    if (!state_.execution->now().running) refresh();
  });
}

RunAhead::~RunAhead() {
  numbers_.blockSignals(true);  // who listens may be half gone
  forget();
}

void RunAhead::begin() {
  forget();
  if (!state_.document || !state_.slot || !state_.execution->now().available) return;
  numbers_.reset(state_.document->analysis, state_.document->program.positions(), state_.document->intended);
  listener_ = std::make_shared<Listener>();
  listener_->owner = this;
  const auto listen = [listener = listener_, bytes = keptBytes_](Runner& runner) -> Worker::Deliver {
    runner.setKeptBytes(bytes);
    runner.setOnNews([&runner, listener] { Listener::tell(listener, runner, false); });
    return {};
  };
  state_.onRunner(QStringLiteral("listen"), listen);
  if (!runsOnOpen_ || state_.document->seconds >= smallRun) return;
  running_ = true;
  time_.start();
  slice(Why::onOpen);
  Q_EMIT changed();
}

void RunAhead::forget() {
  if (listener_) {
    const std::lock_guard lock(listener_->mutex);
    listener_->owner = nullptr;
  }
  listener_.reset();
  running_ = false;
  numbers_.reset({}, {});
}

void RunAhead::runAll() {
  if (!listener_ || !state_.slot) return;
  running_ = true;
  slice(Why::asked);
  Q_EMIT changed();
}

void RunAhead::cancel() {
  if (state_.worker) state_.worker->cancel(state_.owner, aheadTag);
}

void RunAhead::setKeptBytes(std::int64_t bytes) {
  keptBytes_ = bytes;
  if (!listener_) return;
  state_.onRunner(QStringLiteral("kept bytes"), [bytes](Runner& runner) -> Worker::Deliver {
    runner.setKeptBytes(bytes);
    return {};
  });
}

void RunAhead::slice(Why why) {
  Worker::Job job;
  job.tag = aheadTag;
  if (why == Why::asked) job.title = tr("Running ahead");
  job.work = [this, why, slot = state_.slot, engine = state_.engine, listener = listener_,
              size = numbers_.size()](const Progress& progress) -> Worker::Deliver {
    Slice slice;
    if (!slot->runner) return {};
    auto& runner = *slot->runner;
    slice.from = slice.known = runner.known();
    try {
      if (why == Why::asked) {
        runner.runAhead(size, 0, progress);
      } else {
        // The memory for kept values and for what ops take, both within a quarter of what is free.
        const auto free = engine->freeMemory();
        const auto budget = std::max<std::int64_t>((free + runner.keptBytes()) / 4 - runner.keptBytes(), 1);
        QElapsedTimer time;
        time.start();
        for (auto known = slice.from; known < size && time.elapsed() < sliceOnOpen; known = runner.known()) {
          runner.runAhead(known + 1, budget, progress);
          if (runner.known() == known) break;
        }
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      slice.failure = QString::fromStdString(error.what());
    }
    slice.known = runner.known();
    Listener::tell(listener, runner, true);
    return [this, why, slice, listener] {
      if (listener == listener_) sliceDone(why, slice);
    };
  };
  job.failed = [this, why, listener = listener_](const Error& error) {
    if (listener != listener_) return;
    if (why == Why::asked && error.code() != ErrorCode::cancelled) Q_EMIT failed(QString::fromStdString(error.what()));
    end();
  };
  state_.worker->post(state_.owner, std::move(job));
}

void RunAhead::sliceDone(Why why, const Slice& done) {
  // A run that ends for want of memory, or by an error, ends in silence when nobody asked for it; the op is marked.
  if (!done.failure.isEmpty() && done.known < numbers_.size())
    numbers_.setFailed(state_.document->analysis->joint.ops[done.known], done.failure);
  if (!done.failure.isEmpty() && why == Why::asked) Q_EMIT failed(tr("The run ahead ended: %1").arg(done.failure));
  const bool goesOn = why == Why::onOpen && done.failure.isEmpty() && done.known < numbers_.size() &&
                      done.known > done.from && time_.elapsed() < longestOnOpen;
  if (goesOn) return slice(why);
  end();
}

void RunAhead::end() {
  running_ = false;
  Q_EMIT changed();
}

void RunAhead::refresh() {
  if (!listener_) return;
  state_.onRunner(QStringLiteral("news"), [listener = listener_](Runner& runner) -> Worker::Deliver {
    Listener::tell(listener, runner, true);
    return {};
  });
}

}  // namespace retrograd::views
