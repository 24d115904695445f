// In-place ops made functional. The rule of an in-place op writes to a clone; here that clone becomes the new content of the alias
// group: through views it is written to the base, every other alias is made again when next used, inputs get it at the end.
#include <array>
#include <utility>

#include "core/grad/joint_builder.h"
#include "core/tracing/convert.h"
#include "core/tracing/op_table.h"

namespace retrograd {
namespace {

/// "aten.squeeze_.dim" -> "aten.squeeze.dim"
std::string functionalName(const std::string& name) {
  if (name == "aten.transpose_.default") return "aten.transpose.int";
  const auto dot = name.rfind('.');
  return dot != std::string::npos && dot > 0 && name[dot - 1] == '_' ? name.substr(0, dot - 1) + name.substr(dot) : std::string();
}

/// Ops that change an alias's geometry and write no element.
bool changesGeometryOnly(const std::string& name) {
  static constexpr std::array<std::string_view, 10> ops{"aten.transpose_.", "aten.t_.",        "aten.squeeze_.", "aten.unsqueeze_.", "aten.swapaxes_.",
                                                        "aten.swapdims_.",  "aten.detach_.", "aten.as_strided_.", "aten.movedim_.", "aten.permute_."};
  for (auto op : ops)
    if (name.starts_with(op)) return true;
  return false;
}

Argument sizesArgument(const std::vector<std::int64_t>& sizes) {
  Argument list = Argument::ofList({});
  for (auto s : sizes) list.items.push_back(Argument::ofInt(s));
  return list;
}

}  // namespace

/// A value of the computation as the joint has it now: made again from its group when something was written since.
Binding& JointBuilder::resolve(ValueId computationValue) {
  auto& binding = bindings_[static_cast<std::size_t>(computationValue.index)];
  if (binding.group >= 0 && binding.version != groups_[static_cast<std::size_t>(binding.group)].version) refresh(binding);
  return binding;
}

void JointBuilder::adoptAliases(Binding& binding) {
  if (!tracksAliases_ || !document_.isTensor(binding.value)) return;
  const auto storage = document_.value(binding.value).storage;
  const auto group = groupOfStorage_.find(storage.index);
  // The walk ends at the group's root; a root that was written through views may itself be made by a view op.
  const auto known = group == groupOfStorage_.end() ? ValueId() : groups_[static_cast<std::size_t>(group->second)].current;
  binding.path.clear();
  auto root = binding.value;
  for (auto it = viewOf_.find(root.index); root != known && it != viewOf_.end(); it = viewOf_.find(root.index)) {
    binding.path.insert(binding.path.begin(), it->second);
    root = document_.operands(it->second.first)[0];
  }
  if (group == groupOfStorage_.end()) {
    binding.group = groupOfStorage_[storage.index] = static_cast<std::int32_t>(groups_.size());
    groups_.push_back({root, 0, -1, {}});
  } else {
    binding.group = group->second;
  }
  binding.version = groups_[static_cast<std::size_t>(binding.group)].version;
}

void JointBuilder::refresh(Binding& binding) {
  const auto group = groups_[static_cast<std::size_t>(binding.group)];
  auto value = group.current;
  const auto path = binding.path;  // a copy: applying a view may move bindings_
  for (const auto& [view, output] : path) value = applyView(group.lastWriter, view, output, value);
  binding.value = value;
  binding.version = group.version;
}

void JointBuilder::applyMutation(BoundSymbolId op) {
  const std::string name = document_.symbol(document_.boundSymbol(op).symbol).name;
  if (changesGeometryOnly(name)) return applyGeometryChange(op);
  const auto call = callOf(op);
  const bool gradMode = region_.gradMode && document_.boundSymbol(op).gradMode;
  const auto instance = apply(op, document_.boundSymbol(op).symbol, call.pattern, call.tensors, gradMode);
  bindOutputs(op, instance, call);
  const auto outputSpan = std::as_const(document_).outputs(op);
  const std::vector<ValueId> outputs(outputSpan.begin(), outputSpan.end());
  for (const auto& [hole, local] : instance.rule->written) {
    const auto target = call.computationValues[static_cast<std::size_t>(hole)];
    write(op, target, valueOfLocal(instance, local));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] && instance.rule->outputs[i] == local) bindings_[static_cast<std::size_t>(outputs[i].index)] = resolve(target);
  }
}

void JointBuilder::applyGeometryChange(BoundSymbolId op) {
  const std::string name = document_.symbol(document_.boundSymbol(op).symbol).name;
  const auto call = callOf(op);
  const auto instance = apply(op, internOp(functionalName(name)), call.pattern, call.tensors, region_.gradMode);
  Binding binding;
  binding.value = output(instance, 0);
  adoptAliases(binding);
  const auto outputSpan = std::as_const(document_).outputs(op);
  const auto result = outputSpan.empty() ? ValueId() : outputSpan[0];
  if (result) bindings_[static_cast<std::size_t>(result.index)] = binding;
  bindings_[static_cast<std::size_t>(call.computationValues.at(0).index)] = binding;
}

