#include "core/torch/execution/allocator_watch.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>

namespace retrograd {
namespace {

/// Takes the place of PyTorch's profiler: allocators report to it.
struct Reporter : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device device) override {
    if (!device.is_cpu()) return;
    current += bytes;
    peak = std::max(peak, current);
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t current = 0, peak = 0;
};

}  // namespace

struct AllocatorWatch::Impl {
  std::shared_ptr<Reporter> reporter = std::make_shared<Reporter>();
  c10::DebugInfoGuard guard{c10::DebugInfoKind::PROFILER_STATE, reporter};
};

AllocatorWatch::AllocatorWatch() : impl_(std::make_unique<Impl>()) {}
AllocatorWatch::~AllocatorWatch() = default;

std::int64_t AllocatorWatch::current() const { return impl_->reporter->current; }
std::int64_t AllocatorWatch::peak() const { return impl_->reporter->peak; }
void AllocatorWatch::resetPeak() { impl_->reporter->peak = impl_->reporter->current; }

}  // namespace retrograd
