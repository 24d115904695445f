#include "core/torch/tracing/thread_scope.h"

#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

namespace retrograd {
namespace {

thread_local int mostOfRun = 0;  // 0: no RunThreads lives

int setMost(int most) {
  const auto before = mostOfRun;
  mostOfRun = most > 0 ? most : before > 0 ? before : at::get_num_threads();
  return before;
}

}  // namespace

std::string libTorchVersion() { return TORCH_VERSION; }

void setThreads(int count) {
  if (count > 0) at::set_num_threads(count);
}

int threadCount() { return at::get_num_threads(); }

ThreadScope::ThreadScope(int threads) : before_(at::get_num_threads()) {
  if (threads > 0 && threads != before_) at::set_num_threads(threads);
}

ThreadScope::~ThreadScope() {
  if (at::get_num_threads() != before_) at::set_num_threads(before_);
}

RunThreads::RunThreads(int most) : mostBefore_(setMost(most)), one_(1) {}
RunThreads::~RunThreads() { mostOfRun = mostBefore_; }
int RunThreads::forLargeWork() { return mostOfRun; }
int RunThreads::forSmallWork() { return mostOfRun > 0 ? 0 : 1; }

}  // namespace retrograd
