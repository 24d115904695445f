#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace retrograd {

/// Sees ATen ops on their way through LibTorch's dispatcher. The stack is as in boxed kernels: arguments on entry,
/// results on return.
class OpHandler {
 public:
  virtual ~OpHandler() = default;
  virtual void handle(const c10::OperatorHandle& op, torch::jit::Stack* stack) = 0;
};

/// While alive, every op that this thread dispatches below Autograd and ADInplaceOrView, above the backend kernels,
/// goes to `handler`: composite ops arrive decomposed. Nests. LibTorch's own extension point for dispatch modes carries
/// it: a PyInterpreter vtable of ours, with no Python behind it.
class Interception {
 public:
  explicit Interception(OpHandler& handler);
  ~Interception();
  Interception(const Interception&) = delete;
  Interception& operator=(const Interception&) = delete;

 private:
  OpHandler* previous_;
};

/// While alive, every op that this thread calls goes to `handler` before Autograd and Autocast: composite ops arrive
/// whole. The ops that kernels call inside do not arrive, nor those that the handler itself calls, so that it runs the
/// op by calling it. Does not nest.
class AboveAutograd {
 public:
  explicit AboveAutograd(OpHandler& handler);
  ~AboveAutograd();
  AboveAutograd(const AboveAutograd&) = delete;
  AboveAutograd& operator=(const AboveAutograd&) = delete;
};

/// While alive, no op reaches an AboveAutograd handler.
class Unobserved {
 public:
  Unobserved();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

/// While alive, ops run on the backend and reach no Interception handler: for use inside OpHandler::handle.
class BelowInterception {
 public:
  BelowInterception();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

}  // namespace retrograd
