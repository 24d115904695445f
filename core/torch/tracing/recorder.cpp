#include "core/torch/tracing/recorder.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/PythonFallbackKernel.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "core/torch/tracing/claimed_cuda.h"
#include "core/torch/tracing/generator.h"
#include "core/torch/tracing/shape_rules.h"
#include "core/trace/relocate.h"

namespace retrograd {
namespace {

std::uint64_t nextSerial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

template <class Visit>
void forEachTensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const auto& tensor : value.toOptionalTensorVector())
      if (tensor && tensor->defined()) visit(*tensor);
  }
}

template <class Map>
c10::IValue mapTensors(const c10::IValue& value, Map&& map) {
  if (value.isTensor()) return value.toTensor().defined() ? c10::IValue(map(value.toTensor())) : value;
  if (value.isTensorList()) {
    std::vector<at::Tensor> mapped;
    for (const at::Tensor& tensor : value.toTensorVector()) mapped.push_back(tensor.defined() ? map(tensor) : tensor);
    return mapped;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> mapped;
    for (const auto& tensor : value.toOptionalTensorVector())
      mapped.push_back(tensor && tensor->defined() ? std::optional<at::Tensor>(map(*tensor)) : std::nullopt);
    return mapped;
  }
  return value;
}

/// What may decide whether an op's meta kernel takes a call: dtypes, layouts and numbers of dimensions, and literals other than sizes and floats.
std::string callKind(const torch::jit::Stack& arguments) {
  std::ostringstream text;
  for (const auto& value : arguments) {
    bool hasTensors = false;
    forEachTensor(value, [&](const at::Tensor& tensor) {
      hasTensors = true;
      text << tensor.scalar_type() << ' ' << tensor.layout() << ' ' << tensor.dim() << ',';
    });
    if (value.isInt() || value.isBool() || value.isString()) text << value;
    else if (!hasTensors) text << value.tagKind();
    text << ';';
  }
  return text.str();
}

bool boolean(const at::Tensor& tensor) { return tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte; }

/// Whether data decide the result's shape or value. Indexing carries the tag always, but only boolean indices matter.
bool dependsOnData(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  if (!op.hasTag(at::Tag::data_dependent_output) && !op.hasTag(at::Tag::dynamic_output_shape)) return false;
  bool indexed = false, masked = false;
  for (const auto& argument : arguments)
    if (argument.isOptionalTensorList()) {
      indexed = true;
      forEachTensor(argument, [&](const at::Tensor& index) { masked |= boolean(index); });
    }
  return !indexed || masked;
}

c10::IValue defaultCpu(const c10::OperatorHandle& op, std::size_t i, const c10::IValue& value) {
  const auto type = op.schema().arguments()[i].real_type();
  const bool deviceArgument =
      type->kind() == c10::TypeKind::OptionalType && type->expectRef<c10::OptionalType>().getElementType()->kind() == c10::TypeKind::DeviceObjType;
  return deviceArgument && value.isNone() ? c10::IValue(c10::Device(c10::kCPU)) : value;
}

}  // namespace

/// One op on its way through the handler.
struct Recorder::Call {
  const c10::OperatorHandle& op;
  torch::jit::Stack arguments;  // as they came: hollow or real tensors
  torch::jit::Stack twins;      // the same on meta tensors
  torch::jit::Stack results;
  std::vector<at::Tensor> inputs;  // tensors among the arguments
  c10::Device device{c10::kCPU};
  RecordedOp record;
};

Recorder::Recorder(Mode mode, std::optional<c10::Device> claimed) : mode_(mode), claimed_(claimed), serial_(nextSerial()) {}

