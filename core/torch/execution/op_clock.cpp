#include "core/torch/execution/op_clock.h"

#include <c10/core/Event.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>

#include "core/torch/tracing/convert.h"

namespace retrograd {

struct OpClock::Impl {
  using Clock = std::chrono::steady_clock;

  struct Span {
    c10::Event begin, end;
    double* seconds;
  };

  explicit Impl(Device d) : device(d) {}

  c10::Event mark() const {
    c10::Event event(c10::kCUDA, c10::EventFlag::BACKEND_DEFAULT);  // the flag that keeps times
    event.record(c10::impl::getDeviceGuardImpl(c10::kCUDA)->getStream(toTorchDevice(device)));
    return event;
  }

  const Device device;
  Clock::time_point start;
  std::vector<c10::Event> begun;  // at most one
  std::vector<Span> open;
};

OpClock::OpClock(Device device) : impl_(std::make_unique<Impl>(device)) {}
OpClock::~OpClock() = default;

void OpClock::begin() {
  impl_->start = Impl::Clock::now();
  if (impl_->device.type != Device::Type::cuda) return;
  impl_->begun.clear();
  impl_->begun.push_back(impl_->mark());
}

void OpClock::end(double& seconds) {
  seconds = std::chrono::duration<double>(Impl::Clock::now() - impl_->start).count();
  if (impl_->begun.empty()) return;
  impl_->open.push_back({std::move(impl_->begun.back()), impl_->mark(), &seconds});
  impl_->begun.clear();
}

void OpClock::settle() {
  if (impl_->open.empty()) return;
  impl_->open.back().end.synchronize();
  for (const auto& span : impl_->open) *span.seconds = span.begin.elapsedTime(span.end) * 1e-3;
  impl_->open.clear();
}

void OpClock::forget() {
  impl_->begun.clear();
  impl_->open.clear();
}

}  // namespace retrograd
