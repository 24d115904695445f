#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace retrograd {

/// Sees every ATen op that LibTorch dispatches on this thread below Autograd and ADInplaceOrView, above the backend kernels.
/// Composite ops arrive decomposed. The stack is as in boxed kernels: arguments on entry, results on return.
class OpHandler {
 public:
  virtual ~OpHandler() = default;
  virtual void handle(const c10::OperatorHandle& op, torch::jit::Stack* stack) = 0;
};

/// While alive, ops of this thread go to `handler`. Nests. LibTorch's own extension point for dispatch modes carries it: a
/// PyInterpreter vtable of ours, with no Python behind it.
class Interception {
 public:
  explicit Interception(OpHandler& handler);
  ~Interception();
  Interception(const Interception&) = delete;
  Interception& operator=(const Interception&) = delete;

 private:
  OpHandler* previous_;
};

/// While alive, ops run on the backend and reach no handler: for use inside OpHandler::handle.
class BelowInterception {
 public:
  BelowInterception();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

}  // namespace retrograd
