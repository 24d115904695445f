// Views applied to a base, and their inverses: a base with other content where a view looks.
#include <algorithm>
#include <utility>

#include "core/torch/grad/joint_builder.h"
#include "core/trace/op_traits.h"

namespace retrograd {
ValueId JointBuilder::call(BoundSymbolId origin, std::string_view symbol, CallPattern pattern,
                           std::vector<ValueId> tensors) {
  pattern.operandCount = static_cast<std::int32_t>(tensors.size());
  const auto id = writer_.internOp(std::string(symbol));
  const auto instance = apply(origin, id, document_.internPattern(pattern), tensors);
  return instance.rule->outputs[0] < instance.rule->operandCount ? tensors[instance.rule->outputs[0]]
                                                                 : output(instance, 0);
}

/// An op of one tensor and literals.
ValueId JointBuilder::call1(BoundSymbolId origin, std::string_view symbol, std::vector<Argument> literals,
                            ValueId tensor) {
  literals.insert(literals.begin(), Argument::ofOperand(0));
  return call(origin, symbol, {std::move(literals), {}, 1, {}}, {tensor});
}

ValueId JointBuilder::follow(BoundSymbolId origin, const ViewPath& path, ValueId base) {
  for (const auto& step : path) base = applyView(origin, step, base);
  return base;
}

ValueId JointBuilder::applyView(BoundSymbolId origin, const ViewStep& step, ValueId base) {
  if (!step.view) return stridedView(origin, base, TensorMeta(document_.meta(step.geometry)));
  auto tensors = copied(document_.operands(step.view));
  tensors.at(step.base) = base;
  const auto& bound = document_.boundSymbol(step.view);
  const auto instance = apply(origin, bound.symbol, bound.pattern, tensors);
  const auto local = instance.rule->outputs.at(step.output);
  return local >= 0 && local < instance.rule->operandCount ? tensors[local] : output(instance, step.output);
}

/// The base with `content` where the path leads. `ownsMemory`: no other tensor holds what lies around the base.
ValueId JointBuilder::scatterThrough(BoundSymbolId origin, const ViewPath& path, ValueId base, ValueId content,
                                     bool ownsMemory) {
  if (isComplex(document_.meta(base).dtype)) gradients_.addByParts(base);
  std::vector<ValueId> bases{base};
  for (const auto& step : path) bases.push_back(applyView(origin, step, bases.back()));
  for (std::size_t i = ownsMemory ? 1 : 0; i < path.size(); ++i)
    if ((!path[i].view || hasTrait(document_.symbol(path[i].view).name, OpTrait::readsMemory)) &&
        !liesWithin(document_.meta(bases[i + 1]), document_.meta(bases[i])))
      throw Error(ErrorCode::unsupportedOp, "a write through it reaches beyond the tensor that it was taken of",
                  "torch.ops.aten.as_strided.default");
  for (auto i = path.size(); i > 0;) {
    // Nothing can be scattered into a view whose elements overlap, but what it leads to may lie apart all the same: a
    // slice of what was expanded.
    auto from = i - 1;
    while (from > 0 && overlapsItself(document_.meta(bases[from]))) --from;
    content = from + 1 == i ? invertView(origin, path[from], bases[from], bases[i], content)
                            : scatterByGeometry(origin, "aten.as_strided.default", bases[from], bases[i], content);
    i = from;
  }
  return content;
}

/// All elements of the memory that a tensor lies in, in their order there.
ValueId JointBuilder::flat(BoundSymbolId origin, ValueId tensor) {
  const auto& value = document_.value(tensor);
  const auto elements = document_.meta(value.meta).storageBytes() / itemSize(document_.meta(value.meta).dtype);
  return call1(origin, "aten.as_strided.default", {integers({elements}), integers({1}), Argument::ofInt(0)}, tensor);
}

/// A flat tensor's memory in another dtype: as many whole elements as it has.
ValueId JointBuilder::inDType(BoundSymbolId origin, ValueId flat, DType dtype) {
  const auto& meta = document_.meta(flat);
  const auto elements = meta.sizes.at(0),
             whole = elements - elements * itemSize(meta.dtype) % itemSize(dtype) / itemSize(meta.dtype);
  if (meta.dtype == dtype) return flat;
  if (whole != elements)
    flat = call1(origin, "aten.as_strided.default", {integers({whole}), integers({1}), Argument::ofInt(0)}, flat);
  return call1(origin, "aten.view.dtype", {Argument::ofDType(dtype)}, flat);
}

ValueId JointBuilder::stridedView(BoundSymbolId origin, ValueId tensor, const TensorMeta& geometry) {
  return call1(origin, "aten.as_strided.default", stridedArguments(geometry), tensor);
}

/// A view of the same memory that is lazily conjugated and negated as `like` is.
ValueId JointBuilder::withLaziness(BoundSymbolId op, ValueId tensor, const TensorMeta& like) {
  const TensorMeta meta = document_.meta(tensor);
  if (meta.conjugate != like.conjugate) tensor = call1(op, "aten._conj.default", {}, tensor);
  if (meta.negative != like.negative) tensor = call1(op, "aten._neg_view.default", {}, tensor);
  return tensor;
}

/// The inverse of any view that keeps the dtype: sizes, strides and offset say where it lies in the memory it shares
/// with its base.
ValueId JointBuilder::scatterByGeometry(BoundSymbolId origin, std::string_view view, ValueId base, ValueId viewed,
                                        ValueId content) {
  const TensorMeta from = document_.meta(base), to = document_.meta(viewed);
  if (from.dtype != to.dtype || from.conjugate != to.conjugate || from.negative != to.negative ||
      from.layout != Layout::strided)
    throw Error(ErrorCode::unsupportedOp, "a write through this view cannot be made functional",
                "torch.ops." + std::string(view));
  if (overlapsItself(to))
    throw Error(ErrorCode::unsupportedOp,
                "a write through a view whose elements overlap: its result depends on the order in which a kernel goes",
                "torch.ops." + std::string(view));
  std::vector<Argument> arguments{Argument::ofOperand(0), Argument::ofOperand(1)};
  for (auto& argument : stridedArguments(to)) arguments.push_back(std::move(argument));
  auto whole = flat(origin, base);
  if (document_.storage(base).bytes % itemSize(from.dtype) != 0)  // LibTorch scatters into whole elements alone
    whole = call1(origin, "aten.clone.default", {}, whole);
  const auto memory =
      call(origin, "aten.as_strided_scatter.default", {std::move(arguments), {}, 2, {}}, {whole, content});
  return stridedView(origin, memory, from);
}

/// `base` with `content` instead of `viewed`, which `step` makes of it: by the view's own scatter op or inverse where
/// that reads well, else by geometry.
ValueId JointBuilder::invertView(BoundSymbolId origin, const ViewStep& step, ValueId base, ValueId viewed,
                                 ValueId content) {
  if (!step.view) return scatterByGeometry(origin, "aten.as_strided.default", base, viewed, content);
  const std::string name = document_.symbol(step.view).name;
  const auto pattern = document_.pattern(document_.boundSymbol(step.view).pattern).arguments;
  const TensorMeta meta = document_.meta(base);
  const auto rank = std::ssize(meta.sizes);
  const std::vector<Argument> rest(pattern.begin() + (pattern.empty() ? 0 : 1), pattern.end());
  const auto wrap = [&](std::int64_t dim) { return dim < 0 ? dim + rank : dim; };
  const auto unary = [&](std::string_view op, std::vector<Argument> literals) {
    return call1(origin, op, std::move(literals), content);
  };

  if (name == "aten.alias.default" || name == "aten.detach.default") return content;
  if (name == "aten.transpose.int" || name == "aten.t.default") return unary(name, rest);
  if (name == "aten.permute.default") {
    std::vector<std::int64_t> inverse(rank);
    for (std::int64_t i = 0; i < rank; ++i) inverse[wrap(rest.at(0).items.at(i).integer)] = i;
    return unary(name, {integers(inverse)});
  }
  if (name == "aten.view.default" || name == "aten._unsafe_view.default" || name == "aten._reshape_alias.default" ||
      name == "aten.unsqueeze.default" || name.starts_with("aten.squeeze."))
    return unary("aten.reshape.default", {integers(meta.sizes)});
  if (name == "aten.view_as_real.default") return unary("aten.view_as_complex.default", {});
  if (name == "aten.view_as_complex.default") return unary("aten.view_as_real.default", {});
  if (name == "aten._conj.default" || name == "aten._neg_view.default") return unary(name, {});
  if (name == "aten.view.dtype") return unary(name, {Argument::ofDType(meta.dtype)});

  // LibTorch has no derivatives of these scatter ops on complex numbers.
  if (isComplex(meta.dtype)) return scatterByGeometry(origin, name, base, viewed, content);
  const auto scatter = [&](std::string_view op, std::vector<Argument> literals) {
    literals.insert(literals.begin(), {Argument::ofOperand(0), Argument::ofOperand(1)});
    return call(origin, op, {std::move(literals), {}, 2, {}}, {base, content});
  };
  const auto slice = [&](std::int64_t dim, std::int64_t begin, std::int64_t length) {
    return scatter("aten.slice_scatter.default",
                   {Argument::ofInt(dim), Argument::ofInt(begin), Argument::ofInt(begin + length), Argument::ofInt(1)});
  };
  const auto output = static_cast<std::int64_t>(step.output);
  if (name == "aten.select.int") return scatter("aten.select_scatter.default", rest);
  if (name == "aten.slice.Tensor") return scatter("aten.slice_scatter.default", rest);
  if (name == "aten.diagonal.default") return scatter("aten.diagonal_scatter.default", rest);
  if (name == "aten.unbind.int") return scatter("aten.select_scatter.default", {rest.at(0), Argument::ofInt(output)});
  if (name == "aten.split.Tensor" || name == "aten.unsafe_split.Tensor") {
    const auto dim = wrap(rest.at(1).integer), length = rest.at(0).integer, begin = length * output;
    return slice(dim, begin, std::min(length, meta.sizes.at(dim) - begin));
  }
  if (name == "aten.split_with_sizes.default" || name == "aten.unsafe_split_with_sizes.default") {
    std::int64_t begin = 0;
    for (std::int64_t k = 0; k < output; ++k) begin += rest.at(0).items.at(k).integer;
    return slice(wrap(rest.at(1).integer), begin, rest.at(0).items.at(output).integer);
  }
  return scatterByGeometry(origin, name, base, viewed, content);
}

}  // namespace retrograd
