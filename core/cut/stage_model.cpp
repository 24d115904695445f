#include "core/cut/stage_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/base/error.h"
#include "core/trace/implied.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

/// Dimensions with more than one element, the innermost first.
std::vector<std::size_t> fromInnermost(const TensorMeta& meta) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i)
    if (meta.sizes[i] != 1) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return meta.strides[a] < meta.strides[b]; });
  return order;
}

/// Strides under which the elements fill their memory, each in a place of its own.
bool isDense(const TensorMeta& meta) {
  std::int64_t step = 1;
  for (auto i : fromInnermost(meta)) {
    if (meta.strides[i] != step) return false;
    step *= meta.sizes[i];
  }
  return true;
}

/// Numbers of a meta as an argument, with their expressions.
Argument listOf(const std::vector<std::int64_t>& numbers, const std::vector<std::string>& symbols) {
  std::vector<Argument> items;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    items.push_back(Argument::ofInt(numbers[i]));
    if (i < symbols.size()) items.back().text = symbols[i];
  }
  return Argument::ofList(std::move(items));
}

/// Copies what one stage needs from a document to a new one.
class Extraction {
 public:
  Extraction(const Document& from, StageModel& to) : from_(from), to_(*to.file.document), result_(to) {}

  /// A value that is there when the stage begins, in memory of its own unless one that shares it was there before.
  ValueId hold(ValueId id) {
    auto value = from_.value(id);
    value.storage = storageFor(value.storage, true);
    return add(id, value);
  }

  ValueId receive(ValueId id) {
    auto value = from_.value(id);
    value.kind = ValueKind::input;
    value.producer = {};
    value.version = 0;
    value.name = to_.intern(from_.displayName(id));
    if (value.meta) {
      const auto meta = sentMeta(from_.meta(value.meta));
      value.meta = to_.internMeta(meta);
      value.storage = to_.addStorage(meta.storageBytes(), ValueId(static_cast<std::int64_t>(to_.valueCount())), true);
      storages_.try_emplace(from_.value(id).storage, value.storage);
    }
    const auto made = to_.addValue(value);
    note(made, id);
    if (const auto size = from_.sizeExpression(id); !size.empty()) to_.setSizeExpression(made, std::string(size));
    return values_[id] = made;
  }

  /// Works on a copy of a received value from here on, which lies as that did and is lazily conjugated and negated as
  /// that was: what a view, a reshape or a resolve_conj in this stage shares depends on it.
  std::vector<BoundSymbolId> copy(ValueId id, const SymbolLookup& lookup) {
    const auto received = values_.at(id);
    auto value = to_.value(received);
    value.kind = ValueKind::activation;
    const auto name = std::string(to_.text(value.name)) + "_copy";
    std::vector<BoundSymbolId> ops;
    const auto emit = [&](const char* op, std::vector<Argument> arguments, const std::vector<ValueId>& operands) {
      value.name = to_.internUnique(name);
      const auto [made, output] = addCall(lookup, op, std::move(arguments), operands, value);
      ops.push_back(made);
      return output;
    };
    const auto emitInNewMemory = [&](const char* op, std::vector<Argument> arguments, ValueId operand) {
      value.storage =
          to_.addStorage(to_.meta(value.meta).storageBytes(), ValueId(static_cast<std::int64_t>(to_.valueCount())));
      return emit(op, std::move(arguments), {operand});
    };
    const std::vector<Argument> first{Argument::ofOperand(0)};
    const auto lazily = from_.meta(id);
    auto meta = to_.meta(value.meta);
    auto content = received;
    if (lazily.conjugate) content = emitInNewMemory("aten.conj_physical.default", first, content);
    if (lazily.negative) content = emitInNewMemory("aten.neg.default", first, content);
    if (meta.layout == Layout::strided && !isDense(meta)) {  // clone() closes the gaps
      const auto room = emitInNewMemory(
          "aten.new_empty_strided.default",
          {Argument::ofOperand(0), listOf(meta.sizes, meta.symbols), listOf(meta.strides, meta.strideSymbols)},
          received);
      value.version = 1;
      content = emit("aten.copy_.default", {Argument::ofOperand(0), Argument::ofOperand(1)}, {room, content});
    } else if (content == received) {
      content = emitInNewMemory("aten.clone.default", first, content);
    }
    const auto view = [&](bool TensorMeta::* flag, const char* op) {
      if (!(lazily.*flag)) return;
      meta.*flag = true;
      value.meta = to_.internMeta(meta);
      content = emit(op, first, {content});
    };
    view(&TensorMeta::conjugate, "aten._conj.default");
    view(&TensorMeta::negative, "aten._neg_view.default");
    storages_[from_.value(id).storage] = value.storage;
    values_[id] = content;
    return ops;
  }