void JointBuilder::write(BoundSymbolId op, ValueId target, ValueId content) {
  const Binding binding = resolve(target);
  if (binding.group < 0) throw Error(ErrorCode::internal, "a written value has no alias group", document_.displayName(target));
  const auto groupIndex = static_cast<std::size_t>(binding.group);
  const auto before = groups_[groupIndex].current;
  auto root = binding.path.empty() ? content : writeThrough(op, binding, content);
  // In a no_grad region, or through detach, the data change and the gradient of what was there passes unchanged.
  bool detached = !region_.gradMode || !document_.boundSymbol(op).gradMode;
  for (const auto& [view, output] : binding.path) detached |= document_.symbol(document_.boundSymbol(view).symbol).name == "aten.detach.default";
  if (detached && document_.value(before).requiresGrad) passThrough(before, root, op);
  auto& group = groups_[groupIndex];
  group.current = root;
  group.lastWriter = op;
  ++group.version;
  groupOfStorage_[document_.value(root).storage.index] = binding.group;
  if (binding.path.empty()) {
    auto& now = bindings_[static_cast<std::size_t>(target.index)];
    now.value = root;
    now.version = group.version;
  }
}

/// The group's root with `content` in the place that `target` views.
ValueId JointBuilder::writeThrough(BoundSymbolId op, const Binding& target, ValueId content) {
  std::vector<ValueId> bases{groups_[static_cast<std::size_t>(target.group)].current};
  for (std::size_t i = 0; i + 1 < target.path.size(); ++i) bases.push_back(applyView(op, target.path[i].first, target.path[i].second, bases.back()));
  for (std::size_t i = target.path.size(); i-- > 0;) content = invertView(op, target.path[i].first, target.path[i].second, bases[i], content);
  return content;
}

ValueId JointBuilder::call(BoundSymbolId origin, std::string_view symbol, CallPattern pattern, std::vector<ValueId> tensors) {
  pattern.operandCount = static_cast<std::int32_t>(tensors.size());
  const auto instance = apply(origin, internOp(std::string(symbol)), document_.internPattern(pattern), tensors, region_.gradMode);
  return instance.rule->outputs[0] < instance.rule->operandCount ? tensors[static_cast<std::size_t>(instance.rule->outputs[0])] : output(instance, 0);
}

ValueId JointBuilder::applyView(BoundSymbolId origin, BoundSymbolId view, int outputIndex, ValueId base) {
  const auto operandSpan = document_.operands(view);
  std::vector<ValueId> tensors(operandSpan.begin(), operandSpan.end());
  tensors.at(0) = base;
  const auto& bound = document_.boundSymbol(view);
  const auto instance = apply(origin, bound.symbol, bound.pattern, tensors, region_.gradMode);
  const auto local = instance.rule->outputs.at(static_cast<std::size_t>(outputIndex));
  return local >= 0 && local < instance.rule->operandCount ? tensors[static_cast<std::size_t>(local)] : output(instance, static_cast<std::size_t>(outputIndex));
}

