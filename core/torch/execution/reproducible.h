#pragma once
namespace c10 {
class WarningHandler;
}

namespace retrograd {

/// Threads that LibTorch's kernels use at present.
int threadCount();

/// While it lives, kernels use this many threads; afterwards as many as before.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

/// While it lives, kernels that have a deterministic way take it, so that what runs again makes the same bits. Memory that an op leaves
/// uninitialised is not filled. LibTorch's warnings of kernels that have no such way (some on GPUs) are not printed.
class DeterministicScope {
 public:
  DeterministicScope();
  ~DeterministicScope();
  DeterministicScope(const DeterministicScope&) = delete;
  DeterministicScope& operator=(const DeterministicScope&) = delete;

 private:
  bool on_, warnOnly_, fill_;
  c10::WarningHandler* handler_;
};

}  // namespace retrograd