std::optional<c10::Device> Recorder::literalDevice() const { return claimed_ && !runsOn(*claimed_) ? std::optional(c10::Device(c10::kCPU)) : std::nullopt; }

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
  if (mode_ == Mode::real && claimed_ && tensor.is_cpu() && !entry.meta.wrappedNumber) entry.meta.device = toDevice(*claimed_);
  if (tensor.layout() != at::kStrided || !tensor.has_storage()) {
    entry.storage = static_cast<std::int32_t>(keptStorages_.size());
    keptStorages_.emplace_back();
    entry.storageBytes = entry.meta.bytes();
    return;
  }
  auto [it, isNew] = storages_.try_emplace(tensor.storage().unsafeGetStorageImpl(), static_cast<std::int32_t>(keptStorages_.size()));
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
  tagOf(tensor, serial_)->twin = twin;
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
  if (mode_ == Mode::real && claimed_ && value.isDevice() && value.toDevice().is_cpu()) return Argument::ofDevice(toString(toDevice(*claimed_)));
  try {
    return encodeArgument(value, type, [&](const at::Tensor& tensor) {
      if (!tagOf(tensor, serial_))
        if (auto literal = literalOf(tensor)) return *literal;
      record.operands.push_back(localOf(tensor));
      return Argument::ofOperand(static_cast<std::int64_t>(record.operands.size()) - 1);
    });
  } catch (const Error& e) {
    throw e.at(symbolName(record.op));
  }
}

namespace {

/// A ZeroTensor, which formulas make where a gradient is zero, has no memory: nothing can write to it, and LibTorch's ops on it do not keep the dtypes that the
/// engine would restore. In a trace it is a tensor of zeros, which takes the same arguments.
const c10::OperatorHandle& withMemory(const c10::OperatorHandle& op) {
  static const auto zeros = c10::Dispatcher::singleton().findSchemaOrThrow("aten::zeros", "");
  return op.operator_name().name == "aten::_efficientzerotensor" ? zeros : op;
}

/// LibTorch's kernels of batch norm read weights and statistics for as many channels as the input has, and do not look how many there are.
void requireChannels(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments) {
  static const std::set<std::string_view> byChannel{"weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd", "save_var"};
  if (schema.name().find("batch_norm") == std::string::npos || arguments.empty() || !arguments[0].isTensor()) return;
  const auto& input = arguments[0].toTensor();
  if (!input.defined() || input.dim() < 2) return;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (!arguments[i].isTensor() || !byChannel.contains(schema.arguments()[i].name())) continue;
    const auto& tensor = arguments[i].toTensor();
    TORCH_CHECK(!tensor.defined() || tensor.numel() == 0 || tensor.numel() == input.size(1), schema.arguments()[i].name(), " has ", tensor.numel(),
                " elements, the input has ", input.size(1), " channels");
  }
}

}  // namespace

namespace {

/// Ops whose kernels call others that autocast casts, and that no op which autocast casts as a whole calls: there autocast would be off.
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

}  // namespace

/// Some kernels are made of other ops (affine_grid_generator's calls bmm), which autocast casts where it is on. Later the op would run without autocast, so its
/// parts are recorded in its place. False, with nothing recorded, where autocast changes nothing inside or the kernel asks for data.
bool Recorder::handleInParts(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (!isMadeOfOps(op)) return false;
  const auto count = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  const torch::jit::Stack arguments(stack->end() - count, stack->end());
  const auto device = autocastDevice(arguments);
  if (!device) return false;
  const auto begin = ops_.size();
  const auto dependentBefore = dataDependent_.size();
  const auto takeBack = [&] {
    ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(begin), ops_.end());
    dataDependent_.resize(dependentBefore);
  };
  auto parts = arguments;
  try {
    const at::impl::RestorePythonTLSSnapshot asCalled;
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(c10::DispatchKeySet(*device == c10::kCUDA ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU), &parts);
  } catch (const c10::Error&) {
    takeBack();
    return false;
  } catch (const NeedsData&) {
    takeBack();
    return false;
  }
  const auto isCast = [](const RecordedOp& part) { return part.op.operator_name().name == "aten::to"; };
  if (std::none_of(ops_.begin() + static_cast<std::ptrdiff_t>(begin), ops_.end(), isCast)) {
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
  Call call{op, {}, {}, {}, {}, c10::kCPU, RecordedOp{op, {}, {}, {}, false}};
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
  requireChannels(schema, call.arguments);
  if (mode_ == Mode::real) {
    runReal(call);
  } else {
    runHollow(call);
  }
  recordOutputs(call, stack);
  ops_.push_back(std::move(call.record));
}

