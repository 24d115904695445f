#include "core/torch/steps/recomputed_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>

#include "core/formats/recording/recording.h"
#include "core/questions/intended_infinities.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/judge.h"
#include "core/torch/session/recorded_hash.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/effects.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

/// How far two tensors may be apart.
enum class Apart : std::uint8_t {
  rounding,  ///< of one kernel or another: these may differ where autograd looks on
  manyOps,   ///< one op and many that compute the same, as a layer of oneDNN and its steps
};

bool sameNumbers(const at::Tensor& a, const at::Tensor& b, Apart apart = Apart::rounding) {
  if (!a.defined() || !b.defined() || a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  if (a.layout() != at::kStrided || b.layout() != at::kStrided) return a.layout() == b.layout();
  if (recordedHashOf(a) == recordedHashOf(b)) return true;
  if (!a.is_floating_point() && !a.is_complex()) return false;
  constexpr double roundings = 16;
  const auto found = difference(copyOut(b), copyOut(a));
  const auto floor =
      roundingFloor(toDType(a.scalar_type()), found.scale, static_cast<double>(std::max<std::int64_t>(a.numel(), 1)));
  if (!found.failure.empty()) return false;
  if (apart == Apart::rounding) return found.deviation <= roundings * floor;
  return found.deviation <= std::sqrt(floor * found.scale);
}

}  // namespace

std::size_t functionBegin(const StepRecording& recording, const std::vector<BoundSymbolId>& ops, std::size_t position) {
  const auto function = recording.op(ops[position]).function;
  if (!function) return position;
  while (position > 0 && !recording.op(ops[position]).hasNode && recording.op(ops[position - 1]).function == function)
    --position;
  return position;
}

RecomputedOps::RecomputedOps(const Analysis& analysis, const StepValues& values, const BackwardSpan& span)
    : document_(*analysis.document),
      recording_(*analysis.file.recording),
      ops_(analysis.joint.ops),
      values_(values),
      span_(span) {
  for (auto i = span_.begin; i <= span_.last; ++i)
    if (const auto from = document_.boundSymbol(ops_[i]).origin.op;
        recording_.has(from) && recording_.op(ops_[i]).phase == Phase::backward)
      linked_.insert(static_cast<std::size_t>(from.index));
  const auto blocks = findBlocks();
  for (const auto& block : blocks) pair(block);
  takePlaces();
  putInOrder(blocks);
  findOthers(blocks);
  if (!otherwise_.empty()) findReads();
}

ValueId RecomputedOps::standsFor(ValueId value) const {
  if (!value) return value;
  const auto found = standsFor_.find(value.index);
  return found == standsFor_.end() ? value : found->second;
}

const OpTensors* RecomputedOps::tensorsOf(std::size_t position) const {
  const auto found = recomputedAt_.find(position);
  if (found != recomputedAt_.end() && values_.at(found->second.back())) return values_.at(found->second.back());
  const auto* own = values_.at(position);
  const auto reads = reads_.find(position);
  if (!own || reads == reads_.end()) return own;
  const auto operands = document_.operands(ops_[position]);
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (const auto other = otherwise_.find(operands[i].index);
        other != otherwise_.end() && reads->second.contains(operands[i].index))
      mixed_.try_emplace(position, *own).first->second.operands[i] = other->second;
  const auto mixed = mixed_.find(position);
  return mixed == mixed_.end() ? own : &mixed->second;
}

std::vector<RecomputedOps::Block> RecomputedOps::findBlocks() const {
  std::vector<Block> blocks;
  bool isNew = true;
  for (auto i = span_.begin; i <= span_.last; ++i) {
    const bool isRecomputed = recording_.op(ops_[i]).phase == Phase::recompute;
    if (isRecomputed && isNew) blocks.emplace_back();
    if (isRecomputed) blocks.back().push_back(i);
    isNew = !isRecomputed;
  }
  return blocks;
}

void RecomputedOps::join(std::size_t forward, std::size_t recomputed) {
  recomputedAt_[forward].push_back(recomputed);
  forwardOf_[recomputed] = forward;
  const auto made = document_.outputs(ops_[forward]), again = document_.outputs(ops_[recomputed]);
  for (std::size_t o = 0; o < made.size() && o < again.size(); ++o)
    if (made[o] && again[o]) standsFor_[again[o].index] = standsFor(made[o]);
}

/// The detached input that a recomputation begins with stands for the input.
bool RecomputedOps::isAlias(const Block& block, std::size_t position) const {
  if (document_.symbol(ops_[position]).name != "aten.detach.default") return false;
  const auto producer = document_.value(document_.operands(ops_[position])[0]).producer;
  return !recording_.has(producer) || !std::ranges::binary_search(block, static_cast<std::size_t>(producer.index));
}

