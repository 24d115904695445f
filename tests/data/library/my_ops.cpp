// A library for `retrograd --library libmyops.so`: ops that LibTorch does not have, each with its gradient from another
// source. It links LibTorch, and takes core/derivation/registry.h of Retrograd, which is header only. docs/extending.md
// explains it; the tests build and load it.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "core/derivation/registry.h"

namespace {

using retrograd::Argument;
using retrograd::Augmented;
using retrograd::RuleArguments;
using retrograd::RuleScope;

at::Tensor swish(const at::Tensor& x, double beta) { return x * (x * beta).sigmoid(); }

std::tuple<at::Tensor, at::Tensor> clipped(const at::Tensor& x, const at::Tensor& limit) {
  return {at::minimum(x, limit), at::gt(x, limit)};
}

at::Tensor cube(const at::Tensor& x) { return x * x * x; }
at::Tensor same(const at::Tensor& x) { return x.clone(); }

/// Its derivative is known to LibTorch: nothing needs to be registered with Retrograd.
struct Doubled : torch::autograd::Function<Doubled> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    at::AutoDispatchBelowADInplaceOrView guard;
    return x + x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0] * 2};
  }
};
at::Tensor doubled(const at::Tensor& x) { return x + x; }
at::Tensor doubledAutograd(const at::Tensor& x) { return Doubled::apply(x); }

// A grad transform: the forward, the gradient that arrives, the gradient that leaves.
std::vector<Argument> swishRule(RuleScope& scope, const RuleArguments& arguments) {
  const auto &x = arguments[0], &beta = arguments[1];
  const auto gate = scope.call("aten.sigmoid.default", {scope.call("aten.mul.Scalar", {x, beta})});
  const auto result = scope.call("aten.mul.Tensor", {x, gate});
  const auto gradient = scope.getGrad(result);
  // d/dx x s(bx) = s + b x s (1 - s) = s + b result (1 - s)
  const auto slope = scope.call(
      "aten.mul.Scalar", {scope.call("aten.mul.Tensor", {result, scope.call("aten.rsub.Scalar", {gate, 1})}), beta});
  scope.putGrad(x, scope.call("aten.mul.Tensor", {gradient, scope.call("aten.add.Tensor", {gate, slope})}));
  return {result};
}

// An augmented forward and its backward: what is saved is listed, what flows back is returned, one for each tensor
// argument.
Augmented clippedForward(RuleScope& scope, const RuleArguments& arguments) {
  const auto clip = scope.call("aten.minimum.default", {arguments[0], arguments[1]});
  const auto mask = scope.call("aten.gt.Tensor", {arguments[0], arguments[1]});
  return {{clip, mask}, {mask}};
}
std::vector<Argument> clippedBackward(RuleScope& scope, const std::vector<Argument>& saved,
                                      const std::vector<Argument>& cotangents) {
  const auto& mask = saved[0];
  return {scope.call("aten.masked_fill.Scalar", {cotangents[0], mask, 0}),
          scope.call("aten.masked_fill.Scalar", {cotangents[0], scope.call("aten.logical_not.default", {mask}), 0})};
}

// In terms of other ops, which have gradients of their own.
std::vector<Argument> cubeOfOthers(RuleScope& scope, const RuleArguments& arguments) {
  return {scope.call("aten.mul.Tensor", {scope.call("aten.mul.Tensor", {arguments[0], arguments[0]}), arguments[0]})};
}

}  // namespace

TORCH_LIBRARY(myops, library) {
  library.def("swish(Tensor x, float beta=1.0) -> Tensor", swish);
  library.def("clipped(Tensor x, Tensor limit) -> (Tensor, Tensor)");
  library.def("cube(Tensor x) -> Tensor");
  library.def("no_rule(Tensor x) -> Tensor");
  library.def("doubled(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(myops, CompositeExplicitAutograd, library) {
  library.impl("clipped", clipped);
  library.impl("cube", cube);
  library.impl("no_rule", same);
  library.impl("doubled", doubled);
}
TORCH_LIBRARY_IMPL(myops, Autograd, library) { library.impl("doubled", doubledAutograd); }

RETROGRAD_LIBRARY(rules) {
  rules.addGradTransform("myops.swish.default", swishRule);
  rules.addAugmentedPair("myops.clipped.default", clippedForward, clippedBackward);
  rules.addDecomposition("myops.cube.default", cubeOfOthers);
}
