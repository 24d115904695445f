#include "core/torch/execution/op_clock.h"

#include <chrono>
#include <deque>

#include "core/torch/execution/cuda/gpu.h"
#include "core/trace/relocate.h"

namespace retrograd {
namespace {

constexpr std::size_t mostOpen = 4096;  // then those that were reached are read, without waiting

/// An event of the pool; several ops may share it.
using Event = std::shared_ptr<void>;

class EventPool {
 public:
  explicit EventPool(cuda::Gpu& gpu) : gpu(gpu) {}
  ~EventPool() {
    for (auto* event : free_) gpu.destroyEvent(event);
  }
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  Event recorded() {
    void* event = nullptr;
    if (free_.empty()) event = gpu.createEvent();
    else event = free_.back(), free_.pop_back();
    Event owned(event, [this](void* done) { free_.push_back(done); });
    gpu.record(event);
    return owned;
  }

  cuda::Gpu& gpu;

 private:
  std::vector<void*> free_;
};

}  // namespace

struct OpClock::Impl {
  using Clock = std::chrono::steady_clock;

  struct Span {
    Event begin, end;
    double* seconds;
  };

  explicit Impl(Device d) : device(d) {}

  EventPool& events() {
    if (!pool) pool = std::make_unique<EventPool>(cuda::gpu(withIndex(device).index));
    return *pool;
  }

  void read() {
    const auto& span = open.front();
    *span.seconds = pool->gpu.secondsBetween(span.begin.get(), span.end.get());
    open.pop_front();
  }

  const Device device;
  Clock::time_point start;
  std::unique_ptr<EventPool> pool;  // before what has events of it
  Event begun, last;                // of the op that runs; the end of the one before it, where nothing came between
  std::deque<Span> open;
};

OpClock::OpClock(Device device) : impl_(std::make_unique<Impl>(device)) {}
OpClock::~OpClock() = default;

void OpClock::begin() {
  impl_->start = Impl::Clock::now();
  if (impl_->device.type != Device::Type::cuda) return;
  impl_->begun = impl_->last ? std::move(impl_->last) : impl_->events().recorded();
}

void OpClock::end(double& seconds) {
  seconds = std::chrono::duration<double>(Impl::Clock::now() - impl_->start).count();
  if (!impl_->begun) return;
  impl_->last = impl_->events().recorded();
  impl_->open.push_back({std::move(impl_->begun), impl_->last, &seconds});
  impl_->begun.reset();
  if (impl_->open.size() < mostOpen) return;
  while (!impl_->open.empty() && impl_->pool->gpu.isReached(impl_->open.front().end.get())) impl_->read();
}

void OpClock::interrupted() { impl_->last.reset(); }

void OpClock::settle() {
  interrupted();
  if (impl_->open.empty()) return;
  impl_->pool->gpu.wait(impl_->open.back().end.get());
  while (!impl_->open.empty()) impl_->read();
}

void OpClock::forget() {
  impl_->begun.reset();
  impl_->last.reset();
  impl_->open.clear();
}

}  // namespace retrograd
