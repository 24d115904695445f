#include "core/torch/grad/joint_builder.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/op_table.h"
#include "core/torch/tracing/recorder.h"
#include "core/trace/implied.h"

namespace retrograd {
namespace {

bool sameShape(const TensorMeta& a, const TensorMeta& b) {
  return a.dtype == b.dtype && a.device == b.device && a.sizes == b.sizes && a.strides == b.strides && a.offset == b.offset && a.layout == b.layout &&
         a.conjugate == b.conjugate && a.negative == b.negative;
}

/// as_strided and its kin see all of the memory that a tensor lies in.
bool looksBeyond(std::string_view symbol) { return symbol.starts_with("aten.as_strided"); }

}  // namespace

at::Tensor JointBuilder::real(ValueId value) {
  if (!options_.realValues) throw Error(ErrorCode::needsData, "its result depends on data, and no inputs are at hand");
  return options_.realValues->value(document_, ops_, value);
}

/// Derives with real operands: first on hollow tensors that ask for data where they must, then, where the op reads data otherwise or
/// makes sparse tensors, on the real tensors throughout.
std::unique_ptr<Rule> JointBuilder::deriveWithData(DeriveRequest request, std::span<const ValueId> tensors, bool runReal) {
  bool sparse = runReal;
  for (auto tensor : tensors) {
    request.real.push_back(real(tensor));
    sparse |= document_.meta(document_.value(tensor).meta).layout != Layout::strided;
  }
  if (!sparse) {
    try {
      return deriveRule(document_, request);
    } catch (const NeedsData&) {
    } catch (const Error&) {
    }
  }
  request.runReal = true;
  return deriveRule(document_, request);
}

DeriveRequest JointBuilder::requestFor(const std::string& symbol, const CallPattern& pattern, std::span<const ValueId> tensors, WriteMode writes) const {
  DeriveRequest request;
  request.op = symbol;
  request.pattern = &pattern;
  for (auto tensor : tensors) {
    request.operands.push_back(document_.value(tensor).meta);
    request.requiresGrad.push_back(document_.value(tensor).requiresGrad);
    if (looksBeyond(symbol)) request.memoryBytes.push_back(document_.storage(document_.value(tensor).storage).bytes);
  }
  request.gradMode = region_.gradMode;
  request.writes = writes;
  request.autocast = region_.autocast;
  request.rules = options_.rules;
  request.createGraph = options_.createGraph;
  return request;
}

Rule* JointBuilder::ruleFor(SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors, WriteMode writes, bool& withData) {
  auto& key = keyScratch_;
  key.assign({symbol.index, pattern.index, static_cast<std::int32_t>(writes) * 2 + region_.gradMode, autocastIndex()});
  bool strided = true;
  for (auto tensor : tensors) {
    const auto& value = document_.value(tensor);
    key.push_back(value.meta.index * 2 + (value.requiresGrad ? 1 : 0));
    strided &= document_.meta(value.meta).layout == Layout::strided;
    if (!looksBeyond(document_.symbol(symbol).name) || !value.storage) continue;
    const auto bytes = document_.storage(value.storage).bytes;
    key.insert(key.end(), {static_cast<std::int32_t>(bytes >> 31), static_cast<std::int32_t>(bytes & 0x7fffffff)});
  }
  if (auto* rule = cache_.find(key)) return rule;
  // Copies: deriving interns symbols and patterns, which moves the tables.
  const std::string name = document_.symbol(symbol).name;
  const CallPattern calls = document_.pattern(pattern);
  const auto request = requestFor(name, calls, tensors, writes);
  std::optional<Error> refusal;
  if (strided) {
    try {
      const auto cacheKey = key;
      return cache_.insert(cacheKey, deriveRule(document_, request));
    } catch (const NeedsData&) {
    } catch (const Error& e) {
      refusal = e;
    }
  }
  if (refusal && !options_.realValues) throw *refusal;
  std::unique_ptr<Rule> rule;
  try {
    rule = deriveWithData(request, tensors);
  } catch (const NeedsData& e) {
    throw Error(ErrorCode::needsData, e.what(), "torch.ops." + name);
  } catch (const Error& e) {
    throw refusal ? *refusal : e;
  }
  for (const auto& op : rule->dataDependent) result_.dataDependent.push_back(op);
  withData = true;
  return cache_.keep(std::move(rule));
}

SymbolId JointBuilder::internOp(const std::string& name) {
  if (auto known = document_.findSymbol(name)) return known;
  return document_.internSymbol(describeOperator(requireOperator(name)));
}

std::int32_t JointBuilder::autocastIndex() {
  if (!region_.autocast.active) return 0;
  for (std::size_t i = 0; i < autocasts_.size(); ++i)
    if (autocasts_[i] == region_.autocast) return static_cast<std::int32_t>(i) + 1;
  autocasts_.push_back(region_.autocast);
  return static_cast<std::int32_t>(autocasts_.size());
}

StorageId JointBuilder::storageOf(const RuleLocal& local, std::vector<StorageId>& storages) {
  const std::size_t index = local.storage;
  if (index >= storages.size()) storages.resize(index + 1);
  if (!storages[index]) storages[index] = document_.addStorage(local.storageBytes);
  return storages[index];
}

ValueId JointBuilder::makeValue(const RuleLocal& local, std::vector<StorageId>& storages, ValueKind kind, ValueId preferred) {
  Value value;
  value.kind = kind;
  value.meta = local.meta;
  if (local.meta) value.storage = storageOf(local, storages);
  ValueId id;
  if (preferred) {
    auto& known = document_.value(preferred);
    const bool free = !taken_[preferred];
    taken_[preferred] = 1;
    const bool fits = local.meta && (!known.meta || sameShape(document_.meta(known.meta), document_.meta(local.meta)));
    if (free && fits) {
      if (!known.meta) known.meta = local.meta;  // a computation written by hand need not say what its ops make
      if (known.storage) movedStorages_.try_emplace(known.storage, value.storage);
      known.storage = value.storage;
      known.requiresGrad = false;  // as an earlier derivation on this document, for other inputs, may have left it
      id = preferred;
    } else {
      if (known.name) value.name = document_.internUnique(std::string(document_.text(known.name)));
    }
  }
  if (!id) id = document_.addValue(value);
  if (value.storage && !document_.storage(value.storage).first) document_.storage(value.storage).first = id;
  return id;
}

Instance JointBuilder::apply(BoundSymbolId op, SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors, std::span<const ValueId> preferred,
                             WriteMode writes) {
  Instance instance;
  instance.op = op;
  instance.symbol = symbol;
  instance.pattern = pattern;
  instance.autocast = autocastIndex();
  instance.writes = writes;
  instance.rule = ruleFor(symbol, pattern, tensors, writes, instance.withData);
  instance.localsBegin = locals_.size();
  Rule& rule = *instance.rule;
  locals_.resize(locals_.size() + rule.locals.size());
  std::copy(tensors.begin(), tensors.end(), locals_.begin() + static_cast<std::ptrdiff_t>(instance.localsBegin));
  auto& storages = storageScratch_;
  storages.clear();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t index = rule.locals[i].storage;
    if (index >= storages.size()) storages.resize(index + 1);
    storages[index] = document_.value(tensors[i]).storage;
  }
  std::vector<ValueId>& wanted = wantedScratch_;
  wanted.assign(rule.locals.size(), ValueId());
  for (std::size_t i = 0; i < rule.outputs.size() && i < preferred.size(); ++i)
    if (rule.outputs[i] >= rule.operandCount) wanted[rule.outputs[i]] = preferred[i];
  for (std::size_t i = tensors.size(); i < rule.locals.size(); ++i)
    locals_[instance.localsBegin + i] = makeValue(rule.locals[i], storages, ValueKind::activation, wanted[i]);
  addConstants(rule.constants, instance.localsBegin);
  for (const auto& ruleOp : rule.forward) emit(ruleOp, instance.localsBegin, forwardOrigin(op));
  for (std::size_t i = 0; i < rule.outputs.size(); ++i)
    if (rule.outputRequiresGrad[i]) document_.value(output(instance, i)).requiresGrad = true;
  if (rule.anyRequiresGrad) instances_.push_back(instance);
  return instance;
}