/// Whether the op at a place of a block is another call of an op that the block has repeated: the block goes on to ops
/// that it had not come to. (Of two views of one copy, which autocast made for both, the forward had a copy for each.)
/// A checkpoint within, which is recomputed again, ends its block.
bool RecomputedOps::isAnotherCall(const Block& block, std::size_t place) const {
  const auto repeatedBy = [&](std::size_t i) { return document_.boundSymbol(ops_[i]).origin.op; };
  const auto before = std::span(block).first(place), after = std::span(block).subspan(place + 1);
  if (std::ranges::find(before, repeatedBy(block[place]), repeatedBy) == before.end()) return false;
  const auto furthest = std::ranges::max(before | std::views::transform(repeatedBy));
  return std::ranges::any_of(after, [&](std::size_t i) {
    return repeatedBy(i) > furthest && static_cast<std::size_t>(repeatedBy(i).index) < block.front();
  });
}

void RecomputedOps::pair(const Block& block) {
  for (std::size_t place = 0; place < block.size(); ++place) {
    const auto from = document_.boundSymbol(ops_[block[place]]).origin.op;
    if (recording_.has(from) && static_cast<std::size_t>(from.index) < block[place] && !isAnotherCall(block, place))
      join(static_cast<std::size_t>(from.index), block[place]);
    else if (isAlias(block, block[place])) {
      aliases_.insert(block[place]);
      standsFor_[document_.outputs(ops_[block[place]])[0].index] = standsFor(document_.operands(ops_[block[place]])[0]);
    }
  }
  for (std::size_t place = 0; place < block.size(); ++place)
    if (!forwardOf_.contains(block[place]) && !aliases_.contains(block[place])) pairByValues(block, place);
}

/// Whether the ops that the block repeats have nodes: the checkpoint is not a reentrant one. The first of them seems to
/// have one, as of keepsPlace(); the copies of weights that autocast keeps have.
bool RecomputedOps::autogradSaw(const Block& block) const {
  bool isFirst = true;
  return std::ranges::any_of(block, [&](std::size_t i) {
    const auto found = forwardOf_.find(i);
    return found != forwardOf_.end() && !std::exchange(isFirst, false) && recording_.op(ops_[found->second]).hasNode &&
           document_.symbol(ops_[i]).name != "aten._to_copy.default";
  });
}

/// Where autograd looks on, other ops may run (`matmul` folds, an encoder layer leaves its fast path, a layer of oneDNN
/// its own op): one that gives the same numbers as an op between its neighbours' forward ops is the same op, and so is
/// the last one, which gives the result of the region, where it is another call of the same op.
void RecomputedOps::pairByValues(const Block& block, std::size_t place) {
  const auto* again = values_.at(block[place]);
  const auto& recorded = recording_.op(ops_[block[place]]);
  if (!again || again->outputs.empty() || !again->outputs[0].defined() || !recorded.hasNode) return;
  std::size_t first = 0, last = span_.begin;
  for (auto i = place; i-- > 0;)
    if (const auto found = forwardOf_.find(block[i]); found != forwardOf_.end()) {
      first = found->second + 1;
      break;
    }
  for (auto i = place + 1; i < block.size(); ++i)
    if (const auto found = forwardOf_.find(block[i]); found != forwardOf_.end() && found->second >= first) {
      last = std::min(last, found->second);
      break;
    }
  const bool isSeen = autogradSaw(block);
  const bool isLast = std::ranges::none_of(std::span(block).subspan(place + 1),
                                           [&](std::size_t i) { return recording_.op(ops_[i]).hasNode; });
  for (auto i = first; i < last; ++i) {
    const auto* made = values_.at(i);
    const bool isInGraph = recording_.op(ops_[i]).hasNode && (isSeen || linked_.contains(i));
    if (isInGraph != isSeen || recomputedAt_.contains(i) || !made || made->outputs.empty()) continue;
    const bool isResult = isLast && document_.symbol(ops_[i]).name == document_.symbol(ops_[block[place]]).name;
    if (!sameNumbers(made->outputs[0], again->outputs[0], isResult ? Apart::manyOps : Apart::rounding)) continue;
    if (!isSeen) otherOp_.insert(i);
    return join(i, block[place]);
  }
}

/// Whether the graph has the op itself, not one that repeats it. The first op of a region seems seen: the node of the
/// checkpoint was made before it. One node may be that of a copy which autograd made before the op; and the ops of a
/// custom Function have one node, which its first op has.
bool RecomputedOps::keepsPlace(std::size_t forward) const {
  const auto first = functionBegin(recording_, ops_, forward);
  const auto found = recomputedAt_.find(first);
  const auto again = found == recomputedAt_.end() ? std::vector<std::size_t>() : found->second;
  const auto hasNode = [&](std::size_t position) { return recording_.op(ops_[position]).hasNode; };
  if (otherOp_.contains(first) || std::ranges::any_of(again, [&](auto i) { return linked_.contains(i); })) return false;
  return hasNode(first) || linked_.contains(first) || std::ranges::none_of(again, hasNode);
}

