#include "core/torch/tracing/interceptor.h"

#include <c10/core/SafePyObject.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/PythonDispatcherTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace retrograd {
namespace {

thread_local OpHandler* currentHandler = nullptr;    // below autograd
thread_local OpHandler* calledOpsHandler = nullptr;  // above it

const c10::DispatchKeySet interceptionKeys({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot});

[[noreturn]] void noPython(const char* what) { TORCH_CHECK(false, "no Python here: ", what); }

/// The part of a Python interpreter that dispatch modes need. Everything about Python tensor subclasses is an error:
/// there are none.
struct Vtable final : c10::impl::PyInterpreterVTable {
  std::string name() const override { return "retrograd"; }
  void incref(PyObject*) const override {}
  void decref(PyObject*) const override {}
  bool try_incref(const c10::impl::PyObjectSlot&) const override { return false; }
  size_t refcnt(PyObject*) const override { return 1; }

  // Autograd saves outputs through detach while a mode is active: a plain shallow copy keeps the value's tag.
  c10::intrusive_ptr<c10::TensorImpl> detach(const c10::TensorImpl* self) const override {
    BelowInterception below;
    return self->shallow_copy_and_detach(c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true);
  }
  void dispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack) const override {
    TORCH_CHECK(currentHandler, "an op was intercepted with no handler");
    currentHandler->handle(op, stack);
  }
  void python_dispatcher(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         torch::jit::Stack* stack) const override {
    Unobserved inside;
    if (calledOpsHandler) calledOpsHandler->handle(op, stack);
    else op.redispatchBoxed(keys, stack);
  }

  void reportErrorCallback(PyObject*, c10::DispatchKey) const override {}
  void python_op_registration_trampoline(const c10::OperatorHandle&, c10::DispatchKey, c10::DispatchKeySet,
                                         torch::jit::Stack*, bool, bool) const override {
    noPython("op registration");
  }
  void throw_abstract_impl_not_imported_error(std::string op, const char*, const char*) const override {
    TORCH_CHECK(false, op, " has no shape rule without Python");
  }
  bool is_contiguous(const c10::TensorImpl*, at::MemoryFormat) const override { noPython("is_contiguous"); }
  c10::SymBool sym_is_contiguous(const c10::TensorImpl*, at::MemoryFormat) const override { noPython("is_contiguous"); }
  bool is_strides_like(const c10::TensorImpl*, at::MemoryFormat) const override { noPython("strides"); }
  bool is_non_overlapping_and_dense(const c10::TensorImpl*) const override { noPython("strides"); }
  c10::Device device(const c10::TensorImpl*) const override { noPython("device"); }
  int64_t dim(const c10::TensorImpl*) const override { noPython("dim"); }
  c10::IntArrayRef strides(const c10::TensorImpl*) const override { noPython("strides"); }
  c10::IntArrayRef sizes(const c10::TensorImpl*) const override { noPython("sizes"); }
  c10::SymIntArrayRef sym_sizes(const c10::TensorImpl*) const override { noPython("sizes"); }
  c10::Layout layout(const c10::TensorImpl*) const override { noPython("layout"); }
  int64_t numel(const c10::TensorImpl*) const override { noPython("numel"); }
  c10::SymInt sym_numel(const c10::TensorImpl*) const override { noPython("numel"); }
  c10::SymIntArrayRef sym_strides(const c10::TensorImpl*) const override { noPython("strides"); }
  c10::SymInt sym_storage_offset(const c10::TensorImpl*) const override { noPython("storage_offset"); }
  void trace_gpu_event_creation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_deletion(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_record(c10::DeviceType, uintptr_t, uintptr_t) const override {}
  void trace_gpu_event_wait(c10::DeviceType, uintptr_t, uintptr_t) const override {}
  void trace_gpu_memory_allocation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_memory_deallocation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_stream_creation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_device_synchronization(c10::DeviceType) const override {}
  void trace_gpu_stream_synchronization(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_synchronization(c10::DeviceType, uintptr_t) const override {}
  void reset_backward_hooks(const c10::TensorImpl*) const override {}
};

c10::impl::PyInterpreter* interpreter() {
  static auto* leaked = new c10::impl::PyInterpreter(new Vtable);  // LibTorch may hold it beyond static destruction
  return leaked;
}

}  // namespace

Interception::Interception(OpHandler& handler) : previous_(currentHandler) {
  currentHandler = &handler;
  static int anything;  // a mode needs a non-null Python object; nothing dereferences it but Python
  c10::impl::TorchDispatchModeTLS::push_non_infra_mode_onto_stack(
      std::make_shared<c10::impl::PyObject_TorchDispatchMode>(reinterpret_cast<PyObject*>(&anything), interpreter()));
}

Interception::~Interception() {
  c10::impl::TorchDispatchModeTLS::pop_stack();
  currentHandler = previous_;
}

AboveAutograd::AboveAutograd(OpHandler& handler) {
  calledOpsHandler = &handler;
  c10::impl::PythonDispatcherTLS::set_state(interpreter());
}

AboveAutograd::~AboveAutograd() {
  c10::impl::PythonDispatcherTLS::reset_state();
  calledOpsHandler = nullptr;
}

Unobserved::Unobserved() : guard_(c10::DispatchKey::PythonDispatcher) {}

BelowInterception::BelowInterception() : guard_(interceptionKeys) {}

}  // namespace retrograd