Origin JointBuilder::forwardOrigin(BoundSymbolId op) {
  Origin origin;
  origin.op = op;
  origin.role = Role::forward;
  return origin;
}

ValueId JointBuilder::output(const Instance& instance, std::size_t flatOutput) const {
  const auto local = instance.rule->outputs.at(flatOutput);
  return local < 0 ? ValueId() : valueOfLocal(instance, local);
}

void JointBuilder::addConstants(const RuleConstants& constants, std::size_t localsBegin) {
  for (const auto& [local, data] : constants) {
    const auto id = locals_[localsBegin + local];
    document_.value(id).kind = ValueKind::constant;
    document_.storage(document_.value(id).storage).external = true;
    result_.constants[id] = data;
    if (options_.realValues) options_.realValues->addConstant(id, data);
  }
}

BoundSymbolId JointBuilder::emit(const RuleOp& op, std::size_t localsBegin, const Origin& origin) {
  auto& operands = operandScratch_;
  auto& outputs = outputScratch_;
  operands.clear();
  outputs.clear();
  for (auto local : op.operands) operands.push_back(locals_[localsBegin + local]);
  for (auto local : op.outputs) outputs.push_back(local < 0 ? ValueId() : locals_[localsBegin + local]);
  return emit(op.symbol, op.pattern, op.effects, operands, outputs, origin);
}

BoundSymbolId JointBuilder::emit(SymbolId symbol, PatternId pattern, std::uint8_t effects, std::span<const ValueId> operands, std::span<const ValueId> outputs,
                                 const Origin& origin) {
  BoundSymbol bound;
  bound.symbol = symbol;
  bound.pattern = pattern;
  bound.effects = effects;
  bound.origin = origin;
  bound.parent = origin.op;
  bound.gradMode = region_.gradMode;
  if (origin.op) {
    const auto& from = document_.boundSymbol(origin.op);
    bound.source = from.source;
    bound.module = from.module;
  }
  const auto id = document_.addBoundSymbol(bound, operands, outputs);
  ops_.push_back(id);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k]) continue;
    auto& value = document_.value(outputs[k]);
    if (!value.producer) value.producer = id;
    value.version = effects & (effect::writes | effect::view) ? implied::version(document_, id, k) : 0;
  }
  if (tracksAliases_) aliases_.noteOp(id);
  return id;
}

}  // namespace retrograd
