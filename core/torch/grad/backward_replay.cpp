#include <algorithm>
#include <array>
#include <optional>

#include "core/torch/grad/joint_builder.h"
#include "core/torch/grad/literals.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/recorder.h"

namespace retrograd {

void JointBuilder::replayBackward() {
  gradients_.resize(document_.valueCount());
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
  nameTerms();
  resizeGradients();
  for (auto id : gradients_.ids())
    if (gradients_[id].value && !gradients_[id].refused) result_.gradients.emplace_hint(result_.gradients.end(), id, gradients_[id].value);
}

void JointBuilder::seedCotangents() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    cotangents_.emplace_back();
    const auto output = outputs_[i];
    const auto kind = computation_.outputs[i].kind;
    if (!output || !document_.isTensor(output) || !document_.value(output).requiresGrad) continue;
    if (kind != OutputKind::user && kind != OutputKind::loss) continue;
    if (options_.hasCotangent && !options_.hasCotangent(i)) continue;
    const auto& like = document_.meta(document_.value(output).meta);
    TensorMeta meta;
    meta.dtype = like.dtype;
    meta.device = like.device;
    meta.sizes = like.sizes;
    meta.strides = contiguousStrides(like.sizes);
    Value value;
    value.kind = ValueKind::cotangent;
    value.meta = document_.internMeta(meta);
    value.storage = document_.addStorage(meta.bytes(), {}, true);
    value.name = document_.internUnique("cotangent_" + std::to_string(i));
    cotangents_.back() = document_.addValue(value);
    document_.storage(value.storage).first = cotangents_.back();
    if (options_.realValues) options_.realValues->addCotangent(cotangents_.back(), i);
    accumulate(output, cotangents_.back());
  }
}

void JointBuilder::replay(Instance& instance) {
  if (instance.opaque) return refuseThrough(instance);
  if (refuseBefore(instance)) return;
  if (!instance.rule) {  // the gradient passes unchanged
    const auto gradient = gradients_[instance.to].value;
    if (gradient) accumulate(instance.from, gradient);
    return;
  }
  const Rule& rule = *instance.rule;
  std::vector<MetaId> metas(rule.outputs.size());
  std::vector<ValueId> cotangents(rule.outputs.size());
  bool any = false;
  for (std::size_t o = 0; o < rule.outputs.size(); ++o) {
    if (!rule.outputRequiresGrad[o]) continue;
    const auto gradient = gradients_[output(instance, o)].value;
    if (!gradient) continue;
    metas[o] = document_.value(gradient).meta;
    cotangents[o] = gradient;
    any = true;
  }
  if (!any) return;  // A14: no output of it leads to a result
  const auto& variant = variantFor(instance, metas, cotangents);
  emitVariant(instance, variant, cotangents);
}

/// Shapes alone first; then with real operands and cotangents where the formula asks for data; then on real tensors throughout,
/// where it reads data without asking or makes a sparse gradient.
const BackwardVariant& JointBuilder::variantFor(Instance& instance, const std::vector<MetaId>& metas, const std::vector<ValueId>& cotangents) {
  std::optional<Error> refusal;
  if (!instance.withData) {
    try {
      return backwardVariant(document_, *instance.rule, metas);
    } catch (const NeedsData&) {
      refusal = Error(ErrorCode::needsData, "its derivative reads data, and no inputs are at hand", document_.symbol(instance.symbol).name);
    } catch (const Error& e) {
      refusal = e;
    }
    if (!options_.realValues) throw *refusal;
  }
  for (const bool runReal : {false, true}) {
    try {
      return variantWithData(instance, metas, cotangents, runReal);
    } catch (const NeedsData& e) {
      if (runReal) throw Error(ErrorCode::needsData, e.what(), document_.symbol(instance.symbol).name);
    } catch (const Error& e) {
      if (!runReal) continue;
      if (refusal) throw *refusal;
      throw;
    }
  }
  throw Error(ErrorCode::internal, "unreachable");
}