  BoundSymbolId op(BoundSymbolId id, BoundSymbolId parent = {}) {
    auto bound = from_.boundSymbol(id);
    bound.symbol = to_.internSymbol(from_.symbol(bound.symbol));
    std::vector<std::pair<SubgraphId, SubgraphId>> bodies;
    auto pattern = from_.pattern(bound.pattern);
    for (auto& argument : pattern.arguments) renameBodies(argument, bodies);
    bound.pattern = to_.internPattern(pattern);
    bound.parent = parent;
    bound.origin = {};
    bound.replays = {};
    if (bound.source) bound.source = to_.internSource(from_.source(bound.source));
    if (bound.module) bound.module = to_.intern(from_.text(bound.module));
    if (bound.name) bound.name = to_.intern(from_.text(bound.name));
    std::vector<ValueId> operands, outputs;
    for (auto operand : from_.operands(id)) operands.push_back(value(operand));
    for (auto output : from_.outputs(id)) outputs.push_back(makeOutput(output, id));
    const auto made = to_.addBoundSymbol(bound, operands, outputs);
    note(made, id);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i]) continue;
      to_.value(outputs[i]).producer = made;
      to_.value(outputs[i]).version = implied::version(to_, made, i);
    }
    for (const auto& [old, body] : bodies) fillBody(old, body, made);
    return made;
  }

  ValueId value(ValueId id) {
    if (!id) return {};
    const auto it = values_.find(id);
    return it == values_.end() ? hold(id) : it->second;
  }
  bool has(ValueId id) const { return values_.contains(id); }

 private:
  /// An op that the model has not, with one output of this description.
  std::pair<BoundSymbolId, ValueId> addCall(const SymbolLookup& lookup, const char* name,
                                            std::vector<Argument> arguments, const std::vector<ValueId>& operands,
                                            const Value& output) {
    const auto symbol = lookup(name);
    if (!symbol)
      throw Error(ErrorCode::unknownOp, "is needed to copy what a stage receives and writes to, and is not known",
                  name);
    const auto made = to_.addValue(output);
    note(made, {});
    CallPattern pattern;
    pattern.arguments = std::move(arguments);
    pattern.arguments.resize(symbol->arguments.size(), Argument::ofMissing());
    pattern.operandCount = static_cast<decltype(pattern.operandCount)>(operands.size());
    BoundSymbol bound;
    bound.symbol = to_.internSymbol(*symbol);
    bound.pattern = to_.internPattern(pattern);
    bound.name = output.name;
    const auto op = to_.addBoundSymbol(bound, operands, std::span(&made, 1));
    note(op, {});
    to_.value(made).producer = op;
    return {op, made};
  }

  ValueId add(ValueId id, Value value) {
    if (value.name) value.name = to_.intern(from_.text(value.name));
    if (value.meta) value.meta = to_.internMeta(from_.meta(value.meta));
    value.producer = {};
    const auto made = to_.addValue(value);
    note(made, id);
    if (value.storage && !to_.storage(value.storage).first) to_.storage(value.storage).first = made;
    if (const auto size = from_.sizeExpression(id); !size.empty()) to_.setSizeExpression(made, std::string(size));
    return values_[id] = made;
  }

  ValueId makeOutput(ValueId id, BoundSymbolId op) {
    if (!id) return {};
    auto value = from_.value(id);
    value.storage = value.storage ? outputStorage(id, op) : StorageId();
    return add(id, value);
  }

  /// The memory of the operand that the output shares it with in the whole model: two received values no longer share
  /// theirs.
  StorageId outputStorage(ValueId output, BoundSymbolId op) {
    const auto storage = from_.value(output).storage;
    for (auto operand : from_.operands(op))
      if (operand && from_.value(operand).storage == storage) return to_.value(value(operand)).storage;
    return storageFor(storage, false);
  }

  StorageId storageFor(StorageId storage, bool external) {
    if (!storage) return {};
    const auto [it, isNew] = storages_.try_emplace(storage);
    if (isNew)
      it->second = to_.addStorage(from_.storage(storage).bytes, {}, external && from_.storage(storage).external);
    return it->second;
  }

  void renameBodies(Argument& argument, std::vector<std::pair<SubgraphId, SubgraphId>>& bodies) {
    if (argument.kind == Argument::Kind::subgraph) {
      const SubgraphId old(argument.integer);
      Subgraph body;
      body.name = from_.subgraph(old).name;
      const auto made = to_.addSubgraph(std::move(body));
      bodies.emplace_back(old, made);
      argument.integer = made.index;
    }
    for (auto& item : argument.items) renameBodies(item, bodies);
  }

  void fillBody(SubgraphId old, SubgraphId made, BoundSymbolId parent) {
    const auto& body = from_.subgraph(old);
    Subgraph filled;
    filled.name = body.name;
    for (auto id : body.inputs) filled.inputs.push_back(value(id));
    for (auto inner : body.ops) filled.ops.push_back(op(inner, parent));
    filled.outputs = body.outputs;
    for (auto id : body.outputValues) filled.outputValues.push_back(value(id));
    to_.subgraph(made) = std::move(filled);
  }

  void note(ValueId made, ValueId id) {
    result_.valueOf.resize(made.index + 1);
    result_.valueOf[made] = id;
  }
  void note(BoundSymbolId made, BoundSymbolId id) {
    result_.originOf.resize(made.index + 1);
    result_.originOf[made] = id;
  }

  const Document& from_;
  Document& to_;
  StageModel& result_;
  std::unordered_map<ValueId, ValueId> values_;
  std::unordered_map<StorageId, StorageId> storages_;
};

