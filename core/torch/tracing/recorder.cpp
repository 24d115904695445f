#include "core/torch/tracing/recorder.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/PythonFallbackKernel.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/torch/tracing/claimed_cuda.h"
#include "core/torch/tracing/kernel_guards.h"
#include "core/torch/tracing/recorder_call.h"
#include "core/trace/relocate.h"

namespace retrograd {
namespace {

std::uint64_t nextSerial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

/// A ZeroTensor, which formulas make where a gradient is zero, has no memory: nothing can write to it, and LibTorch's
/// ops on it do not keep the dtypes that the engine would restore. In a trace it is a tensor of zeros, which takes the
/// same arguments.
const c10::OperatorHandle& withMemory(const c10::OperatorHandle& op) {
  static const auto zeros = c10::Dispatcher::singleton().findSchemaOrThrow("aten::zeros", "");
  return op.operator_name().name == "aten::_efficientzerotensor" ? zeros : op;
}

/// Ops whose kernels call others that autocast casts, and that no op which autocast casts as a whole calls: there
/// autocast would be off.
bool isMadeOfOps(const c10::OperatorHandle& op) {
  static const std::set<std::string_view> names{"aten::affine_grid_generator"};
  return names.contains(op.operator_name().name);
}

/// The device of the arguments whose autocast is on; none where it is off.
std::optional<c10::DeviceType> autocastDevice(const torch::jit::Stack& arguments) {
  const at::impl::RestorePythonTLSSnapshot asCalled;  // interception hides autocast's key, which says whether it is on
  std::optional<c10::DeviceType> found;
  for (const auto& value : arguments)
    forEachTensor(value, [&](const at::Tensor& tensor) {
      if (found || !tensor.defined() || !tensor.is_floating_point() || !(tensor.is_cpu() || tensor.is_cuda())) return;
      const auto type = tensor.device().type();
      if (at::autocast::is_autocast_enabled(type)) found = type;
    });
  return found;
}

constexpr unsigned char blankByte = 0xA5;

bool isBlank(const at::Tensor& tensor) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  return std::all_of(bytes, bytes + tensor.nbytes(), [](unsigned char byte) { return byte == blankByte; });
}

}  // namespace

Recorder::Recorder(Mode mode, std::optional<c10::Device> claimed)
    : mode_(mode), claimed_(claimed), serial_(nextSerial()) {}

std::optional<c10::Device> Recorder::literalDevice() const {
  return claimed_ && !runsOn(*claimed_) ? std::optional(c10::Device(c10::kCPU)) : std::nullopt;
}

std::int32_t Recorder::newLocal(const at::Tensor& tensor) {
  const auto id = static_cast<std::int32_t>(locals_.size());
  auto tag = c10::make_intrusive<ValueTag>(id, serial_);
  if (auto* old = tagOf(tensor, serial_)) tag->twin = old->twin;
  tensor.unsafeGetTensorImpl()->set_backend_meta(tag);
  locals_.emplace_back();
  describe(id, tensor);
  return id;
}

void Recorder::describe(std::int32_t local, const at::Tensor& tensor) {
  auto& entry = locals_[local];
  entry.meta = metaOf(tensor);
  if (mode_ == Mode::real && claimed_ && tensor.is_cpu() && !entry.meta.wrappedNumber)
    entry.meta.device = toDevice(*claimed_);
  if (tensor.layout() != at::kStrided || !tensor.has_storage()) {
    entry.storage = static_cast<std::int32_t>(keptStorages_.size());
    keptStorages_.emplace_back();
    entry.storageBytes = entry.meta.bytes();
    return;
  }
  auto [it, isNew] =
      storages_.try_emplace(tensor.storage().unsafeGetStorageImpl(), static_cast<std::int32_t>(keptStorages_.size()));
  if (isNew) keptStorages_.push_back(tensor.storage());
  entry.storage = it->second;
  entry.storageBytes = static_cast<std::int64_t>(tensor.storage().nbytes());
}

