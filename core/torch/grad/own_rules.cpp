#include "core/torch/grad/own_rules.h"

namespace retrograd {
namespace {

/// max, min, median and nanmedian over all elements: the gradient is shared evenly by the elements that are the result.
/// LibTorch's evenly_distribute_backward (FunctionsManual.cpp) fills it in where the mask says so; on a GPU, and under
/// interception, it multiplies by the mask instead, which makes NaN of zeros where the gradient is not finite.
GradTransform sharedEvenly(const char* op) {
  return [op](RuleScope& scope, const RuleArguments& arguments) -> std::vector<Argument> {
    const auto& input = arguments[0];
    const auto value = scope.call(op, {input});
    const auto equal = scope.call("aten.eq.Tensor", {input, value});
    const auto bothNan = scope.call("aten.logical_and.default", {scope.call("aten.isnan.default", {input}),
                                                                 scope.call("aten.isnan.default", {value})});
    const auto mask = scope.call("aten.logical_or.default", {equal, bothNan});
    const auto share = scope.call("aten.div.Tensor", {scope.getGrad(value), scope.call("aten.sum.default", {mask})});
    scope.putGrad(input, scope.call("aten.where.ScalarOther", {mask, share, 0}));
    return {value};
  };
}

/// The product of all other elements along a dimension: of those before, times of those behind.
Argument productOfOthers(RuleScope& scope, const Argument& input, std::int64_t dim) {
  const auto size = scope.meta(input).sizes[dim];
  const auto slice = [&](std::int64_t from, std::int64_t to) {
    return scope.call("aten.slice.Tensor", {input, dim, from, to});
  };
  const auto flip = [&](const Argument& tensor) {
    return scope.call("aten.flip.default", {tensor, Argument::ofList({Argument::ofInt(dim)})});
  };
  auto one = scope.call("aten.ones_like.default", {slice(0, 1)});
  if (size == 1) return one;
  const auto productsBefore = [&](const Argument& shorter) {
    return scope.call("aten.cumprod.default",
                      {scope.call("aten.cat.default", {Argument::ofList({one, shorter}), dim}), dim});
  };
  return scope.call("aten.mul.Tensor",
                    {productsBefore(slice(0, size - 1)), flip(productsBefore(flip(slice(1, size))))});
}

/// The derivative of a product to each of the elements along `dim`, by values. LibTorch's prod_backward
/// (FunctionsManual.cpp) divides the product by each element where none is zero, and multiplies the others where one
/// is; under interception it always multiplies. These differ where an element is NaN or infinite and where the product
/// overflows. Here both are in the trace and the values choose. Each reads ones where the other is chosen: no NaN of
/// a factor that is not used may reach a second derivative.
Argument derivativeOfProduct(RuleScope& scope, const Argument& product, const Argument& input, std::int64_t dim,
                             bool ofAll) {
  const auto zeros = scope.call("aten.sum.default", {scope.call("aten.eq.Scalar", {input, 0})});
  const auto hasZeros = scope.call("aten.gt.Scalar", {zeros, 0});
  auto quotient = scope.call("aten.div.Tensor", {product, scope.call("aten.where.ScalarSelf", {hasZeros, 1, input})});
  if (scope.meta(input).elements() == 0) return quotient;
  const auto others = productOfOthers(scope, scope.call("aten.where.ScalarOther", {hasZeros, input, 1}), dim);
  const auto chosen = scope.call("aten.where.self", {hasZeros, others, quotient});
  return ofAll ? scope.call("aten.where.ScalarSelf", {scope.call("aten.gt.Scalar", {zeros, 1}), 0, chosen}) : chosen;
}

/// prod of all elements, or along a dimension.
GradTransform multiplied(const char* op, bool ofAll) {
  return [op, ofAll](RuleScope& scope, const RuleArguments& arguments) -> std::vector<Argument> {
    const auto value = scope.call(op, {arguments.begin(), arguments.end()});
    const auto given = scope.meta(arguments[0]), made = scope.meta(value);
    const auto rank = std::ssize(given.sizes);
    const auto toDtype = [&](const Argument& tensor, DType dtype) {
      return scope.meta(tensor).dtype == dtype
                 ? tensor
                 : scope.call("aten._to_copy.default", {tensor, Argument::ofDType(dtype)});
    };
    auto gradient = scope.getGrad(value), product = value;
    if (rank > 0) {
      const auto dim = ofAll ? 0 : arguments[1].integer + (arguments[1].integer < 0 ? rank : 0);
      if (!ofAll && std::ssize(made.sizes) != rank)
        for (auto* tensor : {&gradient, &product}) *tensor = scope.call("aten.unsqueeze.default", {*tensor, dim});
      auto input = toDtype(arguments[0], made.dtype);
      if (ofAll) input = scope.call("aten.reshape.default", {input, Argument::ofList({Argument::ofInt(-1)})});
      auto factor = derivativeOfProduct(scope, product, input, dim, ofAll);
      if (isComplex(made.dtype)) factor = scope.call("aten.conj_physical.default", {factor});
      gradient = scope.call("aten.mul.Tensor", {gradient, factor});
      if (ofAll) gradient = scope.call("aten.reshape_as.default", {gradient, arguments[0]});
    }
    scope.putGrad(arguments[0], toDtype(gradient, given.dtype));
    return {value};
  };
}

}  // namespace

const RuleRegistry& ownRules() {
  static const RuleRegistry rules = [] {
    RuleRegistry made;
    for (const char* op : {"aten.max.default", "aten.min.default", "aten.median.default", "aten.nanmedian.default"})
      made.addGradTransform(op, sharedEvenly(op));
    made.addGradTransform("aten.prod.default", multiplied("aten.prod.default", true));
    made.addGradTransform("aten.prod.dim_int", multiplied("aten.prod.dim_int", false));
    return made;
  }();
  return rules;
}

}  // namespace retrograd
