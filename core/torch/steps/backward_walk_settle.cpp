// Which recorded gradient is the sum of the terms that were derived, and what is to blame where none is.
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/torch/judging/compare.h"
#include "core/torch/judging/judge.h"
#include "core/torch/session/recorded_hash.h"
#include "core/torch/steps/backward_walk.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

constexpr std::size_t mostLeftOut = 6;  ///< unsure terms whose subsets are tried

}  // namespace

/// Whether a recorded gradient is this one, but for rounding.
bool BackwardWalk::meets(const Sum& terms, const std::vector<Candidate>& candidates, std::size_t& which) {
  const auto& sum = terms.tensor;
  if (!sum.defined()) return false;
  const auto hash = recordedHashOf(sum);
  for (which = 0; which < candidates.size(); ++which)
    if (candidates[which].tensor.sizes() == sum.sizes() && recordedHashOf(candidates[which].tensor) == hash)
      return true;
  for (which = 0; which < candidates.size(); ++which) {
    const auto& tensor = candidates[which].tensor;
    if (tensor.sizes() != sum.sizes()) continue;
    const auto found = difference(copyOut(tensor), copyOut(sum), true);
    const auto floor = roundingFloor(toDType(sum.scalar_type()), found.scale, static_cast<double>(sum.numel()));
    if (found.failure.empty() && found.deviation <= 4 * terms.noise + floor) return true;
  }
  return false;
}

/// Whether the recorded gradient is the sum without some terms that autograd does not know: these are cuts.
bool BackwardWalk::leaveOut(const Parts& parts, const std::vector<Candidate>& candidates, ValueId value,
                            std::size_t& which) {
  return leaveOut(parts, candidates, value, which, true) || leaveOut(parts, candidates, value, which, false);
}

/// `byCut`: all terms of one cut together; else only those of one call of a custom Function.
bool BackwardWalk::leaveOut(const Parts& parts, const std::vector<Candidate>& candidates, ValueId value,
                            std::size_t& which, bool byCut) {
  std::vector<std::vector<std::size_t>> unsure;
  std::map<std::int32_t, std::size_t> groups;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].sure && !parts[i].cut) continue;
    const bool isOfGroup = parts[i].cut && (byCut || kindOf(parts[i].cut) == GradientCut::Kind::function);
    if (isOfGroup && groups.contains(parts[i].cut.index)) {
      unsure[groups[parts[i].cut.index]].push_back(i);
      continue;
    }
    if (isOfGroup) groups[parts[i].cut.index] = unsure.size();
    unsure.push_back({i});
  }
  if (unsure.empty() || unsure.size() > mostLeftOut) return false;
  std::vector<unsigned> subsets;
  for (unsigned mask = 1; mask < 1U << unsure.size(); ++mask) subsets.push_back(mask);
  std::ranges::stable_sort(subsets, [](unsigned a, unsigned b) { return std::popcount(a) < std::popcount(b); });
  for (const auto mask : subsets) {
    std::set<std::size_t> out;
    for (std::size_t u = 0; u < unsure.size(); ++u)
      if (mask >> u & 1U) out.insert(unsure[u].begin(), unsure[u].end());
    Parts kept;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!out.contains(i)) kept.push_back(parts[i]);
    if (!meets(sumOf(kept), candidates, which)) continue;
    for (const auto i : out)
      if (parts[i].cut) addCut(kindOf(parts[i].cut), parts[i].cut, {}, parts[i].tensor, value);
    return true;
  }
  return false;
}

/// The op of a hook that gave the backward of `op` a saved tensor back; none where no hook did.
BoundSymbolId BackwardWalk::savedTensorHook(BoundSymbolId op) const {
  const auto linked = linked_.find(op.index);
  if (linked == linked_.end()) return {};
  for (const auto position : linked->second)
    for (const auto operand : document_.operands(ops_[position])) {
      const auto producer = operand ? document_.value(operand).producer : BoundSymbolId();
      if (recording_.has(producer) && recording_.op(producer).phase == Phase::hook) return producer;
    }
  return {};
}