const BackwardVariant& JointBuilder::variantWithData(Instance& instance, const std::vector<MetaId>& metas, const std::vector<ValueId>& cotangents,
                                                     bool runReal) {
  if (!instance.withData || runReal) {
    // The rule once more with real operands; its locals come out the same, as the op runs the same way.
    const std::string name = document_.symbol(instance.symbol).name;
    const CallPattern calls = document_.pattern(instance.pattern);
    const std::vector<ValueId> tensors(locals_.begin() + static_cast<std::ptrdiff_t>(instance.localsBegin),
                                       locals_.begin() + static_cast<std::ptrdiff_t>(instance.localsBegin) + instance.rule->operandCount);
    const auto before = region_.autocast;
    if (instance.autocast > 0) region_.autocast = autocasts_[instance.autocast - 1];
    const GradModeScope recorded(region_, true);
    auto rule = deriveWithData(requestFor(name, calls, tensors, instance.writes), tensors, runReal);
    region_.autocast = before;
    if (rule->locals.size() != instance.rule->locals.size()) throw Error(ErrorCode::internal, "it traces differently with data", name);
    instance.rule = cache_.keep(std::move(rule));
    if (!instance.withData) result_.dataDependent.push_back(name + " (backward)");
    instance.withData = true;
  }
  std::vector<at::Tensor> values;
  for (auto cotangent : cotangents) values.push_back(cotangent ? real(cotangent) : at::Tensor());
  return backwardVariant(document_, *instance.rule, metas, values);
}

void JointBuilder::emitVariant(const Instance& instance, const BackwardVariant& variant, const std::vector<ValueId>& cotangents) {
  const Rule& rule = *instance.rule;
  const auto begin = locals_.size();
  const auto forwardLocals = rule.locals.size();
  locals_.resize(begin + forwardLocals + variant.locals.size());
  std::copy_n(locals_.begin() + static_cast<std::ptrdiff_t>(instance.localsBegin), forwardLocals, locals_.begin() + static_cast<std::ptrdiff_t>(begin));
  for (const auto& [local, value] : instance.readInstead) locals_[begin + static_cast<std::size_t>(local)] = value;
  if (!result_.readLate.empty()) readLate(instance, variant, begin, forwardLocals);
  auto& storages = storageScratch_;
  storages.clear();
  for (std::size_t i = 0; i < forwardLocals; ++i) {
    const auto number = rule.locals[i].storage;
    if (number < 0) continue;
    if (number >= std::ssize(storages)) storages.resize(number + 1);
    storages[number] = document_.value(locals_[begin + i]).storage;
  }
  std::int16_t onlyOutput = -1;
  int defined = 0;
  for (std::size_t o = 0; o < cotangents.size(); ++o) {
    if (!cotangents[o]) continue;
    const std::size_t local = variant.cotangents[o];
    locals_[begin + local] = cotangents[o];
    const std::size_t number = variant.locals[local - forwardLocals].storage;
    if (number >= storages.size()) storages.resize(number + 1);
    storages[number] = document_.value(cotangents[o]).storage;
    onlyOutput = ++defined == 1 ? static_cast<std::int16_t>(o) : std::int16_t{-1};
  }
  for (std::size_t i = 0; i < variant.locals.size(); ++i) {
    auto& slot = locals_[begin + forwardLocals + i];
    if (slot || variant.locals[i].storage == RuleLocal::foreign) continue;
    slot = makeValue(variant.locals[i], storages, ValueKind::gradient);
  }
  addConstants(variant.constants, begin);
  for (const auto& op : variant.ops) {
    Origin origin;
    origin.op = instance.op;
    origin.role = op.role == Role::none ? Role::gradient : op.role;
    origin.operand = op.operand;
    origin.output = onlyOutput;
    if (op.operand >= 0) origin.value = locals_[instance.localsBegin + op.operand];
    emit(op, begin, origin);
  }
  for (const auto& [operand, local] : variant.gradients) accumulate(locals_[instance.localsBegin + operand], locals_[begin + local]);
}

