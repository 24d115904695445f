#include "core/torch/experiments/compare_passes.h"

#include <algorithm>
#include <set>

#include "core/torch/analysis/input_values.h"
#include "core/torch/analysis/inputs.h"
#include "core/torch/experiments/compare_lane.h"
#include "core/torch/experiments/compare_own.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/thread_scope.h"

namespace retrograd {
namespace {

/// The graph as something that runs, on these values by the names of its inputs.
std::shared_ptr<Analysis> runnable(const JobPass& pass, const TensorMap& values, const Analysis& opened) {
  auto analysis = std::make_shared<Analysis>(*pass.analysis);
  analysis->joint = pass.trace();
  DerivationRequest request{.numbers = opened.request.numbers, .seed = opened.request.seed};
  for (const auto& input : analysis->computation().inputs) {
    const auto found = values.find(input.name);
    if (found == values.end() || !input.value || !analysis->document->isTensor(input.value)) continue;
    const auto& wanted = analysis->document->meta(input.value);
    if (found->second.meta.dtype == wanted.dtype && found->second.meta.sizes == wanted.sizes)
      request.inputs.insert(*found);
  }
  analysis->request = request;
  chooseInputs(*analysis, request);
  return analysis;
}

TensorMap valuesOf(const Analysis& opened) {
  TensorMap values;
  const auto& inputs = opened.computation().inputs;
  for (const auto& [id, value] : startValues(opened)) {
    const auto input = std::ranges::find(inputs, id, &InputSpec::value);
    if (input != inputs.end() && value.isTensor()) values.emplace(input->name, keepTensor(value.toTensor()));
  }
  return values;
}

/// Runs a graph and keeps what the inputs of other graphs are named after.
void addResults(const Analysis& graph, const std::set<std::string>& wanted, TensorMap& values) {
  for (const auto& [id, value] : startValues(graph))
    if (value.isTensor()) values.emplace(graph.document->displayName(id), keepTensor(value.toTensor()));
  Lane lane(graph);
  while (lane.position() < lane.size()) {
    lane.step();
    for (const auto output : graph.document->outputs(lane.op(lane.position() - 1))) {
      if (!output || !wanted.contains(graph.document->displayName(output))) continue;
      if (const auto tensor = lane.keep(output); tensor.defined())
        values.emplace(graph.document->displayName(output), keepTensor(tensor.clone()));
    }
  }
}

/// What a half of the joint ends in, on both sides: the forward saves besides, the joint has the results of both.
void alignOutputs(Analysis& joint, Analysis& half, bool isBackward, std::size_t gradients) {
  auto &all = joint.joint.outputs, &own = half.joint.outputs;
  const auto first = all.size() - std::min(all.size(), gradients);
  if (isBackward) {
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
  } else {
    all.resize(first);
    own.resize(std::min(own.size(), first));
  }
}

Report compareGraphs(const Analysis& before, const Analysis& after, const Progress& progress) {
  const auto side = [](const Analysis& analysis) {
    return DiffSide{
        .document = analysis.document.get(), .trace = &analysis.joint, .computation = &analysis.joint, .isPart = true};
  };
  OpPairs pairs(side(before), side(after), progress);
  OwnErrors own(before, after, pairs, false);
  Lane lane(before);
  const auto advance = [&] {
    own.before(lane);
    lane.step();
    own.after(lane);
  };
  own.start(lane);
  for (std::size_t j = 0; j < after.joint.ops.size(); ++j) {
    progress.check();
    while (lane.position() < own.needs(j)) advance();
    own.judge(j);
  }
  while (lane.position() < lane.size()) advance();
  own.finish();
  return own.report();
}

}  // namespace

std::vector<PassComparison> comparePasses(const JobPasses& chain, const Analysis& opened, const Progress& progress) {
  const RunThreads threads(0);
  auto values = valuesOf(opened);
  std::set<std::string> wanted;
  for (const auto& pass : chain.passes)
    if (pass.analysis)
      for (const auto& input : pass.analysis->computation().inputs) wanted.insert(input.name);
  const auto backward = std::ranges::find(chain.passes, "backward", &JobPass::name);
  const auto gradients = backward == chain.passes.end() || !backward->analysis ? 0 : backward->trace().outputs.size();
  std::vector<PassComparison> comparisons;
  for (std::size_t i = 0; i < chain.passes.size(); ++i) {
    const auto& pass = chain.passes[i];
    if (!pass.isOfOps || !pass.analysis) continue;
    progress.at("Comparing passes", static_cast<double>(i) / static_cast<double>(chain.passes.size()));
    const auto* given = pass.before ? &chain.passes[*pass.before] : nullptr;
    const bool isFirst = !given || !given->isOfOps || !given->analysis;
    try {
      const auto after = runnable(pass, values, opened);
      if (isFirst) {
        addResults(*after, wanted, values);  // the joint: what the halves are given
        continue;
      }
      const auto before = runnable(*given, values, opened);
      if (given->name == "joint") alignOutputs(*before, *after, pass.name == "backward", gradients);
      comparisons.push_back({i, compareGraphs(*before, *after, progress)});
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      comparisons.push_back({i, reportOfRefusal(pass.name, error.what())});
    }
    comparisons.back().report.subject = pass.name;
  }
  return comparisons;
}

}  // namespace retrograd
