#include "core/torch/tracing/computation_recorder.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/effects.h"
#include "core/trace/implied.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

/// Ops that make a number of a tensor's elements, besides those that LibTorch tags so.
bool readsElements(const c10::OperatorHandle& op) {
  static constexpr std::array<std::string_view, 5> names{"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero",
                                                         "aten::equal", "aten::allclose"};
  const std::string_view name = op.operator_name().name;
  return std::ranges::find(names, name) != names.end() || op.hasTag(at::Tag::data_dependent_output);
}

bool holdsTensors(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType) return true;
  for (const auto& part : type->containedTypes())
    if (holdsTensors(part)) return true;
  return false;
}

bool returnsTensors(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& r) { return holdsTensors(r.type()); });
}

bool hasMemory(const at::Tensor& tensor) { return tensor.layout() == at::kStrided && tensor.has_storage(); }

/// `text` as a Python identifier that is not a keyword and nothing a printed trace uses itself.
std::string identifier(std::string_view text) {
  static constexpr std::array<std::string_view, 38> taken{
      "False",    "None",   "True",  "and",  "as",     "assert",   "async",   "await", "break", "class",
      "continue", "def",    "del",   "elif", "else",   "except",   "finally", "for",   "from",  "global",
      "if",       "import", "in",    "is",   "lambda", "nonlocal", "not",     "or",    "pass",  "raise",
      "return",   "try",    "while", "with", "yield",  "torch",    "float",   "inf"};
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) ||
      std::ranges::find(taken, name) != taken.end())
    name.insert(name.begin(), '_');
  return name;
}

std::string_view prefixOf(InputKind kind) {
  switch (kind) {
    case InputKind::parameter: return "p_";
    case InputKind::buffer: return "b_";
    case InputKind::constant: return "c_";
    default: return "";
  }
}

}  // namespace

ComputationRecorder::ComputationRecorder(ModelFile& file, Options options, const Progress& progress)
    : file_(file), document_(*file.document), options_(options), progress_(progress) {
  file_.traced = true;
}

const ComputationRecorder::Op& ComputationRecorder::opOf(const c10::OperatorHandle& handle) {
  auto [it, isNew] = ops_.try_emplace(toString(handle.operator_name()));
  Op& op = it->second;
  if (!isNew) return op;
  const auto symbol = describeOperator(handle);
  op.symbol = document_.internSymbol(symbol);
  op.isRecorded = returnsTensors(handle.schema()) || symbol.isMutable;
  op.readsData = !op.isRecorded && readsElements(handle);
  op.isEmpty = symbol.name == "aten.empty.memory_format";
  return op;
}

ValueId ComputationRecorder::find(const at::Tensor& tensor) const {
  const auto it = tensor.defined() ? known_.find(tensor.unsafeGetTensorImpl()) : known_.end();
  return it == known_.end() ? ValueId() : it->second.value;
}

void ComputationRecorder::remember(const at::Tensor& tensor, ValueId value) {
  known_.insert_or_assign(tensor.unsafeGetTensorImpl(), Known{value, WeakTensor(tensor.getIntrusivePtr())});
}

ComputationRecorder::Memory& ComputationRecorder::memoryOf(const at::Tensor& tensor, ValueId first, bool external) {
  auto* storage = tensor.storage().unsafeGetStorageImpl();
  auto it = memory_.find(storage);
  if (it == memory_.end()) {
    const auto id = document_.addStorage(static_cast<std::int64_t>(tensor.storage().nbytes()), first, external);
    it = memory_.emplace(storage, Memory{id, tensor.storage().getWeakStorageImpl(), 0, false}).first;
  }
  return it->second;
}

