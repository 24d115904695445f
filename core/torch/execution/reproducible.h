#pragma once
namespace c10 {
class WarningHandler;
}

namespace retrograd {

/// While it lives, kernels that have a deterministic way take it, so that what runs again makes the same bits. Memory
/// that an op leaves uninitialised is not filled. LibTorch's warnings of kernels that have no such way (some on GPUs)
/// are not printed.
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