/// Of the ops that repeat one which autograd did not see, the first that it saw is in its place; where it saw none, the
/// last.
void RecomputedOps::takePlaces() {
  for (const auto& [forward, recomputed] : recomputedAt_) {
    if (keepsPlace(forward)) continue;
    const auto seen = std::ranges::find_if(recomputed, [&](std::size_t i) { return recording_.op(ops_[i]).hasNode; });
    inPlace_.emplace(seen == recomputed.end() ? recomputed.back() : *seen, forward);
  }
}

/// A recomputed op without a forward op comes where the one before it does.
void RecomputedOps::putInOrder(const std::vector<Block>& blocks) {
  std::unordered_map<std::size_t, std::size_t> places;
  for (const auto& [recomputed, forward] : inPlace_) places[recomputed] = forward;
  for (const auto& block : blocks) {
    const auto first = std::ranges::find_if(block, [&](std::size_t i) { return inPlace_.contains(i); });
    if (first == block.end()) continue;
    auto before = inPlace_.at(*first);
    for (const auto i : block)
      if (inPlace_.contains(i)) before = inPlace_.at(i);
      else places[i] = before;
  }
  std::unordered_set<std::size_t> leftOut;
  for (const auto& [recomputed, forward] : inPlace_) leftOut.insert(forward);
  for (std::size_t i = 0; i <= span_.last; ++i)
    if (!leftOut.contains(i)) order_.push_back(i);
  const auto place = [&](std::size_t i) {
    const auto found = places.find(i);
    return std::pair(found == places.end() ? i : found->second, i);
  };
  if (!places.empty()) std::ranges::sort(order_, {}, place);
}

bool RecomputedOps::isOtherThan(std::size_t forward, std::size_t recomputed) const {
  const auto *first = values_.at(forward), *again = values_.at(recomputed);
  if (!first || !again || leavesUninitialised(document_, ops_[recomputed])) return false;
  for (std::size_t o = 0; o < first->outputs.size() && o < again->outputs.size(); ++o)
    if (first->outputs[o].defined() && !sameNumbers(first->outputs[o], again->outputs[o],
                                                    otherOp_.contains(forward) ? Apart::manyOps : Apart::rounding))
      return true;
  return false;
}

std::optional<RecomputedOps::Other> RecomputedOps::explain(std::size_t forward, std::size_t recomputed) const {
  const auto *first = values_.at(forward), *again = values_.at(recomputed);
  Other other{.forward = ops_[forward], .recomputed = ops_[recomputed]};
  const auto reads = document_.operands(ops_[forward]), readsAgain = document_.operands(ops_[recomputed]);
  for (std::size_t i = 0; i < reads.size() && i < readsAgain.size(); ++i) {
    if (!first->operands[i].defined() || sameNumbers(first->operands[i], again->operands[i])) continue;
    auto producer = document_.value(readsAgain[i]).producer;
    if (producer && hasTrait(document_.symbol(producer).name, OpTrait::detach))  // which keeps its result
      producer = document_.value(document_.operands(producer)[0]).producer;
    if (standsFor(readsAgain[i]) == reads[i] && readsAgain[i] != reads[i]) continue;  // a kernel of its own made it
    if (recording_.has(producer) && recording_.op(producer).phase == Phase::recompute) {
      const auto before = document_.value(reads[i]).producer;
      return Other{Other::Why::otherOps, before ? before : other.forward, producer, {}};
    }
    other.why = Other::Why::overwritten;
    const auto writes = values_.writesWithin(document_.value(reads[i]).storage, forward, recomputed);
    if (!writes.empty()) other.cause = ops_[writes.front()];
    return other;
  }
  if (document_.boundSymbol(ops_[recomputed]).effects & effect::random) return other;
  return std::nullopt;
}

/// An op that repeats none, with none behind it in its block that does, is another than the forward ran.
std::optional<RecomputedOps::Other> RecomputedOps::atTheEnd(const Block& block, std::size_t place) const {
  const auto op = ops_[block[place]];
  const bool isView = document_.boundSymbol(op).effects & effect::view;
  if (!recording_.op(op).hasNode || isView || hasTrait(document_.symbol(op).name, OpTrait::detach)) return std::nullopt;
  std::optional<std::size_t> before;
  for (std::size_t i = 0; i < block.size(); ++i)
    if (const auto found = forwardOf_.find(block[i]); found != forwardOf_.end()) {
      if (i > place) return std::nullopt;
      before = found->second;
    }
  if (!before) return std::nullopt;
  const bool isSeen = autogradSaw(block);
  for (auto i = *before + 1; i < span_.begin; ++i) {
    if (recomputedAt_.contains(i) || recording_.op(ops_[i]).hasNode != isSeen) continue;
    return Other{Other::Why::otherOps, ops_[i], op, {}};
  }
  return std::nullopt;
}

