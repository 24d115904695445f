#include "core/torch/grad/joint_writer.h"

#include <algorithm>

#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/implied.h"

namespace retrograd {
namespace {

bool sameShape(const TensorMeta& a, const TensorMeta& b) {
  return a.dtype == b.dtype && a.device == b.device && a.sizes == b.sizes && a.strides == b.strides &&
         a.offset == b.offset && a.layout == b.layout && a.conjugate == b.conjugate && a.negative == b.negative;
}

}  // namespace

SymbolId JointWriter::internOp(const std::string& name) {
  if (auto known = document_.findSymbol(name)) return known;
  return document_.internSymbol(describeOperator(requireOperator(name)));
}

Origin JointWriter::forwardOrigin(BoundSymbolId op) { return {.op = op, .role = Role::forward}; }

StorageId JointWriter::storageOf(const RuleLocal& local, std::vector<StorageId>& storages) {
  const std::size_t index = local.storage;
  if (index >= storages.size()) storages.resize(index + 1);
  if (!storages[index]) storages[index] = document_.addStorage(local.storageBytes);
  return storages[index];
}

ValueId JointWriter::makeValue(const RuleLocal& local, std::vector<StorageId>& storages, ValueKind kind,
                               ValueId preferred) {
  Value value{.meta = local.meta, .kind = kind};
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

std::size_t JointWriter::addLocals(const Rule& rule, std::span<const ValueId> tensors, ValueKind kind,
                                   std::span<const ValueId> preferred) {
  const auto begin = locals_.size();
  locals_.resize(begin + rule.locals.size());
  std::ranges::copy(tensors, locals_.begin() + begin);
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
    locals_[begin + i] = makeValue(rule.locals[i], storages, kind, wanted[i]);
  addConstants(rule.constants, begin);
  return begin;
}

void JointWriter::addConstants(const RuleConstants& constants, std::size_t localsBegin) {
  for (const auto& [local, data] : constants) {
    const auto id = locals_[localsBegin + local];
    document_.value(id).kind = ValueKind::constant;
    document_.storage(id).external = true;
    constants_[id] = data;
    if (realValues_) realValues_->addConstant(id, data);
  }
}

BoundSymbolId JointWriter::emit(const RuleOp& op, std::size_t localsBegin, const Origin& origin) {
  auto& operands = operandScratch_;
  auto& outputs = outputScratch_;
  operands.clear();
  outputs.clear();
  for (auto local : op.operands) operands.push_back(locals_[localsBegin + local]);
  for (auto local : op.outputs) outputs.push_back(local < 0 ? ValueId() : locals_[localsBegin + local]);
  return emit(op.symbol, op.pattern, op.effects, operands, outputs, origin);
}

BoundSymbolId JointWriter::emit(SymbolId symbol, PatternId pattern, std::uint8_t effects,
                                std::span<const ValueId> operands, std::span<const ValueId> outputs,
                                const Origin& origin) {
  BoundSymbol bound{.symbol = symbol, .pattern = pattern, .parent = origin.op, .origin = origin, .effects = effects};
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
  if (aliases_) aliases_->noteOp(id);
  return id;
}

void JointWriter::moveStorages() {
  for (auto id : taken_.ids()) {
    auto& value = document_.value(id);
    if (const auto to = movedStorages_.find(value.storage); value.storage && !taken_[id] && to != movedStorages_.end())
      value.storage = to->second;
  }
}

}  // namespace retrograd
