#include "core/torch/opinion/derived_forward.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/formats/jobs/dynamo_constants.h"
#include "core/formats/jobs/line_links.h"
#include "core/formats/jobs/shared_draws.h"
#include "core/formats/listing/stand_ins.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/tracing/drawn_input.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {

void giveConstants(const fx::Graph& graph, const TensorMap& constants, TensorMap& inputs) {
  for (const auto& [name, attribute] : jobs::constantsOf(graph))
    if (const auto known = constants.find(attribute); known != constants.end()) inputs.emplace(name, known->second);
}

DerivedForward::DerivedForward(const JobGraphs& graphs, std::uint64_t seed, double ofLoss, TensorMap constants,
                               TensorMap filled, const Progress& progress)
    : graphs_(graphs),
      seed_(seed),
      ofLoss_(ofLoss),
      constants_(std::move(constants)),
      filled_(std::move(filled)),
      progress_(progress),
      forward_(differentiatedForward(graphs)) {
  hasJoint_ = fitsJoint(graphs_) && drawsOf(*graphs_.joint, jobs::backwardBorder(*graphs_.joint), lookupSymbol) ==
                                        drawsOf(graphs_.forward, graphs_.forward.nodes.size(), lookupSymbol);
  if (!hasJoint_ && forward_.ofJoint) {
    forward_ = differentiatedForward(graphs_, false);
    forward_.cuts.differ = true;  // also where the forward graph shows none of it
  }
}

std::string DerivedForward::gradientName(std::size_t i) const { return "grad.in." + graphs_.forward.inputs[i].name; }

const TensorData* DerivedForward::gradient(std::size_t i) const { return findTensor(results_, gradientName(i)); }

void DerivedForward::derive(TensorMap inputs) {
  giveConstants(forward_.graph, constants_, inputs);
  for (;;) {
    try {
      open(inputs);
      break;
    } catch (const NotPossible& e) {
      if (!hasJoint_ || !passBy(e.op)) throw;
    }
  }
  results_ = namedResults(*model_.analysis, runJoint(*model_.analysis));
  findUnknown();
  takeConstants();
  takeCotangents();
  joint_.reset();  // of other cotangents
  takeFromJoint();
}

void DerivedForward::open(const TensorMap& inputs) {
  jobs::ListingOptions options;
  options.sizes = graphs_.sizes;
  options.runnable = true;
  options.returnsAll = false;
  options.outputs = graphs_.differentiated;
  options.unrecorded = forward_.cuts.unrecorded;
  options.writes = forward_.cuts.writes;
  DerivationRequest request{.inputs = inputs, .filled = filled_, .seed = seed_};
  request.gradInputs.emplace();
  for (std::size_t i = 0; i < graphs_.forward.inputs.size(); ++i)
    if (isDifferentiated(graphs_, i)) request.gradInputs->push_back(graphs_.forward.inputs[i].name);
  model_ = openGraph(forward_.graph, forward_.place, options, request, progress_);
  auto analysis = std::make_shared<Analysis>(*model_.analysis);
  for (auto& [position, tensor] : analysis->request.cotangents)
    tensor = isOfLoss() ? filledTensor(tensor.meta, ofLoss_) : withZeros(tensor, seed_);
  model_.analysis = std::move(analysis);
}

/// Lets no gradient through the calls of an op. False where there are none, or none is let through as it is.
bool DerivedForward::passBy(const std::string& op) {
  auto& unrecorded = forward_.cuts.unrecorded;
  unrecorded.resize(forward_.graph.nodes.size());
  bool isNew = false;
  for (std::size_t n = 0; n < forward_.graph.nodes.size(); ++n) {
    if (!forward_.graph.nodes[n].call.isCallOf(op) || unrecorded[n]) continue;
    unrecorded[n] = 1;
    isNew = true;
  }
  if (isNew) underived_.insert(op);
  return isNew;
}

/// Follows the outputs that have a tangent to the inputs: which gradients pass an op that is not derived.
void DerivedForward::findUnknown() {
  const auto& graph = forward_.graph;
  const auto first = graph.inputs.size();
  std::vector<char> opaque(graph.nodes.size());
  for (const auto& call : jobs::opaqueCalls(graph, lookupSymbol)) opaque[call.node] = 1;
  enum : char { none, reaches, unknown };
  std::vector<char> state(graph.valueCount(), none);
  for (const auto output : graphs_.differentiated)
    fx::forEachValue(graph.outputs[output].value, [&](std::size_t value) { state[value] = reaches; });
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const auto of = state[first + n];
    const auto& call = graph.nodes[n].call;
    if (of == none) continue;
    dependsOnOpaque_ |= opaque[n] != 0;
    const bool isUnderived = call.is(fx::Expression::Kind::call) && underived_.contains(call.items[0].text);
    const auto passed = opaque[n] || isUnderived ? char{unknown} : of;
    fx::forEachValue(call, [&](std::size_t value) { state[value] = std::max(state[value], passed); });
  }
  passesUnknown_.assign(graphs_.forward.inputs.size(), 0);
  for (std::size_t i = 0; i < passesUnknown_.size() && i < first; ++i)
    passesUnknown_[i] = state[i] == unknown && isDifferentiated(graphs_, i);
}

void DerivedForward::takeConstants() {
  for (const auto& [name, attribute] : model_.listing.constants) {
    const auto drawn = model_.analysis->request.inputs.find(name);
    if (drawn != model_.analysis->request.inputs.end()) constants_.emplace(attribute, drawn->second);
  }
}

TensorMeta DerivedForward::tangentMeta(std::size_t k) const {
  const auto& tangent = graphs_.backward.inputs[graphs_.tangents[k]];
  if (tangent.type == fx::noIndex) throw NotPossible{"the log does not say the type of the tangent " + tangent.name};
  return metaOf(graphs_.backward.types[tangent.type], graphs_.sizes, tangent.name);
}

