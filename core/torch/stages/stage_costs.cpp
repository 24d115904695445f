#include "core/torch/stages/stage_costs.h"

#include <unordered_set>

#include "core/split/op_cost.h"
#include "core/torch/session/session.h"
#include "core/torch/stages/stage_run.h"

namespace retrograd {
namespace {

/// Storages that the stage holds whatever the microbatch: parameters, buffers, constants.
std::unordered_set<StorageId> heldStorages(const Analysis& stage) {
  std::unordered_set<StorageId> held;
  for (const auto& input : stage.computation().inputs)
    if (input.kind != InputKind::user && input.value) held.insert(stage.document->value(input.value).storage);
  return held;
}

std::int64_t activationBytes(const Analysis& stage) {
  auto seen = heldStorages(stage);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < stage.backward.savedCount; ++i) {
    const auto id = stage.backward.inputs[i];
    if (!id || !stage.document->isTensor(id)) continue;
    if (const auto storage = stage.document->value(id).storage; storage && seen.insert(storage).second)
      bytes += stage.document->storage(storage).bytes;
  }
  return bytes;
}

/// `costOf`: by position in forward, then backward.
template <class Cost>
StageCost stageCost(const Analysis& stage, Cost&& costOf) {
  StageCost cost{0, 0, 0, 0, activationBytes(stage)};
  const auto halves = halvesOf(stage);
  const std::unordered_set<BoundSymbolId> first(halves.inputGradients.ops.begin(), halves.inputGradients.ops.end());
  std::size_t position = 0;
  for (auto op : stage.forward.ops) cost.forward += costOf(position++, op);
  for (auto op : stage.backward.ops)
    (first.contains(op) ? cost.backwardInput : cost.backwardWeight) += costOf(position++, op);
  cost.backward = cost.backwardInput + cost.backwardWeight;
  return cost;
}

}  // namespace

OpCosts measuredCosts(const std::shared_ptr<const Analysis>& whole, const Progress& progress) {
  Session session(whole, {.historyBytes = 0});
  session.runTo(session.size(), progress);
  session.restart();
  session.runTo(session.size(), progress);
  const auto& measures = session.measures();
  return costsByOrigin(*whole, [&](std::size_t i, BoundSymbolId) { return measures[i].seconds; });
}

ScheduleCosts measuredStageCosts(const Pipeline& pipeline, const Progress& progress) {
  ScheduleCosts costs{.unit = "ms"};
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    progress.at("measuring the stages", static_cast<double>(s) / static_cast<double>(pipeline.stages.size()));
    Session session(pipeline.stages[s], {.historyBytes = 0});
    for (int run = 0; run < 2; ++run) {
      if (run > 0) session.restart();
      if (session.runTo(session.size(), progress) == StopReason::cancelled)
        throw Error(ErrorCode::cancelled, "cancelled");
    }
    const auto& measures = session.measures();
    costs.stages.push_back(
        stageCost(*pipeline.stages[s], [&](std::size_t i, BoundSymbolId) { return measures[i].seconds * 1e3; }));
  }
  return costs;
}

ScheduleCosts estimatedStageCosts(const Pipeline& pipeline) {
  ScheduleCosts costs{.unit = "%"};
  double all = 0;
  for (const auto& stage : pipeline.stages) {
    costs.stages.push_back(stageCost(
        *stage, [&](std::size_t, BoundSymbolId op) { return static_cast<double>(opCost(*stage->document, op)); }));
    all += costs.stages.back().forward + costs.stages.back().backward;
  }
  for (auto& cost : costs.stages)
    for (auto* part : {&cost.forward, &cost.backward, &cost.backwardInput, &cost.backwardWeight})
      if (all > 0) *part *= 100 / all;
  return costs;
}

}  // namespace retrograd
