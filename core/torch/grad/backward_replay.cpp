#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/torch/grad/joint_builder.h"

namespace retrograd {

void JointBuilder::replayBackward() {
  gradients_.begin();
  seedCotangents();
  region_ = {};
  region_.gradMode = false;
  for (std::size_t i = instances_.size(); i-- > 0;) {
    progress_.check();
    auto instance = instances_[i];
    try {
      replay(instance);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::cancelled) throw;
      throw e.at("backward of node " + std::string(document_.text(document_.boundSymbol(instance.op).name)));
    }
  }
  gradients_.nameTerms();
  gradients_.reshape(result_.gradientSizes);
  for (auto id : gradients_.values())
    if (gradients_.sum(id) && !gradients_.refused(id))
      result_.gradients.emplace_hint(result_.gradients.end(), id, gradients_.sum(id));
}

void JointBuilder::seedCotangents() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    cotangents_.emplace_back();
    const auto output = outputs_[i];
    const auto kind = computation_.outputs[i].kind;
    if (!output || !document_.isTensor(output) || !document_.value(output).requiresGrad) continue;
    if (kind != OutputKind::user && kind != OutputKind::loss) continue;
    if (options_.hasCotangent && !options_.hasCotangent(i)) continue;
    const auto& like = document_.meta(output);
    TensorMeta meta{
        .dtype = like.dtype, .device = like.device, .sizes = like.sizes, .strides = contiguousStrides(like.sizes)};
    Value value{.meta = document_.internMeta(meta), .kind = ValueKind::cotangent};
    value.storage = document_.addStorage(meta.bytes(), {}, true);
    value.name = document_.internUnique("cotangent_" + std::to_string(i));
    cotangents_.back() = document_.addValue(value);
    document_.storage(value.storage).first = cotangents_.back();
    if (options_.realValues) options_.realValues->addCotangent(cotangents_.back(), i);
    gradients_.add(output, cotangents_.back());
  }
}

void JointBuilder::replay(Instance& instance) {
  if (instance.opaque) return refuseThrough(instance);
  if (refuseBefore(instance)) return;
  if (!instance.rule) {  // the gradient passes unchanged
    const auto gradient = gradients_.sum(instance.to);
    if (gradient) gradients_.add(instance.from, gradient);
    return;
  }
  const Rule& rule = *instance.rule;
  std::vector<MetaId> metas(rule.outputs.size());
  std::vector<ValueId> cotangents(rule.outputs.size());
  bool any = false;
  for (std::size_t o = 0; o < rule.outputs.size(); ++o) {
    if (!rule.outputRequiresGrad[o]) continue;
    const auto gradient = gradients_.sum(output(instance, o));
    if (!gradient) continue;
    metas[o] = document_.value(gradient).meta;
    cotangents[o] = gradient;
    any = true;
  }
  if (!any) return;  // no output of it leads to a result
  const auto operands = std::span<const ValueId>(writer_.locals()).subspan(instance.localsBegin, rule.operandCount);
  const auto& variant = rules_.backward(instance, operands, metas, cotangents);
  emitVariant(instance, variant, cotangents);
}

void JointBuilder::emitVariant(const Instance& instance, const BackwardVariant& variant,
                               const std::vector<ValueId>& cotangents) {
  auto& locals = writer_.locals();
  const Rule& rule = *instance.rule;
  const auto begin = locals.size();
  const auto forwardLocals = rule.locals.size();
  locals.resize(begin + forwardLocals + variant.locals.size());
  std::copy_n(locals.begin() + instance.localsBegin, forwardLocals, locals.begin() + begin);
  for (const auto& [local, value] : instance.readInstead) locals[begin + local] = value;
  if (!result_.readLate.empty()) readLate(instance, variant, begin, forwardLocals);
  std::vector<StorageId> storages;
  for (std::size_t i = 0; i < forwardLocals; ++i) {
    const auto number = rule.locals[i].storage;
    if (number < 0) continue;
    if (number >= std::ssize(storages)) storages.resize(number + 1);
    storages[number] = document_.value(locals[begin + i]).storage;
  }
  std::int16_t onlyOutput = -1;
  int defined = 0;
  for (std::size_t o = 0; o < cotangents.size(); ++o) {
    if (!cotangents[o]) continue;
    const std::size_t local = variant.cotangents[o];
    locals[begin + local] = cotangents[o];
    const std::size_t number = variant.locals[local - forwardLocals].storage;
    if (number >= storages.size()) storages.resize(number + 1);
    storages[number] = document_.value(cotangents[o]).storage;
    onlyOutput = ++defined == 1 ? static_cast<std::int16_t>(o) : std::int16_t{-1};
  }
  for (std::size_t i = 0; i < variant.locals.size(); ++i) {
    auto& slot = locals[begin + forwardLocals + i];
    if (slot || variant.locals[i].storage == RuleLocal::foreign) continue;
    slot = writer_.makeValue(variant.locals[i], storages, ValueKind::gradient);
  }
  writer_.addConstants(variant.constants, begin);
  for (const auto& op : variant.ops) {
    Origin origin{
        .op = instance.op, .role = op.role == Role::none ? Role::gradient : op.role, .operand = op.gradientOf};
    origin.output = onlyOutput;
    if (op.gradientOf >= 0) origin.value = locals[instance.localsBegin + op.gradientOf];
    if (!instance.writesView && zeros_.noteAndForcesZero(op, std::span(locals).subspan(begin)))
      emitAsZero(op, variant, forwardLocals, begin, storages, origin);
    else writer_.emit(op, begin, origin);
  }
  for (const auto& [operand, local] : variant.gradients)
    gradients_.add(locals[instance.localsBegin + operand], locals[begin + local]);
}

/// The op, which gives the sizes and the dtype, and zeros instead of its result.
void JointBuilder::emitAsZero(const RuleOp& op, const BackwardVariant& variant, std::size_t forwardLocals,
                              std::size_t begin, std::vector<StorageId>& storages, const Origin& origin) {
  auto& result = writer_.locals()[begin + op.outputs.front()];
  auto local = variant.locals[op.outputs.front() - forwardLocals];
  local.storage = static_cast<std::int32_t>(storages.size());
  storages.emplace_back();
  const auto zero = std::exchange(result, writer_.makeValue(local, storages, ValueKind::gradient));
  writer_.emit(op, begin, origin);
  const auto product = std::exchange(result, zero);
  writer_.emit(writer_.internOp("aten.zeros_like.default"),
               document_.internPattern({{Argument::ofOperand(0)}, {}, 1, {}}), 0, std::array{product}, std::array{zero},
               origin);
}

}  // namespace retrograd