bool DerivedForward::isOfLoss() const { return graphs_.tangents.size() == 1 && tangentMeta(0).elements() == 1; }

void DerivedForward::takeCotangents() {
  cotangents_.clear();
  for (std::size_t k = 0; k < graphs_.tangents.size(); ++k) {
    const auto name = std::to_string(k);
    const auto derived = model_.analysis->request.cotangents.find(name);
    if (derived != model_.analysis->request.cotangents.end()) {
      cotangents_.push_back(derived->second);
      continue;
    }
    const auto meta = tangentMeta(k);
    cotangents_.push_back(
        isOfLoss() ? filledTensor(meta, ofLoss_)
                   : withZeros(drawnInput(meta, graphs_.backward.inputs[graphs_.tangents[k]].name, seed_), seed_));
  }
}

void DerivedForward::settleDoubts() {
  auto& cuts = forward_.cuts;
  if ((cuts.doubts.empty() && cuts.perhaps.empty()) || joint() == nullptr || isDerivedAsJoint()) return;
  const auto before = cuts.unrecorded;
  const auto model = model_;
  const auto results = results_;
  const auto fromJoint = fromJoint_;
  std::vector<std::size_t> doubted;
  for (const auto& doubt : cuts.doubts) doubted.push_back(doubt.node);
  std::vector<std::size_t> aliases, detaches;
  for (const auto node : cuts.perhaps) (before[node] ? detaches : aliases).push_back(node);
  std::vector<std::vector<std::size_t>> ways{cuts.perhaps, detaches, aliases, doubted};
  for (const auto node : doubted) ways.push_back({node});
  constexpr std::size_t most = 8;
  ways.resize(std::min(most, ways.size()));
  for (const auto& way : ways) {
    if (way.empty()) continue;
    cuts.unrecorded = before;
    for (const auto node : way) cuts.unrecorded[node] = cuts.unrecorded[node] == 0;
    derive(model.analysis->request.inputs);
    if (joint() != nullptr && isDerivedAsJoint()) return;
  }
  cuts.unrecorded = before;
  model_ = model;
  results_ = results;
  fromJoint_ = fromJoint;
  findUnknown();
  takeCotangents();
  joint_.reset();
}

void DerivedForward::takeFromJoint() {
  fromJoint_.clear();
  for (std::size_t i = 0; i < passesUnknown_.size() && i < graphs_.backward.outputs.size(); ++i) {
    if (passesUnknown(i) || !isDifferentiated(graphs_, i)) continue;
    const auto* derived = gradient(i);
    const auto isFinite = [](const TensorData& tensor) {
      const auto count = countNonFinite(tensor);
      return count.nan + count.infinite == 0;
    };
    if (derived != nullptr && isFinite(*derived)) continue;
    if (joint() == nullptr) return;
    const auto& expected = joint()->at(i);
    if (!expected || (derived == nullptr ? !isZero(*expected) : !shapeDifference(*expected, *derived).empty()))
      continue;
    auto taken = derived == nullptr ? *expected : finiteOr(*derived, *expected);
    if (derived != nullptr && identical(taken, *derived)) continue;
    results_[gradientName(i)] = std::move(taken);
    fromJoint_.insert(i);
  }
}

bool DerivedForward::isDerivedAsJoint() {
  auto byNoise = judge();
  for (std::size_t i = 0; i < graphs_.backward.outputs.size(); ++i)
    if (!passesUnknown(i) && !isAsJoint(byNoise, i, gradient(i))) return false;
  return true;
}

bool DerivedForward::isAsJoint(Judge& judge, std::size_t i, const TensorData* gradient) {
  const auto& expected = joint()->at(i);
  if (!expected || gradient == nullptr) return !expected && gradient == nullptr;
  return compare(judge, i, *gradient, *expected).good();
}

Measure DerivedForward::compare(Judge& judge, std::size_t i, const TensorData& gradient, const TensorData& expected) {
  if ((passesUnknown(i) || isFromJoint(i)) && joint() != nullptr) return compareByJoint(i, gradient, expected);
  return judge.compare(gradientName(i), gradient, expected);
}

Measure DerivedForward::againstJoint(std::size_t i, const TensorData& gradient) {
  return compareByJoint(i, gradient, *joint()->at(i));
}

Measure DerivedForward::compareByJoint(std::size_t i, const TensorData& gradient, const TensorData& expected) {
  if (!jointJudge_)
    jointJudge_.emplace(jointModel_.analysis, std::nullopt, Noise::Options{.rounds = Noise::HalfOps::all});
  return jointJudge_->compare("out." + std::to_string(graphs_.results + i), gradient, expected);
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

std::vector<std::optional<TensorData>> DerivedForward::runJointGraph() {
  auto request = runRequest(seed_, filled_);
  request.inputs = model_.analysis->request.inputs;
  giveConstants(*graphs_.joint, constants_, request.inputs);
  std::size_t k = 0;
  for (const auto& input : graphs_.joint->inputs)
    if (isCotangent(*graphs_.joint, input) && k < cotangents_.size())
      request.inputs.emplace(input.name, cotangents_[k++]);
  jointJudge_.reset();
  jointModel_ =
      openGraph(*graphs_.joint, graphs_.forwardPlace, {.sizes = graphs_.sizes, .runnable = true}, request, progress_);
  auto outputs = runJoint(*jointModel_.analysis).outputs;
  const auto results = std::min(graphs_.results, outputs.size());
  outputs.erase(outputs.begin(), outputs.begin() + results);
  outputs.resize(graphs_.backward.outputs.size());
  return outputs;
}

}  // namespace retrograd