/// Puts one stage together.
class StageBuilder {
 public:
  StageBuilder(const ModelFile& model, const PipelineSplit& split, std::size_t index, const SymbolLookup& lookup)
      : model_(model),
        split_(split),
        stage_(split.stages.at(index)),
        names_(parameterNames(*model.document, model.computation, stage_)),
        index_(index),
        lookup_(lookup) {
    stageModel_.file.document = std::make_shared<Document>();
    stageModel_.file.document->setSizeSymbols(model.document->sizeSymbols());
  }

  StageModel build() {
    Extraction extraction(*model_.document, stageModel_);
    auto& file = stageModel_.file;
    file.path = model_.path;
    file.identity = model_.identity;
    file.torchVersion = model_.torchVersion;
    file.traced = model_.traced;
    file.dataDependent = model_.dataDependent;
    auto& trace = file.computation.trace;
    trace.kind = TraceKind::computation;
    trace.name = "computation";
    trace.history = model_.computation.trace.history;
    trace.history.push_back({"Pipeline split",
                             {{"stage", std::to_string(index_)}, {"stages", std::to_string(split_.stages.size())}},
                             "computation",
                             0,
                             {}});
    for (auto input : stage_.held) addHeld(input, extraction);
    for (const auto& input : stage_.inputs) addReceived(input, extraction);
    checkStrides();
    for (auto id : stage_.cloned)
      for (auto op : extraction.copy(id, lookup_)) trace.ops.push_back(op);
    for (auto op : stage_.ops) trace.ops.push_back(extraction.op(op));
    for (const auto& output : stage_.outputs) {
      OutputSpec spec;
      for (auto result : output.results)
        if (output.destinations.empty()) spec = model_.computation.outputs[result];
      addOutput(spec, extraction.value(output.value));
    }
    for (auto mutation : stage_.mutations)
      addOutput(model_.computation.outputs[mutation], extraction.value(model_.computation.outputs[mutation].value));
    trace.resultCount = trace.outputs.size();
    return std::move(stageModel_);
  }

 private:
  void addHeld(std::size_t i, Extraction& extraction) {
    auto spec = model_.computation.inputs[i];
    auto& file = stageModel_.file;
    auto& weights = spec.kind == InputKind::constant ? file.constants : file.weights;
    const auto& all = spec.kind == InputKind::constant ? model_.constants : model_.weights;
    const auto data = all.find(spec.target);
    if (spec.kind == InputKind::parameter) rename(spec, names_.at(i));
    if (data != all.end()) weights[spec.target] = data->second;
    const auto held = extraction.hold(spec.value);
    addInput(held, std::move(spec));
  }