ValueId ComputationRecorder::addInput(InputSpec spec, const at::Tensor& tensor, TensorData data, bool borrowed) {
  if (spec.name.empty()) spec.name = identifier(std::string(prefixOf(spec.kind)) + spec.target);
  Value value{.kind = implied::kind(spec.kind), .requiresGrad = spec.requiresGrad};
  value.meta = document_.internMeta(metaOf(tensor));
  value.name = document_.internUnique(identifier(spec.name));
  spec.value = document_.addValue(value);
  if (hasMemory(tensor)) {
    auto& memory = memoryOf(tensor, spec.value, true);
    memory.borrowed |= borrowed;
    document_.value(spec.value).storage = memory.id;
    if (spec.kind != InputKind::user) spec.storageKey = fmt::format("memory {}", memory.id.index);
  }
  remember(tensor, spec.value);
  if (const auto dot = spec.target.rfind('.'); dot != std::string::npos && spec.kind != InputKind::constant)
    owners_[spec.value] = document_.intern(std::string_view(spec.target).substr(0, dot));
  auto& data_ = spec.kind == InputKind::user       ? file_.sampleInputs[spec.name]
                : spec.kind == InputKind::constant ? file_.constants[spec.target]
                                                   : file_.weights[spec.target];
  data_ = std::move(data);
  file_.computation.inputs.push_back(spec);
  file_.computation.trace.inputs.push_back(spec.value);
  return spec.value;
}

void ComputationRecorder::addNumber(const std::string& name, Argument number) {
  InputSpec spec{.name = name};
  file_.sampleNumbers[name] = std::move(number);
  file_.computation.inputs.push_back(std::move(spec));
  file_.computation.trace.inputs.emplace_back();
}

void ComputationRecorder::offerConstant(const std::string& name, const at::Tensor& tensor, TensorData data) {
  if (hasMemory(tensor)) memoryOf(tensor, {}, true).borrowed = true;
  offers_.insert_or_assign(tensor.unsafeGetTensorImpl(),
                           Offer{name, std::move(data), WeakTensor(tensor.getIntrusivePtr())});
}

ValueId ComputationRecorder::addConstant(const at::Tensor& tensor) {
  InputSpec spec{.kind = InputKind::constant};
  if (const auto offer = offers_.find(tensor.unsafeGetTensorImpl()); offer != offers_.end()) {
    spec.target = offer->second.name;
    return addInput(spec, tensor, offer->second.data, true);
  }
  const auto warn = [&](std::string message) {
    file_.problems.push_back(
        {Problem::Severity::warning, std::move(message), std::string(document_.text(module_)), -1});
  };
  if (tensor.requires_grad())
    warn(
        "a tensor that requires a gradient is not a parameter of the module: it counts as a constant and gets no "
        "gradient");
  if (const auto memory = hasMemory(tensor) ? memory_.find(tensor.storage().unsafeGetStorageImpl()) : memory_.end();
      memory != memory_.end()) {
    const auto first = document_.storage(memory->second.id).first;
    if (first && document_.value(first).kind != ValueKind::constant)
      warn("a tensor over the memory of " + document_.displayName(first) +
           " was made with no op that could be seen (data()): it is taken for a constant");
  }
  spec.target = fmt::format("constant_{}", file_.constants.size());
  spec.name = "c" + spec.target.substr(1);
  return addInput(spec, tensor, snapshot(tensor), false);
}

ValueId ComputationRecorder::valueOf(const at::Tensor& tensor) {
  const auto known = find(tensor);
  return known ? known : addConstant(tensor);
}

