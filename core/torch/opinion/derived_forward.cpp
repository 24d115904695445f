#include "core/torch/opinion/derived_forward.h"

#include <algorithm>

#include "core/formats/jobs/line_links.h"
#include "core/formats/jobs/shared_draws.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/checking/named_results.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {

DerivedForward::DerivedForward(const JobGraphs& graphs, std::uint64_t seed, const Progress& progress)
    : graphs_(graphs), seed_(seed), progress_(progress), forward_(differentiatedForward(graphs)) {
  hasJoint_ = fitsJoint(graphs_) && drawsOf(*graphs_.joint, jobs::backwardBorder(*graphs_.joint), lookupSymbol) ==
                                        drawsOf(graphs_.forward, graphs_.forward.nodes.size(), lookupSymbol);
  if (!hasJoint_ && forward_.ofJoint) {
    forward_ = differentiatedForward(graphs_, false);
    forward_.cuts.differ = true;  // also where the forward graph shows none of it
  }
}

std::string DerivedForward::gradientName(std::size_t i) const { return "grad.in." + graphs_.forward.inputs[i].name; }

const TensorData* DerivedForward::gradient(std::size_t i) const {
  const auto found = results_.find(gradientName(i));
  return found == results_.end() ? nullptr : &found->second;
}

void DerivedForward::derive(TensorMap inputs) {
  jobs::ListingOptions options;
  options.sizes = graphs_.sizes;
  options.runnable = true;
  options.returnsAll = false;
  options.outputs = graphs_.differentiated;
  options.unrecorded = forward_.cuts.unrecorded;
  options.writes = forward_.cuts.writes;
  DerivationRequest request;
  request.seed = seed_;
  request.inputs = std::move(inputs);
  request.gradInputs.emplace();
  for (std::size_t i = 0; i < graphs_.forward.inputs.size(); ++i)
    if (isDifferentiated(graphs_, i)) request.gradInputs->push_back(graphs_.forward.inputs[i].name);
  model_ = openGraph(forward_.graph, forward_.place, options, request, progress_);
  results_ = namedResults(*model_.analysis, runJoint(*model_.analysis));
}

void DerivedForward::settleDoubts() {
  auto& cuts = forward_.cuts;
  if ((cuts.doubts.empty() && cuts.perhaps.empty()) || joint() == nullptr || isDerivedAsJoint()) return;
  const auto before = cuts.unrecorded;
  const auto model = model_;
  const auto results = results_;
  std::vector<std::size_t> doubted;
  for (const auto& doubt : cuts.doubts) doubted.push_back(doubt.node);
  std::vector<std::vector<std::size_t>> ways{cuts.perhaps, doubted};
  for (const auto node : doubted) ways.push_back({node});
  constexpr std::size_t most = 8;
  ways.resize(std::min(most, ways.size()));
  for (const auto& way : ways) {
    if (way.empty()) continue;
    cuts.unrecorded = before;
    for (const auto node : way) cuts.unrecorded[node] = cuts.unrecorded[node] == 0;
    derive(model.analysis->request.inputs);
    if (isDerivedAsJoint()) return;
  }
  cuts.unrecorded = before;
  model_ = model;
  results_ = results;
}

bool DerivedForward::isDerivedAsJoint() {
  auto byNoise = judge();
  for (std::size_t i = 0; i < graphs_.backward.outputs.size(); ++i)
    if (!isAsJoint(byNoise, i, gradient(i))) return false;
  return true;
}

bool DerivedForward::isAsJoint(Judge& judge, std::size_t i, const TensorData* gradient) {
  const auto& expected = joint()->at(i);
  if (!expected || gradient == nullptr) return !expected && gradient == nullptr;
  return judge.compare(gradientName(i), *gradient, *expected).good();
}

const std::vector<std::optional<TensorData>>* DerivedForward::joint() {
  if (hasJoint_ && !joint_) {
    try {
      joint_ = runJointGraph();
    } catch (const NotPossible&) {
      hasJoint_ = false;
    } catch (const Error& e) {
      if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::io) throw;
      hasJoint_ = false;
    }
  }
  return joint_ ? &*joint_ : nullptr;
}

std::vector<std::optional<TensorData>> DerivedForward::runJointGraph() const {
  jobs::ListingOptions options;
  options.sizes = graphs_.sizes;
  options.runnable = true;
  DerivationRequest request;
  request.seed = seed_;
  request.inputs = model_.analysis->request.inputs;
  request.gradInputs.emplace();
  request.exactCotangents = true;
  const auto& cotangents = model_.analysis->request.cotangents;
  std::size_t k = 0;
  for (const auto& input : graphs_.joint->inputs) {
    if (!isTangent(input)) continue;
    const auto cotangent = cotangents.find(std::to_string(k++));
    if (cotangent != cotangents.end()) request.inputs.emplace(input.name, cotangent->second);
  }
  const auto model = openGraph(*graphs_.joint, graphs_.forwardPlace, options, request, progress_);
  auto outputs = runJoint(*model.analysis).outputs;
  const auto results = std::min(graphs_.results, outputs.size());
  outputs.erase(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(results));
  outputs.resize(graphs_.backward.outputs.size());
  return outputs;
}

}  // namespace retrograd
