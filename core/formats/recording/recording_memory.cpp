// Values on the memory of a recording: what flows in, what ops make, and views that no op of the recording made.
#include <algorithm>

#include "core/base/error.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/recording/recording_stream.h"
#include "core/trace/effects.h"
#include "core/trace/python_text.h"

namespace retrograd::recording {
namespace {

std::vector<Argument> integers(const std::vector<std::int64_t>& numbers) {
  std::vector<Argument> list;
  for (const auto number : numbers) list.push_back(Argument::ofInt(number));
  return list;
}

}  // namespace

std::int32_t& StreamReader::writesTo(StorageId storage) {
  if (!writes_.contains(storage)) writes_.resize(storage.index + 64, 0);
  return writes_[storage];
}

ValueId StreamReader::makeValue(const TensorMeta& meta, StorageId storage) {
  Value value;
  value.meta = document_.internMeta(meta);
  value.storage = storage ? storage : document_.addStorage(0);
  value.version = writesTo(value.storage);
  const auto id = document_.addValue(value);
  if (!document_.storage(value.storage).first) document_.storage(value.storage).first = id;
  return id;
}

BoundSymbolId StreamReader::append(BoundSymbol bound, const StepOp& recorded, const std::vector<ValueId>& operands,
                                   const std::vector<ValueId>& outputs) {
  const auto id = document_.addBoundSymbol(bound, operands, outputs);
  for (const auto output : outputs)
    if (output) document_.value(output).producer = id;
  recording_.ops.push_back(recorded);
  return id;
}

/// An op that the recording does not have: it makes a value of memory that is there.
ValueId StreamReader::callOf(std::string_view name, std::vector<Argument> arguments, std::vector<ValueId> operands,
                             const TensorMeta& meta, StorageId storage) {
  const auto& op = opOf(name, true);
  const auto& symbol = document_.symbol(op.symbol);
  BoundSymbol bound;
  bound.symbol = op.symbol;
  bound.source = here_;
  bound.gradMode = gradMode_;
  bound.effects = storage ? effect::view : 0;
  CallPattern pattern;
  pattern.arguments = std::move(arguments);
  while (pattern.arguments.size() < symbol.arguments.size()) pattern.arguments.push_back(Argument::ofMissing());
  pattern.operandCount = static_cast<std::int32_t>(operands.size());
  bound.pattern = document_.internPattern(pattern);
  const auto made = makeValue(meta, storage);
  append(bound, {.phase = current_.phase, .step = current_.step, .backward = current_.backward}, operands, {made});
  return made;
}

ValueId StreamReader::addInput(TensorRow& row, StorageRow& memory) {
  auto meta = row.meta;
  meta.conjugate = meta.negative = false;
  const auto value = makeValue(meta, memory.id);
  memory.base = memory.latest = value;
  inputs_.push_back(value);
  inputStorages_.push_back(row.storage);
  return meta == row.meta ? value : addView(row, memory);
}

/// A view that PyTorch made where the recorder does not see it.
ValueId StreamReader::addView(const TensorRow& row, StorageRow& memory) {
  auto meta = document_.meta(memory.base);
  auto value = memory.base;
  const auto hole = Argument::ofOperand(0);
  if (meta.dtype != row.meta.dtype) {  // the whole memory, then in the other dtype
    meta.offset = 0;
    meta.sizes = {memory.bytes / itemSize(meta.dtype)};
    meta.strides = {1};
    value = callOf(
        "aten.as_strided.default",
        {hole, Argument::ofList(integers(meta.sizes)), Argument::ofList(integers(meta.strides)), Argument::ofInt(0)},
        {value}, meta, memory.id);
    meta.dtype = row.meta.dtype;
    meta.sizes = {memory.bytes / itemSize(meta.dtype)};
    value = callOf("aten.view.dtype", {hole, Argument::ofDType(meta.dtype)}, {value}, meta, memory.id);
  }
  auto plain = row.meta;
  plain.conjugate = plain.negative = false;
  if (plain != meta)
    value = callOf("aten.as_strided.default",
                   {hole, Argument::ofList(integers(plain.sizes)), Argument::ofList(integers(plain.strides)),
                    Argument::ofInt(plain.offset)},
                   {value}, plain, memory.id);
  if (row.meta.conjugate) {
    plain.conjugate = true;
    value = callOf("aten._conj.default", {hole}, {value}, plain, memory.id);
  }
  if (row.meta.negative) {
    plain.negative = true;
    value = callOf("aten._neg_view.default", {hole}, {value}, plain, memory.id);
  }
  return value;
}

ValueId StreamReader::addSparse(const TensorRow& row) {
  std::vector<ValueId> operands;
  std::vector<Argument> arguments;
  const bool isCoo = row.meta.layout == Layout::sparse;
  const bool byRows = row.meta.layout == Layout::sparseCsr || row.meta.layout == Layout::sparseBsr;
  const auto names = isCoo    ? std::vector<std::string_view>{"indices", "values"}
                     : byRows ? std::vector<std::string_view>{"crow_indices", "col_indices", "values"}
                              : std::vector<std::string_view>{"ccol_indices", "row_indices", "values"};
  for (const auto part : names) {
    const auto found = row.parts.find(part);
    if (found == row.parts.end()) badInput("a sparse tensor lacks its " + std::string(part));
    arguments.push_back(Argument::ofOperand(std::ssize(operands)));
    operands.push_back(use(found->second));
  }
  arguments.push_back(Argument::ofList(integers(row.meta.sizes)));
  arguments.push_back(Argument::ofDType(row.meta.dtype));
  arguments.push_back(Argument::ofLayout(row.meta.layout));
  if (isCoo) {
    arguments.push_back(Argument::ofMissing());
    arguments.push_back(Argument::ofMissing());
    arguments.push_back(Argument::ofBool(row.coalesced));
  }
  return callOf(isCoo ? "aten.sparse_coo_tensor.indices_size" : "aten.sparse_compressed_tensor.comp_plain_value_size",
                std::move(arguments), std::move(operands), row.meta, {});
}

/// The value that a tensor means here.
ValueId StreamReader::use(std::int64_t number) {
  if (auto& row = tensor(number); row.current) return row.current;
  ValueId value;
  auto row = tensor(number);  // a copy: parts add values
  if (row.storage < 0) {
    value = addSparse(row);
  } else {
    auto& memory = storage(row.storage);
    value = memory.base ? addView(row, memory) : addInput(row, memory);
  }
  return tensor(number).current = value;
}

/// Whether the op is a backward's, and has no node of its own.
bool StreamReader::isMadeAside(BoundSymbolId op) const {
  return recording_.has(op) && recording_.op(op).phase == Phase::backward && !recording_.op(op).hasNode;
}

/// The value that an op makes of a tensor.
ValueId StreamReader::define(std::int64_t number) {
  auto& row = tensor(number);
  if (row.storage < 0) return row.current = makeValue(row.meta, {});
  auto& memory = storage(row.storage);
  // What autograd makes on its way back, such as the transpose of a transposed weight, is not what the loop reads next;
  // but it is what autograd reads, once a write has made what it had before another.
  const bool isWritten = std::ranges::find(written_, memory.id) != written_.end();
  const bool isOwn = row.current && document_.value(row.current).version != writesTo(memory.id) &&
                     isMadeAside(document_.value(row.current).producer);
  const bool keepsMeaning = isAside_ && row.current && !isWritten && !isOwn;
  const auto made = makeValue(row.meta, memory.id);
  if (!keepsMeaning) row.current = made;
  if (!memory.base) {
    memory.base = made;
    memory.made = true;
  }
  memory.latest = row.current;
  return made;
}

Computation StreamReader::computation(ModelFile& file) {
  Computation computation;
  auto& trace = computation.trace;
  trace.name = "computation";
  trace.ops.reserve(recording_.ops.size());
  for (std::size_t i = 0; i < recording_.ops.size(); ++i) trace.ops.emplace_back(static_cast<std::int64_t>(i));
  static const std::byte nothing{};
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto& memory = storage(inputStorages_[i]);
    auto& value = document_.value(inputs_[i]);
    InputSpec spec;
    spec.value = inputs_[i];
    const bool isParameter = memory.role == "parameter", isBuffer = memory.role == "buffer";
    spec.kind = isParameter           ? InputKind::parameter
                : isBuffer            ? InputKind::buffer
                : memory.name.empty() ? InputKind::user
                                      : InputKind::constant;
    std::string target = memory.name;
    if (memory.role == "gradient") target += ".grad";
    else if (!memory.state.empty()) target += "." + memory.state;
    if (const int again = seen[target]++; again > 0 && !target.empty()) target += "#" + std::to_string(again);
    const auto base = memory.name.empty() ? "input_" + std::to_string(i)
                                          : (isParameter ? "p_"
                                             : isBuffer  ? "b_"
                                                         : "c_") +
                                                target;
    value.name = document_.internUnique(pythonName(base));
    value.kind = isParameter ? ValueKind::parameter : isBuffer ? ValueKind::buffer : ValueKind::constant;
    if (memory.name.empty()) value.kind = ValueKind::input;
    spec.name = document_.text(value.name);
    spec.target = target;
    spec.requiresGrad = value.requiresGrad = isParameter;
    TensorData bytes;
    if (const auto found = recording_.data.find(memory.data); found != recording_.data.end()) bytes = found->second;
    if (memory.bytes == 0 || memory.device == "meta") bytes.data = &nothing;
    bytes.meta = document_.meta(value.meta);
    if (bytes.data && spec.kind == InputKind::user) file.sampleInputs.emplace(spec.name, bytes);
    else if (bytes.data && spec.kind == InputKind::constant) file.constants.emplace(spec.target, bytes);
    else if (bytes.data) file.weights.emplace(spec.target, bytes);
    trace.inputs.push_back(spec.value);
    computation.inputs.push_back(std::move(spec));
  }
  for (const auto& memory : storages_) {
    if (!memory.role.empty()) recording_.names.push_back({memory.id, memory.role, memory.name, memory.state});
    for (const auto& name : memory.also) recording_.names.push_back({memory.id, memory.role, name, {}});
    if (memory.role == "gradient" && memory.latest) recording_.gradients[memory.name] = memory.latest;
    if (memory.role == "optimizer" && memory.latest) recording_.states[memory.name].push_back(memory.latest);
  }
  for (const auto loss : recording_.losses) {
    if (std::find(trace.outputs.begin(), trace.outputs.end(), loss) != trace.outputs.end()) continue;
    OutputSpec spec;
    spec.kind = OutputKind::loss;
    spec.value = loss;
    trace.outputs.push_back(loss);
    computation.outputs.push_back(std::move(spec));
  }
  trace.resultCount = trace.outputs.size();
  return computation;
}

}  // namespace retrograd::recording
