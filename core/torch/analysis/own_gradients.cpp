#include "core/torch/analysis/own_gradients.h"

#include <ATen/ops/add.h>

#include <algorithm>
#include <map>

#include "core/derivation/result_names.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

/// What the gradient of an input is called; tied parameters have the first one's name.
std::string keyOf(const Computation& computation, const std::string& target) {
  const auto isMeant = [&](const InputSpec& input) {
    return input.kind == InputKind::user
               ? input.name == target
               : input.target == target || std::ranges::find(input.aliases, target) != input.aliases.end();
  };
  const auto& inputs = computation.inputs;
  const auto meant = std::ranges::find_if(inputs, isMeant);
  if (meant == inputs.end()) return {};
  const auto first = std::find_if(inputs.begin(), meant, [&](const InputSpec& input) {
    return input.kind == meant->kind && !input.storageKey.empty() && input.storageKey == meant->storageKey;
  });
  return resultKey(*first, "p.");
}

}  // namespace

TensorMap ownGradients(const Analysis& analysis) {
  const auto& computation = analysis.computation();
  std::multimap<ValueId, std::string> wanted;
  for (std::size_t i = 0; i < computation.outputs.size() && i < analysis.joint.outputs.size(); ++i)
    if (computation.outputs[i].kind == OutputKind::gradient && analysis.joint.outputs[i])
      if (auto key = keyOf(computation, computation.outputs[i].target); !key.empty())
        wanted.emplace(analysis.joint.outputs[i], std::move(key));
  if (wanted.empty()) return {};
  std::map<std::string, at::Tensor> found;
  runJoint(analysis, [&](Evaluator& evaluator, BoundSymbolId op) {
    for (const auto output : analysis.document->outputs(op)) {
      const auto [begin, end] = wanted.equal_range(output);
      for (auto it = begin; it != end; ++it) {
        const auto gradient = evaluator.tensor(output).detach().clone();
        auto& sum = found[it->second];
        sum = sum.defined() ? at::add(sum, gradient) : gradient;
      }
    }
  });
  TensorMap gradients;
  for (const auto& [key, tensor] : found) gradients.emplace(key, copyOut(tensor));
  return gradients;
}

}  // namespace retrograd
