// Ops that give a tensor other sizes or strides in place and write no element: transpose_, unsqueeze_ and their kin.
#include <algorithm>
#include <array>
#include <utility>

#include "core/torch/grad/joint_builder.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

/// "aten.squeeze_.dim" -> "aten.squeeze.dim"
std::string functionalName(const std::string& name) {
  if (name == "aten.transpose_.default") return "aten.transpose.int";
  const auto dot = name.rfind('.');
  return dot != std::string::npos && dot > 0 && name[dot - 1] == '_' ? name.substr(0, dot - 1) + name.substr(dot)
                                                                     : std::string();
}

/// Whether autograd makes the history of a view that this op leads to again by its ops, not from sizes and strides:
/// as_strided could not lead there.
bool isReplayed(std::string_view view) {
  static constexpr std::array<std::string_view, 4> ops{"aten.view_as_real.default", "aten.view_as_complex.default",
                                                       "aten._conj.default", "aten._neg_view.default"};
  return std::ranges::find(ops, view) != ops.end();
}

}  // namespace

void JointBuilder::applyGeometryChange(BoundSymbolId op) {
  const std::string name = nameOf(op);
  const auto call = callOf(op);
  const auto target = call.computationValues.at(0);
  if (region_.gradMode && !hasTrait(name, OpTrait::detach)) refuseLeaf(tensorOf(target)->family);
  const auto before = resolve(target).value;
  const bool isUnseen = !region_.gradMode && document_.value(before).requiresGrad;
  // Of a view autograd makes the history again when it sees a new version, from the sizes and strides that it has then:
  // as if the change had been recorded.
  const bool isSeenLater = isUnseen && tensorOf(target)->isView;
  if (isUnseen && !isSeenLater && aliases_.family(tensorOf(target)->family).viewInRule)
    throw Error(ErrorCode::unsupportedOp,
                "it changes, unseen by autograd, a tensor that an op of several made a view of: its gradient "
                "afterwards is not known here",
                "torch.ops." + name);
  const auto replays = [&](const ViewPath& path) {
    return std::ranges::any_of(path, [&](const ViewStep& step) { return step.view && isReplayed(nameOf(step.view)); });
  };
  if (isSeenLater && replays(tensorOf(target)->path))
    throw Error(ErrorCode::unsupportedOp,
                "it changes, unseen by autograd, a view that autograd then makes again as it was: no gradient is known "
                "here for both",
                "torch.ops." + name);
  const GradModeScope recorded(region_, region_.gradMode || isSeenLater);
  const auto instance = apply(op, writer_.internOp(functionalName(name)), call.pattern, call.tensors);
  if (instance.rule->outputs[0] >= instance.rule->operandCount) {
    auto changed = output(instance, 0);
    ValueId leaf;
    if (document_.value(changed).meta ==
        document_.value(before).meta) {  // squeeze_ of what has no size of one: the tensor stays what it is
      bindOutput(op, target);
      return;
    }
    if (isUnseen && !isSeenLater) {
      leaf = unusedLeaf(*tensorOf(target));
      changed = changeUnseen(op, leaf, before, changed);
    }
    const auto binding = bindingTo(changed);
    const auto former = std::exchange(*tensorOf(target), tensors_[binding.tensor]);
    tensorOf(target)->isView = former.isView;
    if (const auto now = tensorOf(target)->family; now != former.family && isUnseen) {
      aliases_.family(now).former = former.family;
      aliases_.family(former.family).baseReshaped = true;
    }
    if (leaf) reshapedLeaves_[tensorOf(target)->family] = leaf;
  }
  bindOutput(op, target);
}

/// Whether autograd makes a tensor's history again by ops that lead to other sizes or strides: those of a view that
/// changed in place afterwards. Then each element's gradient goes to another element, or, where the sizes differ,
/// eager's backward throws.
bool JointBuilder::isReplayedAsItWas(const ViewPath& path) const {
  bool replayed = false;
  for (const auto& step : path) {
    if (!step.view) continue;
    replayed = replayed || isReplayed(nameOf(step.view));
    if (const auto origin = document_.boundSymbol(step.view).origin.op;
        replayed && origin && hasTrait(nameOf(origin), OpTrait::changesGeometry))
      return true;
  }
  return false;
}

void JointBuilder::refuseReplayed(BoundSymbolId writer) const {
  throw Error(ErrorCode::unsupportedOp,
              "it writes to the memory of a complex tensor's part or conjugate whose sizes or strides changed in "
              "place; eager PyTorch's gradient is then that of other "
              "elements, so change them out of place (transpose instead of transpose_)",
              document_.opName(writer));
}

/// An op in place returns the tensor that it was called on.
void JointBuilder::bindOutput(BoundSymbolId op, ValueId target) {
  resolve(target);
  const auto outputs = std::as_const(document_).outputs(op);
  if (!outputs.empty() && outputs[0]) bindings_[outputs[0]] = bindings_[target];
}

/// Views that were taken of a tensor before its sizes or strides changed unseen follow a later write to it in eager
/// PyTorch, gradient and all; here the tensor has left their family.
void JointBuilder::refuseViewsOf(BoundSymbolId op, std::int32_t former) const {
  if (former >= 0 &&
      std::ranges::any_of(tensors_, [&](const TensorState& t) { return t.family == former && !t.path.empty(); }))
    throw Error(ErrorCode::unsupportedOp,
                "it writes to a tensor that views were taken of before its sizes or strides changed unseen by autograd",
                document_.opName(op));
}

/// The input that a tensor is, where no recorded op used it so far: autograd knows nothing of its sizes then.
ValueId JointBuilder::unusedLeaf(const TensorState& tensor) const {
  if (!tensor.path.empty()) return {};
  const auto& family = aliases_.family(tensor.family);
  const auto reshaped = reshapedLeaves_.find(tensor.family);
  const auto leaf = family.leaf                         ? computation_.trace.inputs[family.input]
                    : reshaped == reshapedLeaves_.end() ? ValueId()
                                                        : reshaped->second;
  const auto uses = [&](const Instance& instance) {
    for (std::int32_t i = 0; instance.rule && i < instance.rule->operandCount; ++i)
      if (aliases_.familyOfBase(valueOfLocal(instance, i)) == tensor.family) return true;
    return false;
  };
  return leaf && std::ranges::none_of(instances_, uses) ? leaf : ValueId();
}

/// `changed`, which lies in memory as `before` does, with the gradient of `before`: autograd does not record the
/// change, and the gradient stays what it was, element by element. Of a leaf that no recorded op used it comes in the
/// sizes that are new. Of any other tensor autograd sums what arrives to the sizes that it knows, which undoes new
/// dimensions in front; it refuses any other.
ValueId JointBuilder::changeUnseen(BoundSymbolId op, ValueId leaf, ValueId before, ValueId changed) {
  const auto& known = document_.meta(before).sizes;
  const std::vector<std::int64_t> sizes = document_.meta(changed).sizes;
  if (known == sizes) return withGradientOf(op, changed, before);
  if (leaf) result_.gradientSizes[leaf] = sizes;
  else if (sizes.size() < known.size() || !std::equal(known.rbegin(), known.rend(), sizes.rbegin()))
    throw Error(ErrorCode::unsupportedOp,
                "it changes the sizes of a tensor that requires a gradient, unseen by autograd",
                "torch.ops." + document_.symbol(op).name);
  const GradModeScope recorded(region_, true);
  return withGradientOf(op, changed, call1(op, "aten.reshape.default", {integers(sizes)}, before));
}

}  // namespace retrograd
