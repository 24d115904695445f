#pragma once
namespace c10 {
class WarningHandler;
}

namespace retrograd {

/// While it lives, LibTorch's deterministic mode is on, so that kernels which have a deterministic way take it and what
/// runs again makes the same bits, or is off. Memory that an op leaves uninitialised is not filled. LibTorch's warnings
/// of kernels that have no such way are not printed.
class DeterministicScope {
 public:
  enum class Mode {
    off,     ///< as eager PyTorch runs by default
    on,      ///< where there is no deterministic kernel, eager's
    strict,  ///< where there is none, the op fails; some kernels (attention) have their deterministic way only here
  };
  explicit DeterministicScope(Mode mode = Mode::on);
  ~DeterministicScope();
  DeterministicScope(const DeterministicScope&) = delete;
  DeterministicScope& operator=(const DeterministicScope&) = delete;

 private:
  bool on_, warnOnly_, fill_;
  c10::WarningHandler* handler_;
};

}  // namespace retrograd
