#include "core/torch/grad/own_rules.h"

namespace retrograd {
namespace {

/// max, min, median and nanmedian over all elements: the gradient is shared evenly by the elements that are the result. LibTorch's
/// evenly_distribute_backward (FunctionsManual.cpp) fills it in where the mask says so; on a GPU, and under interception, it multiplies by the mask instead,
/// which makes NaN of zeros where the gradient is not finite.
GradTransform sharedEvenly(const char* op) {
  return [op](RuleScope& scope, const RuleArguments& arguments) -> std::vector<Argument> {
    const auto& input = arguments[0];
    const auto value = scope.call(op, {input});
    const auto equal = scope.call("aten.eq.Tensor", {input, value});
    const auto bothNan = scope.call("aten.logical_and.default", {scope.call("aten.isnan.default", {input}), scope.call("aten.isnan.default", {value})});
    const auto mask = scope.call("aten.logical_or.default", {equal, bothNan});
    const auto share = scope.call("aten.div.Tensor", {scope.getGrad(value), scope.call("aten.sum.default", {mask})});
    scope.putGrad(input, scope.call("aten.where.ScalarOther", {mask, share, 0}));
    return {value};
  };
}

}  // namespace

const RuleRegistry& ownRules() {
  static const RuleRegistry rules = [] {
    RuleRegistry made;
    for (const char* op : {"aten.max.default", "aten.min.default", "aten.median.default", "aten.nanmedian.default"})
      made.addGradTransform(op, sharedEvenly(op));
    return made;
  }();
  return rules;
}

}  // namespace retrograd