at::Tensor Recorder::addInput(const TensorMeta& meta, std::int64_t memoryBytes) {
  auto twin = makeMeta(meta, memoryBytes);
  c10::Device device(c10::kCPU);
  if (meta.device.type == Device::Type::cuda) {
    device = toTorchDevice(withIndex(meta.device));
    claimed_ = device;
    claimCuda();
  }
  auto tensor = makeHollow(twin, device);
  newLocal(tensor);
  tagOf(tensor, serial_)->twin = std::move(twin);
  return tensor;
}

at::Tensor Recorder::addRealInput(const at::Tensor& tensor) {
  BelowInterception below;
  auto leaf = tensor.detach();
  newLocal(leaf);
  return leaf;
}

std::int32_t Recorder::localOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return -1;
  adoptFilled();
  if (auto* tag = tagOf(tensor, serial_)) return static_cast<std::int32_t>(tag->id);
  const auto id = newLocal(tensor);
  constants_[id] = tensor;
  if (mode_ == Mode::hollow) tagOf(tensor, serial_)->twin = tensor.is_meta() ? tensor : makeMetaLike(tensor);
  return id;
}

Argument Recorder::encode(const c10::IValue& value, const c10::TypePtr& type, RecordedOp& record) {
  if (mode_ == Mode::real && claimed_ && value.isDevice() && value.toDevice().is_cpu())
    return Argument::ofDevice(toString(toDevice(*claimed_)));
  try {
    return encodeArgument(value, type, [&](const at::Tensor& tensor) {
      if (!tagOf(tensor, serial_))
        if (auto literal = literalOf(tensor)) return *literal;
      record.operands.push_back(localOf(tensor));
      return Argument::ofOperand(std::ssize(record.operands) - 1);
    });
  } catch (const Error& e) {
    throw e.at(symbolName(record.op));
  }
}

/// Some kernels are made of other ops (affine_grid_generator's calls bmm), which autocast casts where it is on. Later
/// the op would run without autocast, so its parts are recorded in its place. False, with nothing recorded, where
/// autocast changes nothing inside or the kernel asks for data.
bool Recorder::handleInParts(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (!isMadeOfOps(op)) return false;
  const auto count = std::ssize(op.schema().arguments());
  const torch::jit::Stack arguments(stack->end() - count, stack->end());
  const auto device = autocastDevice(arguments);
  if (!device) return false;
  const auto begin = ops_.size();
  const auto dependentBefore = dataDependent_.size();
  const auto takeBack = [&] {
    ops_.erase(ops_.begin() + begin, ops_.end());
    dataDependent_.resize(dependentBefore);
  };
  auto parts = arguments;
  try {
    const at::impl::RestorePythonTLSSnapshot asCalled;
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(c10::DispatchKeySet(*device == c10::kCUDA ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU),
                       &parts);
  } catch (const c10::Error&) {
    takeBack();
    return false;
  } catch (const NeedsData&) {
    takeBack();
    return false;
  }
  const auto isCast = [](const RecordedOp& part) { return part.op.operator_name().name == "aten::to"; };
  if (std::none_of(ops_.begin() + begin, ops_.end(), isCast)) {
    takeBack();
    return false;
  }
  stack->erase(stack->end() - count, stack->end());
  stack->insert(stack->end(), parts.begin(), parts.end());
  return true;
}