/// `base` with `content` where `view` looks, by the view's scatter op or inverse.
ValueId JointBuilder::invertView(BoundSymbolId origin, BoundSymbolId view, int outputIndex, ValueId base, ValueId content) {
  const std::string name = document_.symbol(document_.boundSymbol(view).symbol).name;
  const auto pattern = document_.pattern(document_.boundSymbol(view).pattern).arguments;
  const TensorMeta meta = document_.meta(document_.value(base).meta);
  const auto rank = static_cast<std::int64_t>(meta.sizes.size());
  const auto self = Argument::ofOperand(0), source = Argument::ofOperand(1);
  const auto wrap = [&](std::int64_t dim) { return dim < 0 ? dim + rank : dim; };
  const auto unary = [&](std::string_view op, std::vector<Argument> rest) {
    rest.insert(rest.begin(), self);
    return call(origin, op, {std::move(rest), {}, 1, {}}, {content});
  };
  const auto apply = [&](std::string_view op, ValueId tensor) {
    return call(origin, op, {{self}, {}, 1, {}}, {tensor});
  };
  // LibTorch has no derivative for scatter ops on complex numbers: these are scattered as pairs of reals. `dims`: where in `rest`
  // dimensions stand; counted from the front they stay the same with one more at the end.
  const auto scatter = [&](std::string_view op, std::vector<Argument> rest, std::vector<std::size_t> dims = {}) {
    const bool complex = isComplex(meta.dtype) && !dims.empty();
    if (complex)
      for (auto i : dims)
        if (i < rest.size() && rest[i].kind == Argument::Kind::integer) rest[i].integer = wrap(rest[i].integer);
    rest.insert(rest.begin(), {self, source});
    const CallPattern pattern{std::move(rest), {}, 2, {}};
    if (!complex) return call(origin, op, pattern, {base, content});
    const auto real = [&](ValueId tensor) { return apply("aten.view_as_real.default", apply("aten.resolve_conj.default", tensor)); };
    const auto realBase = real(base);
    auto pairs = real(content);
    if (op == "aten.diagonal_scatter.default")  // a diagonal is the last dimension, also behind that of the pairs
      pairs = call(origin, "aten.transpose.int", {{self, Argument::ofInt(-2), Argument::ofInt(-1)}, {}, 1, {}}, {pairs});
    return apply("aten.view_as_complex.default", call(origin, op, pattern, {realBase, pairs}));
  };
  const auto slice = [&](std::int64_t dim, std::int64_t begin, std::int64_t length) {
    return scatter("aten.slice_scatter.default", {Argument::ofInt(dim), Argument::ofInt(begin), Argument::ofInt(begin + length), Argument::ofInt(1)}, {0});
  };
  const std::vector<Argument> rest(pattern.begin() + 1, pattern.end());
  if (name == "aten.select.int") return scatter("aten.select_scatter.default", rest, {0});
  if (name == "aten.slice.Tensor") return scatter("aten.slice_scatter.default", rest, {0});
  if (name == "aten.diagonal.default") return scatter("aten.diagonal_scatter.default", rest, {1, 2});
  if (name == "aten.unbind.int") return scatter("aten.select_scatter.default", {rest.at(0), Argument::ofInt(outputIndex)}, {0});
  if (name == "aten.split.Tensor" || name == "aten.unsafe_split.Tensor") {
    const auto dim = wrap(rest.at(1).integer), step = rest.at(0).integer, begin = step * outputIndex;
    return slice(dim, begin, std::min(step, meta.sizes.at(static_cast<std::size_t>(dim)) - begin));
  }
  if (name == "aten.split_with_sizes.default" || name == "aten.unsafe_split_with_sizes.default") {
    std::int64_t begin = 0;
    for (int k = 0; k < outputIndex; ++k) begin += rest.at(0).items.at(static_cast<std::size_t>(k)).integer;
    return slice(wrap(rest.at(1).integer), begin, rest.at(0).items.at(static_cast<std::size_t>(outputIndex)).integer);
  }
  if (name == "aten.transpose.int" || name == "aten.t.default") return unary(name, rest);
  if (name == "aten.permute.default") {
    std::vector<std::int64_t> inverse(static_cast<std::size_t>(rank));
    for (std::int64_t i = 0; i < rank; ++i) inverse[static_cast<std::size_t>(wrap(rest.at(0).items.at(static_cast<std::size_t>(i)).integer))] = i;
    return unary(name, {sizesArgument(inverse)});
  }
  if (name == "aten.view.default" || name == "aten._unsafe_view.default" || name == "aten._reshape_alias.default" || name == "aten.unsqueeze.default" ||
      name.starts_with("aten.squeeze."))
    return unary("aten.reshape.default", {sizesArgument(meta.sizes)});
  if (name == "aten.alias.default" || name == "aten.detach.default") return content;
  if (name == "aten.view_as_real.default") return unary("aten.view_as_complex.default", {});
  if (name == "aten.view_as_complex.default") return unary("aten.view_as_real.default", {});
  if (name == "aten._conj.default" || name == "aten._neg_view.default") return unary(name, {});
  if (name == "aten.view.dtype") return unary(name, {Argument::ofDType(meta.dtype)});
  if (name == "aten.as_strided.default" && meta.strides == contiguousStrides(meta.sizes)) return scatter("aten.as_strided_scatter.default", rest);
  throw Error(ErrorCode::unsupportedOp, "a write through this view cannot be made functional", "torch.ops." + name);
}

void JointBuilder::passThrough(ValueId from, ValueId to, BoundSymbolId op) {
  document_.value(to).requiresGrad = true;
  Instance instance;
  instance.op = op;
  instance.from = from;
  instance.to = to;
  instances_.push_back(instance);
}

/// What was written to inputs and buffers goes there at the end of the forward, so that nothing before reads it too early.
void JointBuilder::copyBack() {
  for (const auto& group : groups_) {
    if (group.input < 0 || group.version == 0) continue;
    const auto input = computation_.trace.inputs[static_cast<std::size_t>(group.input)];
    static const CallPattern copy{{Argument::ofOperand(0), Argument::ofOperand(1), Argument::ofBool(false)}, {}, 2, {-1}};
    Value value = document_.value(input);
    value.producer = {};
    value.requiresGrad = false;
    value.kind = ValueKind::activation;
    ++value.version;
    if (value.name) value.name = document_.internUnique(std::string(document_.text(value.name)));
    const auto after = document_.addValue(value);
    emit(internOp("aten.copy_.default"), document_.internPattern(copy), effect::writes, std::array{input, group.current}, std::array{after},
         forwardOrigin(group.lastWriter));
    result_.mutated[static_cast<std::size_t>(group.input)] = after;
  }
}

}  // namespace retrograd