/// Names what made the recorded gradient another one than the sum of the terms.
void BackwardWalk::blame(const Parts& parts, const Candidate& candidate, ValueId value) {
  const auto sum = sumOf(parts).tensor;
  const auto producer = document_.value(candidate.value).producer;
  const auto* made = recording_.has(producer) ? &recording_.op(producer) : nullptr;
  if (made && made->phase == Phase::hook)
    return addCut(GradientCut::Kind::hook, producer, candidate.tensor, sum, value);
  const Part* guilty = nullptr;
  for (const auto& part : parts)
    if (part.cut && (!guilty || !part.sure)) guilty = &part;
  if (!guilty && made && made->function && made->phase == Phase::backward)
    return addCut(document_.text(made->node).starts_with("BackwardHookFunction") ? GradientCut::Kind::hook
                                                                                 : GradientCut::Kind::function,
                  producer, candidate.tensor, sum, value);
  for (const auto& part : parts)
    if (!guilty && !part.sure) guilty = &part;
  if (!guilty) {
    opinion_.notCompared.push_back(
        {document_.value(value).producer, value, "it is not the derivative, and no op alone explains it"});
    return;
  }
  at::Tensor actual = candidate.tensor, expected;
  for (const auto& part : parts) {
    const bool isIts = guilty->cut ? part.cut == guilty->cut : !part.cut && part.source == guilty->source;
    if (!isIts) actual = actual - part.tensor;
    else expected = expected.defined() ? expected + part.tensor : part.tensor;
  }
  if (guilty->cut) return addCut(kindOf(guilty->cut), guilty->cut, actual, expected, value);
  const auto source = guilty->source;
  if (const auto hook = savedTensorHook(source)) return addCut(GradientCut::Kind::hook, hook, actual, expected, value);
  std::string because;
  for (const auto& read : {document_.operands(source), document_.outputs(source)})
    for (const auto operand : read)
      if (operand && document_.isTensor(operand))
        if (const auto writes = values_.writesWithin(document_.value(operand).storage,
                                                     static_cast<std::size_t>(source.index), span_.last);
            !writes.empty())
          because = "what it read or made was written later, by " + writerText(document_, recording_, ops_[writes[0]]);
  addCut(GradientCut::Kind::builtin, source, actual, expected, value, because);
}

/// The gradient of a value: the recorded one, where the backward has it. Compares it with the sum of the terms.
at::Tensor BackwardWalk::settle(const Parts& parts, std::vector<Candidate>& candidates, ValueId value,
                                std::size_t position) {
  const auto total = sumOf(parts);
  const auto& sum = total.tensor;
  if (candidates.empty()) return sum;
  if (!sum.defined()) return candidates.front().tensor;
  std::size_t which = 0;
  const bool isMoved = std::ranges::any_of(parts, [](const Part& part) { return part.moved; });
  if (meets(total, candidates, which) || splitAmongEqualViews(parts, candidates, value, which) ||
      (!isMoved && leaveOut(parts, candidates, value, which))) {
    ++opinion_.compared;
    auto found = candidates[which].tensor;
    candidates.erase(candidates.begin() + which);
    return found;
  }
  std::size_t closest = candidates.size();
  for (std::size_t i = candidates.size(); i-- > 0;)
    if (candidates[i].tensor.sizes() == sum.sizes()) closest = i;
  if (closest == candidates.size()) return sum;
  const auto candidate = candidates[closest];
  if (isMoved) return candidate.tensor;
  if (isTainted(value, position)) {
    opinion_.notCompared.push_back(
        {document_.value(value).producer, value, "its memory was written by way of another view"});
  } else {
    ++opinion_.compared;
    blame(parts, candidate, value);
  }
  return candidate.tensor;
}

/// The gradient that comes to the result of a custom Function is settled with the one that its backward began with:
/// what a hook, a detach or another Function did before is theirs.
void BackwardWalk::settleBeforeFunction(std::size_t position, Parts& parts, ValueId value) {
  const auto function = functionOf(ops_[position]);
  if (!function || parts.empty()) return;
  const auto start = functionStart(position);
  bool isDoubtful = false;
  for (const auto& part : parts) {
    if (recording_.has(part.source) && functionOf(part.source) == function &&
        functionStart(static_cast<std::size_t>(part.source.index)) == start)
      return;  // from within
    isDoubtful |= static_cast<bool>(part.cut);
  }
  const auto sum = sumOf(parts);
  std::vector<Candidate> candidates;
  for (auto& one : readBy(static_cast<std::size_t>(start.index))) {
    const auto producer = document_.value(one.value).producer;
    if (!recording_.has(producer) || std::cmp_less(producer.index, span_.begin)) continue;
    if (!sum.tensor.defined() || one.tensor.sizes() != sum.tensor.sizes()) continue;
    isDoubtful |= recording_.op(producer).phase == Phase::hook;
    candidates.push_back(std::move(one));
  }
  std::size_t which = 0;
  if (candidates.empty() || !(isDoubtful || meets(sum, candidates, which))) return;
  Part whole;
  whole.source = parts.front().source;
  whole.tensor = settle(parts, candidates, value, position);
  whole.sure = true;
  parts = {whole};
}

}  // namespace retrograd