namespace {

constexpr unsigned char blankByte = 0xA5;

bool isBlank(const at::Tensor& tensor) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  return std::all_of(bytes, bytes + tensor.nbytes(), [](unsigned char byte) { return byte == blankByte; });
}

}  // namespace

/// C++ code such as at::tensor({0, 1}) asks for memory by `aten::empty` and fills it with no op that could be seen. So that the replay
/// does not read garbage, fresh memory gets a pattern, and adoptFilled() finds what was written over it.
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
        std::erase_if(blank_, [&](const at::Tensor& blank) { return written.layout() == at::kStrided && blank.is_alias_of(written); });
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

void Recorder::runHollow(Call& call) {
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const auto value = defaultCpu(call.op, i, call.arguments[i]);
    if (value.isDevice()) call.twins.emplace_back(c10::Device(c10::kMeta));
    else
      call.twins.push_back(mapTensors(value, [&](const at::Tensor& tensor) {
        auto* tag = tagOf(tensor, serial_);
        return tag && tag->twin.defined() ? tag->twin : makeMetaLike(tensor);  // literals were not tagged
      }));
  }
  if (dependsOnData(call.op, call.arguments)) runOnData(call);
  else runOnMeta(call);
  adoptResults(call);
}

void Recorder::runOnMeta(Call& call) {
  // A thrown c10::Error is slow: ask once for each kind of call. Not once for each op: many refuse a dtype and take all others.
  static thread_local std::unordered_map<std::string, std::unordered_set<std::string>> refused;
  call.results = call.twins;
  const std::string name = toString(call.op.operator_name());
  const auto known = refused.find(name);
  const bool isRefused = known != refused.end() && known->second.contains(callKind(call.twins));
  if (!isRefused && call.op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) {
    try {
      BelowInterception below;
      call.op.callBoxed(call.results);
      return;
    } catch (const c10::NotImplementedError&) {
      refused[name].insert(callKind(call.twins));
      call.results = call.twins;
    }
  }
  if (auto shapes = resultsByRule(name, call.twins)) {
    call.results = std::move(*shapes);
    return;
  }
  runOnZeros(call);
}

/// Results of a run on real tensors, as meta tensors: what is written or aliased is the argument's twin.
static torch::jit::Stack toMetaResults(const torch::jit::Stack& results, const std::vector<at::Tensor>& ran, const std::vector<at::Tensor>& twins) {
  torch::jit::Stack metas;
  for (const auto& value : results)
    metas.push_back(mapTensors(value, [&](const at::Tensor& tensor) {
      if (tensor.layout() != at::kStrided) throw NeedsData("a result is sparse");
      BelowInterception below;
      for (std::size_t i = 0; i < ran.size(); ++i) {
        if (ran[i].is_same(tensor)) return twins[i];
        if (ran[i].numel() && ran[i].is_alias_of(tensor) && ran[i].scalar_type() == tensor.scalar_type())
          return twins[i].as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
      }
      return makeMetaLike(tensor);
    }));
  return metas;
}

void Recorder::runOnZeros(Call& call) {
  // An op of the GPU alone has a kernel there, if anywhere.
  const auto device = call.device.is_cuda() && runsOn(call.device) ? call.device : c10::Device(c10::kCPU);
  std::vector<at::Tensor> zeros, twins;
  torch::jit::Stack stack;
  for (const auto& value : call.twins) {
    if (value.isDevice()) {
      stack.emplace_back(device);
      continue;
    }
    stack.push_back(mapTensors(value, [&](const at::Tensor& twin) {
      BelowInterception below;
      auto zero = at::empty_strided(twin.sizes(), twin.strides(), twin.options().device(device)).zero_();
      zeros.push_back(zero);
      twins.push_back(twin);
      return zero;
    }));
  }
  try {
    KeepGenerator keep;  // the op may draw for real; the run must not notice
    BelowInterception below;
    call.op.callBoxed(stack);
  } catch (const c10::Error&) {
    runOnData(call);
    return;
  }
  call.results = toMetaResults(stack, zeros, twins);
}