  /// A tied parameter goes by the name under which this stage uses it; the other one is an alias.
  static void rename(InputSpec& spec, const std::string& name) {
    std::replace(spec.aliases.begin(), spec.aliases.end(), name, spec.target);
    spec.target = name;
  }

  void addReceived(const StageInput& input, Extraction& extraction) {
    const auto known =
        std::find(model_.computation.trace.inputs.begin(), model_.computation.trace.inputs.end(), input.value);
    auto& file = stageModel_.file;
    const auto& document = *model_.document;
    InputSpec spec;
    if (known != model_.computation.trace.inputs.end() && input.source < 0) {
      spec = model_.computation.inputs[known - model_.computation.trace.inputs.begin()];
      if (const auto sample = model_.sampleInputs.find(spec.name); sample != model_.sampleInputs.end())
        file.sampleInputs.insert(*sample);
      if (const auto number = model_.sampleNumbers.find(spec.name); number != model_.sampleNumbers.end())
        file.sampleNumbers.insert(*number);
      if (const auto source = model_.inputSource.find(spec.name); source != model_.inputSource.end())
        file.inputSource.insert(*source);
      return addInput(extraction.hold(input.value), std::move(spec));
    }
    spec.name = document.displayName(input.value);
    spec.requiresGrad = document.isTensor(input.value) && isDifferentiable(document.meta(input.value).dtype);
    if (file.traced) file.inputSource[spec.name] = fmt::format("sent by stage {}", input.source);
    addInput(extraction.receive(input.value), std::move(spec));
  }

  /// as_strided reads its operand's memory by offsets of its own: what arrives has to lie there as it did.
  void checkStrides() const {
    const auto& document = *model_.document;
    for (auto op : stage_.ops) {
      if (!hasTrait(document.symbol(op).name, OpTrait::readsMemory)) continue;
      const auto base = document.operands(op)[0];
      for (const auto& input : stage_.inputs) {
        if (input.source < 0 || document.value(input.value).storage != document.value(base).storage ||
            !document.isTensor(input.value))
          continue;
        const auto& meta = document.meta(input.value);
        if (sentMeta(meta) == meta && isDense(meta) && document.storage(input.value).bytes <= meta.storageBytes())
          continue;
        throw Error(ErrorCode::badUse,
                    fmt::format("it reads memory around {}, of which stage {} sends only the elements; move the cut so "
                                "that both fall into one stage",
                                document.displayName(input.value), input.source),
                    fmt::format("#{} ({}) in stage {}", document.text(document.boundSymbol(op).name),
                                document.opName(op), index_));
      }
    }
  }

  void addInput(ValueId id, InputSpec spec) {
    spec.value = id;
    auto& computation = stageModel_.file.computation;
    computation.trace.inputs.push_back(id);
    computation.inputs.push_back(std::move(spec));
  }

  void addOutput(OutputSpec spec, ValueId id) {
    spec.value = id;
    auto& computation = stageModel_.file.computation;
    computation.trace.outputs.push_back(id);
    computation.outputs.push_back(std::move(spec));
  }

  const ModelFile& model_;
  const PipelineSplit& split_;
  const PipelineStage& stage_;
  const std::map<std::size_t, std::string> names_;
  const std::size_t index_;
  const SymbolLookup& lookup_;
  StageModel stageModel_;
};

}  // namespace

TensorMeta sentMeta(const TensorMeta& meta) {
  auto sent = meta;
  sent.offset = 0;
  sent.offsetSymbol.clear();
  sent.conjugate = sent.negative = false;
  return sent;
}

StageModel stageModel(const ModelFile& model, const PipelineSplit& split, std::size_t index,
                      const SymbolLookup& lookup) {
  if (index >= split.stages.size())
    throw Error(ErrorCode::badUse,
                fmt::format("Invalid stage index {}! There are {} stages, counted from 0", index, split.stages.size()),
                model.path);
  return StageBuilder(model, split, index, lookup).build();
}

}  // namespace retrograd