void ComputationRecorder::handle(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  progress_.check();
  const Op& op = opOf(handle);
  const auto& arguments = handle.schema().arguments();
  const auto* values = stack->data() + (stack->size() - arguments.size());
  if (op.readsData && std::any_of(values, values + arguments.size(),
                                  [&](const c10::IValue& v) { return v.isTensor() && knows(v.toTensor()); }))
    noteDependence(document_.symbol(op.symbol).name);
  if (!op.isRecorded || (op.isEmpty && options_.emptyIsLiteral)) return handle.callBoxed(stack);
  if (document_.boundSymbolCount() >= maxOps)
    throw Error(ErrorCode::execution, fmt::format("more than {} ops were called; does this loop end?", maxOps),
                document_.symbol(op.symbol).name);
  if (at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA))
    throw Error(ErrorCode::unsupportedOp, "autocast is on; trace without it", document_.symbol(op.symbol).name);
  CallPattern pattern;
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    pattern.arguments.push_back(encodeArgument(values[i], arguments[i].real_type(), [&](const at::Tensor& tensor) {
      if (!knows(tensor))
        if (auto literal = literalOf(tensor)) return *literal;
      operands.push_back(valueOf(tensor));
      return Argument::ofOperand(std::ssize(operands) - 1);
    }));
  pattern.operandCount = static_cast<std::int32_t>(operands.size());
  prepareWrites(op, pattern.arguments, values);
  const auto base = stack->size() - arguments.size();
  handle.callBoxed(stack);
  torch::jit::Stack results(std::make_move_iterator(stack->begin() + base), std::make_move_iterator(stack->end()));
  stack->resize(base);
  record(op, std::move(pattern), operands, results);
  for (auto& result : results) stack->push_back(std::move(result));
}

/// Memory that is not the program's own is copied before it is written.
void ComputationRecorder::prepareWrites(const Op& op, const std::vector<Argument>& arguments,
                                        const c10::IValue* values) {
  const auto own = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || !hasMemory(tensor)) return;
    auto* storage = tensor.storage().unsafeGetStorageImpl();
    const auto it = memory_.find(storage);
    if (it == memory_.end()) return;
    ++it->second.writes;
    if (!std::exchange(it->second.borrowed, false)) return;
    auto copy = c10::GetCPUAllocator()->allocate(storage->nbytes());
    std::memcpy(copy.get(), storage->data(), storage->nbytes());
    storage->set_data_ptr_noswap(std::move(copy));
  };
  for (const auto i : writtenArguments(document_.symbol(op.symbol), arguments)) {
    if (values[i].isTensor()) own(values[i].toTensor());
    if (values[i].isTensorList())
      for (const at::Tensor& tensor : values[i].toTensorVector()) own(tensor);
  }
}

void ComputationRecorder::record(const Op& op, CallPattern pattern, std::span<const ValueId> operands,
                                 torch::jit::Stack& results) {
  const Symbol& symbol = document_.symbol(op.symbol);
  std::vector<ValueId> outputs;
  pattern.returns = grouping(results);
  if (std::ranges::all_of(pattern.returns, [](auto n) { return n < 0; })) pattern.returns.clear();
  for (auto& result : results) result = addResults(result, symbol.isMutable, outputs);
  constexpr std::size_t limit = 65535;
  if (operands.size() > limit || outputs.size() > limit)
    throw Error(ErrorCode::unsupportedOp, "more than 65535 tensors in one call", symbol.name);
  BoundSymbol bound{.symbol = op.symbol, .effects = effectsInComputation(document_, symbol, pattern, operands)};
  bound.pattern = document_.internPattern(pattern);
  bound.source = source_;
  bound.module = moduleFor(operands);
  bound.gradMode = at::GradMode::is_enabled();
  const auto id = document_.addBoundSymbol(bound, operands, outputs);
  for (const auto output : outputs)
    if (output) document_.value(output).producer = id;
  file_.computation.trace.ops.push_back(id);
}

StringId ComputationRecorder::moduleFor(std::span<const ValueId> operands) const {
  if (module_ || !options_.placeByTensors) return module_;
  for (const auto operand : operands)
    if (const auto owner = owners_.find(operand); owner != owners_.end()) return owner->second;
  return {};
}

/// The result with a tensor object of its own for each value in it.
c10::IValue ComputationRecorder::addResults(const c10::IValue& result, bool mutates, std::vector<ValueId>& outputs) {
  if (result.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : result.toTensorVector()) list.push_back(addResult(tensor, mutates, outputs));
    return list;
  }
  if (result.isTensor() && result.toTensor().defined()) return addResult(result.toTensor(), mutates, outputs);
  outputs.emplace_back();
  return result;
}

