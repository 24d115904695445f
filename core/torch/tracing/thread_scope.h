#pragma once

namespace retrograd {

/// Threads that LibTorch's kernels use at present.
int threadCount();

/// While it lives, kernels use this many threads; afterwards as many as before. 0 leaves them as they are.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

}  // namespace retrograd