/// Puts what memory holds by now in place of the locals from `begin` on that were written behind autograd's back.
void JointBuilder::readLate(const Instance& instance, const BackwardVariant& variant, std::size_t begin, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto now = result_.readLate.find(locals_[begin + i]);
    if (now == result_.readLate.end()) continue;
    locals_[begin + i] = now->second;
    const auto isRead = [&](const RuleOp& op) { return std::find(op.operands.begin(), op.operands.end(), static_cast<std::int32_t>(i)) != op.operands.end(); };
    const auto maker = document_.value(now->second).producer;
    if (maker && std::any_of(variant.ops.begin(), variant.ops.end(), isRead)) result_.lateReads.emplace(instance.op, document_.boundSymbol(maker).origin.op);
  }
}

/// Autograd gives the gradient of a leaf in the sizes that the leaf had when a recorded op first used it.
void JointBuilder::resizeGradients() {
  for (const auto& [input, sizes] : result_.gradientSizes) {
    auto& slot = gradients_[input];
    if (!slot.value || slot.refused || document_.meta(document_.value(slot.value).meta).sizes == sizes) continue;
    const std::array tensors{slot.value};
    bool withData = false;
    Rule& rule = *ruleFor(internOp("aten.reshape.default"), document_.internPattern({{Argument::ofOperand(0), integers(sizes)}, {}, 1, {}}), tensors,
                          WriteMode::cloneMarked, withData);
    const auto begin = locals_.size();
    locals_.resize(begin + rule.locals.size());
    locals_[begin] = slot.value;
    auto& storages = storageScratch_;
    storages.assign(1, document_.value(slot.value).storage);
    for (std::size_t i = 1; i < rule.locals.size(); ++i) locals_[begin + i] = makeValue(rule.locals[i], storages, ValueKind::gradient);
    Origin origin;
    origin.role = Role::gradient;
    origin.value = input;
    if (const auto producer = document_.value(slot.value).producer) origin.op = document_.boundSymbol(producer).origin.op;
    for (const auto& op : rule.forward) emit(op, begin, origin);
    slot.value = locals_[begin + rule.outputs[0]];
  }
}

void JointBuilder::accumulate(ValueId value, ValueId gradient) {
  auto& slot = gradients_[value];
  if (slot.refused) return;
  slot.terms.push_back(gradient);
  if (!slot.value) {
    slot.value = gradient;
    return;
  }
  static const CallPattern add{{Argument::ofOperand(0), Argument::ofOperand(1), Argument::ofInt(1)}, {}, 2, {-1}};
  const std::array<ValueId, 2> tensors{slot.value, gradient};
  bool withData = false;
  Rule& rule = *ruleFor(internOp("aten.add.Tensor"), document_.internPattern(add), tensors, WriteMode::cloneMarked, withData);
  const auto begin = locals_.size();
  locals_.resize(begin + rule.locals.size());
  std::copy(tensors.begin(), tensors.end(), locals_.begin() + static_cast<std::ptrdiff_t>(begin));
  auto& storages = storageScratch_;
  storages.clear();
  for (std::size_t i = tensors.size(); i < rule.locals.size(); ++i) locals_[begin + i] = makeValue(rule.locals[i], storages, ValueKind::gradient);
  Origin origin;
  origin.role = Role::accumulation;
  origin.value = value;
  if (const auto producer = document_.value(value).producer) {
    const auto& bound = document_.boundSymbol(producer);
    origin.op = bound.origin.role == Role::none ? producer : bound.origin.op;
  }
  for (const auto& op : rule.forward) slot.additions.push_back(emit(op, begin, origin));
  slot.value = locals_[begin + rule.outputs[0]];
}

/// The k-th addition into a value sums the first k + 1 terms: one list in the document serves them all.
void JointBuilder::nameTerms() {
  for (const auto& gradient : gradients_) {
    if (gradient.additions.empty()) continue;
    Origin shared;
    document_.setTerms(shared, gradient.terms);
    for (std::size_t k = 0; k < gradient.additions.size(); ++k) {
      auto& origin = document_.boundSymbol(gradient.additions[k]).origin;
      origin.termsBegin = shared.termsBegin;
      origin.termCount = static_cast<std::uint16_t>(std::min<std::size_t>(k + 2, gradient.terms.size()));
    }
  }
}

}  // namespace retrograd