at::Tensor ComputationRecorder::addResult(const at::Tensor& result, bool mutates, std::vector<ValueId>& outputs) {
  // What returns its operand itself (contiguous, dropout in evaluation) makes a value of its own all the same, as an
  // exported program has it.
  const auto tensor = !mutates && knows(result) ? result.alias() : result;
  Value value{.meta = document_.internMeta(metaOf(tensor))};
  const auto id = document_.addValue(value);
  if (hasMemory(tensor)) {
    const auto& memory = memoryOf(tensor, id, false);
    document_.value(id).storage = memory.id;
    document_.value(id).version = memory.writes;
  }
  remember(tensor, id);
  outputs.push_back(id);
  return tensor;
}

void ComputationRecorder::name(const at::Tensor& tensor, std::string_view name) {
  const auto id = find(tensor);
  if (id && document_.value(id).producer && !document_.value(id).name)
    document_.value(id).name = document_.internUnique(identifier(name));
}

void ComputationRecorder::noteDependence(const std::string& op) {
  std::string text = op;
  if (const auto* frame = shownFrame(document_.source(source_)))
    text += fmt::format(", {}:{}", std::filesystem::path(frame->file).filename().string(), frame->line);
  else if (module_) text += ", in " + std::string(document_.text(module_));
  if (dependences_.insert(text).second) file_.dataDependent.push_back(std::move(text));
}

void ComputationRecorder::addOutput(const c10::IValue& output, const std::string& path) {
  OutputSpec spec{.target = path};
  if (output.isTensor() && output.toTensor().defined()) spec.value = valueOf(output.toTensor());
  else if (output.isString()) spec.literal = Argument::ofString(output.toStringRef());
  else spec.literal = numberArgument(output).value_or(Argument::ofNone());
  file_.computation.outputs.push_back(std::move(spec));
}

void ComputationRecorder::addMutation(OutputKind kind, const std::string& target, const at::Tensor& tensor) {
  file_.computation.outputs.push_back({.kind = kind, .value = valueOf(tensor), .target = target});
}

/// A value without a name in the program is called after its op, as in an exported program.
void ComputationRecorder::nameOutputs() {
  for (const auto op : file_.computation.trace.ops) {
    const std::string_view full = document_.symbol(op).name;
    const auto begin = full.find('.') + 1;
    const auto base = identifier(full.substr(begin, full.rfind('.') - begin));
    const auto outputs = std::as_const(document_).outputs(op);
    for (const auto output : outputs)
      if (output && !document_.value(output).name) document_.value(output).name = document_.internUnique(base);
    const auto first = std::ranges::find_if(outputs, [](ValueId id) { return id.valid(); });
    if (first != outputs.end()) document_.boundSymbol(op).name = document_.value(*first).name;
  }
}

void ComputationRecorder::finish(const std::string& kind, const std::string& name, double seconds) {
  nameOutputs();
  auto& trace = file_.computation.trace;
  trace.kind = TraceKind::computation;
  trace.name = "computation";
  for (const auto& output : file_.computation.outputs) trace.outputs.push_back(output.value);
  trace.resultCount = trace.outputs.size();
  trace.history.push_back({.pass = "Trace", .parameters = {{kind, name}}, .seconds = seconds});
}

TensorData snapshot(const at::Tensor& tensor) {
  if (!hasMemory(tensor) || !tensor.is_cpu()) return copyOut(tensor);
  const auto bytes = tensor.storage().nbytes();
  const auto* begin = static_cast<const std::byte*>(tensor.storage().data());
  auto copy = std::make_shared<std::vector<std::byte>>(begin, begin + (begin ? bytes : 0));
  return {metaOf(tensor), copy->data(), copy->size(), copy};
}

}  // namespace retrograd