c10::IValue Recorder::realOperand(const RecordedOp& op, std::size_t hole) {
  const auto local = op.operands.at(hole);
  if (auto it = real_.find(local); it != real_.end()) return it->second;
  if (auto it = constants_.find(local); it != constants_.end() && !it->second.is_meta()) return it->second;
  throw NeedsData("a value that " + symbolName(op.op) + " reads is not at hand");
}

void Recorder::replayUpTo(std::size_t end) {
  for (; replayed_ < end; ++replayed_) {
    const auto& op = ops_[replayed_];
    auto stack = PreparedCall(op.op, op.pattern).arguments([&](std::size_t hole) { return realOperand(op, hole); }, literalDevice());
    at::AutoDispatchBelowADInplaceOrView belowAutograd;
    op.op.callBoxed(stack);
    const auto results = flatten(stack);
    for (std::size_t i = 0; i < results.size() && i < op.outputs.size(); ++i)
      if (op.outputs[i] >= 0) real_[op.outputs[i]] = results[i];
  }
}

void Recorder::runOnData(Call& call) {
  if (real_.empty()) throw NeedsData(symbolName(call.op) + " depends on data");
  KeepGenerator keep;
  BelowInterception below;
  replayUpTo(ops_.size());
  auto stack = PreparedCall(call.op, call.record.pattern).arguments([&](std::size_t hole) { return realOperand(call.record, hole); }, literalDevice());
  std::vector<at::Tensor> ran, twins;
  for (std::size_t hole = 0; hole < call.record.operands.size(); ++hole) {
    ran.push_back(realOperand(call.record, hole).toTensor());
    for (const auto& input : call.inputs)
      if (auto* tag = tagOf(input, serial_); tag && tag->id == call.record.operands[hole]) twins.push_back(tag->twin);
  }
  {
    at::AutoDispatchBelowADInplaceOrView belowAutograd;
    call.op.callBoxed(stack);
  }
  call.record.needsData = true;
  dataDependent_.push_back(symbolName(call.op));
  call.results = toMetaResults(stack, ran, twins);
}

void Recorder::adoptResults(Call& call) {
  for (auto& value : call.results) value = mapTensors(value, [&](const at::Tensor& tensor) { return adopt(call, tensor); });
}

/// The hollow tensor that stands for a meta result: the argument itself when it was written, one over the argument's storage for a
/// view, else a new one.
at::Tensor Recorder::adopt(Call& call, const at::Tensor& result) {
  const at::Tensor twin = result.is_meta() ? result : makeMetaLike(result);
  for (const auto& input : call.inputs) {
    auto* tag = tagOf(input, serial_);
    if (!tag || !tag->twin.is_same(twin)) continue;
    auto* impl = input.unsafeGetTensorImpl();
    if (input.sizes() != twin.sizes() || input.strides() != twin.strides() || input.storage_offset() != twin.storage_offset()) {
      impl->set_storage_offset(twin.storage_offset());  // transpose_, squeeze_: geometry changes in place
      impl->set_sizes_and_strides(twin.sizes(), twin.strides());
    }
    return input;
  }
  const at::Tensor* base = nullptr;
  for (const auto& input : call.inputs) {
    auto* tag = tagOf(input, serial_);
    if (tag && tag->twin.defined() && tag->twin.is_alias_of(twin)) base = &input;
  }
  auto hollow = makeHollow(twin, call.device.is_meta() ? claimed_.value_or(c10::kCPU) : call.device, base);
  auto tag = c10::make_intrusive<ValueTag>(-1, serial_);
  tag->twin = twin;
  hollow.unsafeGetTensorImpl()->set_backend_meta(tag);
  return hollow;
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
        record.outputs.push_back(tag && tag->id >= 0 && !written ? static_cast<std::int32_t>(tag->id) : newLocal(tensor));
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