/// The first ops that give other numbers; what follows from them is not said again, nor what no gradient depends on, as
/// a counter.
void RecomputedOps::findOthers(const std::vector<Block>& blocks) {
  std::vector<Other> found;
  std::unordered_map<std::int32_t, std::size_t> follow;  // values that follow from one of these
  for (const auto& block : blocks)
    for (std::size_t place = 0; place < block.size(); ++place) {
      const auto i = block[place];
      std::optional<std::size_t> from;
      for (const auto operand : document_.operands(ops_[i]))
        if (const auto one = follow.find(operand.index); one != follow.end()) from = one->second;
      const auto forward = forwardOf_.find(i);
      const bool isPaired = forward != forwardOf_.end();
      std::optional<Other> other;
      if (!from && isPaired && isOtherThan(forward->second, i)) other = explain(forward->second, i);
      if (!from && !isPaired && !aliases_.contains(i)) other = atTheEnd(block, place);
      if (other) {
        from = found.size();
        found.push_back(*other);
        for (const auto output : document_.outputs(other->recomputed))
          if (output) follow.emplace(output.index, *from);
      }
      if (!from) continue;
      const auto outputs = document_.outputs(ops_[i]);
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (!outputs[o]) continue;
        follow.emplace(outputs[o].index, *from);
        if (isPaired && values_.at(i)) otherwise_[standsFor(outputs[o]).index] = values_.at(i)->outputs[o];
      }
    }
  std::unordered_map<std::int32_t, std::set<std::size_t>> memory;
  for (const auto& [value, from] : follow) memory[document_.value(ValueId(value)).storage.index].insert(from);
  std::set<std::size_t> reach;
  for (auto i = span_.begin; i <= span_.last; ++i)
    if (recording_.op(ops_[i]).phase == Phase::backward)
      for (const auto operand : document_.operands(ops_[i]))
        if (const auto one = memory.find(document_.value(operand).storage.index); one != memory.end())
          reach.insert(one->second.begin(), one->second.end());
  for (const auto one : reach) others_.push_back(found[one]);
}

/// An op that was not recomputed (the last one is not) may read what was.
void RecomputedOps::findReads() {
  for (auto i = span_.begin; i <= span_.last; ++i) {
    const auto from = document_.boundSymbol(ops_[i]).origin.op;
    if (recording_.op(ops_[i]).phase != Phase::backward || !recording_.has(from)) continue;
    for (const auto operand : document_.operands(ops_[i]))
      if (standsFor(operand) != operand) reads_[static_cast<std::size_t>(from.index)].insert(standsFor(operand).index);
  }
}

Claim RecomputedOps::claimOf(const Other& other) const {
  const auto placed = [&](BoundSymbolId op) {
    if (recording_.op(op).since) return writerText(document_, recording_, op);
    const auto line = recordedLine(document_, op);
    return std::string(document_.symbol(op).name) + (line.empty() ? "" : " (" + line + ")");
  };
  Claim claim{.by = Producer::derivative,
              .kind = "recomputed-otherwise",
              .line = recordedLine(document_, other.forward),
              .op = other.recomputed,
              .also = {other.forward},
              .command = "source"};
  switch (other.why) {
    case Other::Why::draws:
      claim.sentence = fmt::format("the checkpoint recomputes {} with other random numbers than its forward drew",
                                   document_.symbol(other.forward).name);
      claim.remedy = "let the checkpoint keep the state of the generators (preserve_rng_state), or draw outside of it";
      break;
    case Other::Why::overwritten:
      claim.sentence = fmt::format("the checkpoint recomputes {} from another value than its forward read",
                                   document_.symbol(other.forward).name);
      if (other.cause) claim.sentence += ", because " + placed(other.cause) + " wrote over it in between";
      claim.remedy = "leave what a checkpointed region reads as it is until the backward is over";
      break;
    case Other::Why::otherOps:
      claim.sentence = fmt::format(
          "the checkpoint recomputes another region than ran: the forward ran {}, the "
          "recomputation {}",
          placed(other.forward), placed(other.recomputed));
      claim.remedy = "let a checkpointed region do the same each time it runs";
      break;
  }
  return claim;
}

}  // namespace retrograd
