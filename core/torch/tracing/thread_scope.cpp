#include "core/torch/tracing/thread_scope.h"

#include <ATen/Parallel.h>

namespace retrograd {

int threadCount() { return at::get_num_threads(); }

ThreadScope::ThreadScope(int threads) : before_(at::get_num_threads()) {
  if (threads > 0 && threads != before_) at::set_num_threads(threads);
}

ThreadScope::~ThreadScope() {
  if (at::get_num_threads() != before_) at::set_num_threads(before_);
}

}  // namespace retrograd