void Recorder::handle(const c10::OperatorHandle& called, torch::jit::Stack* stack) {
  const auto& op = withMemory(called);
  adoptFilled();
  if (handleInParts(op, stack)) return;
  const auto& schema = op.schema();
  const std::size_t count = schema.arguments().size(), base = stack->size() - count;
  Call call{op, {}, {}, {}, {}, c10::kCPU, RecordedOp{op, {}, {}, {}}};
  call.record.zeroTensor = called.operator_name().name == "aten::_efficientzerotensor";
  std::optional<c10::Device> fromTensor, fromArgument;
  for (std::size_t i = 0; i < count; ++i) {
    auto& value = (*stack)[base + i];
    call.record.pattern.arguments.push_back(encode(value, schema.arguments()[i].real_type(), call.record));
    forEachTensor(value, [&](const at::Tensor& tensor) {
      call.inputs.push_back(tensor);
      if (!fromTensor || fromTensor->is_cpu()) fromTensor = tensor.device();
    });
    if (value.isDevice()) fromArgument = value.toDevice();
    call.arguments.push_back(std::move(value));
  }
  call.device = fromArgument ? *fromArgument : fromTensor ? *fromTensor : c10::Device(c10::kCPU);
  call.record.pattern.operandCount = static_cast<std::int32_t>(call.record.operands.size());
  stack->resize(base);
  requireWhatKernelsAssume(schema, call.arguments);
  if (mode_ == Mode::real) {
    runReal(call);
  } else {
    runHollow(call);
  }
  recordOutputs(call, stack);
  ops_.push_back(std::move(call.record));
}

/// C++ code such as at::tensor({0, 1}) asks for memory by `aten::empty` and fills it with no op that could be seen. So
/// that the replay does not read garbage, fresh memory gets a pattern, and adoptFilled() finds what was written over
/// it.
void Recorder::runReal(Call& call) {
  const auto& schema = call.op.schema();
  call.results = call.arguments;
  {
    BelowInterception below;
    call.op.callBoxed(call.results);
  }
  for (std::size_t i = 0; i < schema.arguments().size(); ++i)
    if (const auto* alias = schema.arguments()[i].alias_info(); alias && alias->isWrite())
      forEachTensor(call.arguments[i], [&](const at::Tensor& written) {
        std::erase_if(blank_, [&](const at::Tensor& blank) {
          return written.layout() == at::kStrided && blank.is_alias_of(written);
        });
      });
  if (schema.name() != "aten::empty" || call.results.size() != 1 || !call.results[0].isTensor()) return;
  const auto& tensor = call.results[0].toTensor();
  if (tensor.layout() != at::kStrided || !tensor.device().is_cpu() || tensor.numel() == 0) return;
  std::memset(tensor.mutable_data_ptr(), blankByte, tensor.nbytes());
  blank_.push_back(tensor);
}

/// A blank tensor that holds numbers now was filled behind the dispatcher's back: it is a constant.
void Recorder::adoptFilled() {
  for (const auto& tensor : blank_) {
    if (isBlank(tensor)) continue;
    BelowInterception below;
    constants_[newLocal(tensor)] = tensor.clone();
  }
  std::erase_if(blank_, [](const at::Tensor& tensor) { return !isBlank(tensor); });
}

void Recorder::recordOutputs(Call& call, torch::jit::Stack* stack) {
  const auto& returns = call.op.schema().returns();
  auto& record = call.record;
  record.pattern.returns = grouping(call.results);
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    const bool written = i < returns.size() && returns[i].alias_info() && returns[i].alias_info()->isWrite();
    const auto& value = call.results[i];
    if (value.isTensor() || value.isTensorList()) {
      const auto add = [&](const at::Tensor& tensor) {
        if (!tensor.defined()) return record.outputs.push_back(-1);
        auto* tag = tagOf(tensor, serial_);
        record.outputs.push_back(tag && tag->id >= 0 && !written ? static_cast<std::int32_t>(tag->id)
                                                                 : newLocal(tensor));
      };
      if (value.isTensor()) add(value.toTensor());
      else
        for (const at::Tensor& tensor : value.toTensorVector()) add(tensor);
    } else if (auto number = numberArgument(value)) {
      record.outputs.push_back(static_cast<std::int32_t>(locals_.size()));
      locals_.emplace_back().number = number;
    } else {
      record.outputs.push_back(-1);
    }
    stack->push_back(value);
  }
}

}  // namespace retrograd
