#include "core/torch/steps/backward_walk.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <ranges>

#include "core/torch/execution/statistics.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/judge.h"
#include "core/torch/session/recorded_hash.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

constexpr std::size_t mostLeftOut = 6;  ///< unsure terms whose subsets are tried

}  // namespace

BackwardWalk::BackwardWalk(const Analysis& analysis, const StepValues& values, const TrainedValues& trained,
                           OpDerivatives& derivatives, const BackwardSpan& span, StepOpinion& opinion)
    : analysis_(analysis),
      document_(*analysis.document),
      recording_(*analysis.file.recording),
      ops_(analysis.joint.ops),
      values_(values),
      trained_(trained),
      derivatives_(derivatives),
      span_(span),
      opinion_(opinion),
      recomputed_(analysis, values, span) {}

BackwardWalk::Sum BackwardWalk::sumOf(const Parts& parts) {
  Sum sum;
  for (const auto& part : parts) {
    if (part.tensor.defined()) sum.tensor = sum.tensor.defined() ? sum.tensor + part.tensor : part.tensor;
    sum.noise += part.noise;
  }
  return sum;
}

bool BackwardWalk::isGradient(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && (tensor.is_floating_point() || tensor.is_complex());
}

double BackwardWalk::largestOf(const at::Tensor& tensor) {
  if (!isGradient(tensor) || tensor.numel() == 0) return 0;
  return tensor.abs().max().item<double>();
}

/// The tensors that the backward made and read, by what they belong to.
void BackwardWalk::index() {
  for (std::size_t i = 0; i < span_.begin; ++i)
    for (const auto operand : document_.operands(ops_[i])) {
      const auto producer = operand ? document_.value(operand).producer : BoundSymbolId();
      const bool isOfFunction = recording_.has(producer) && functionOf(producer);
      if (isOfFunction && recording_.op(ops_[i]).phase != Phase::backward &&
          functionOf(producer) != functionOf(ops_[i]))
        ofOutside_.insert(operand.index);
    }
  std::unordered_set<std::int32_t> used;  // memory that autograd's ops read and made before
  for (std::size_t i = 0; i < span_.begin; ++i)
    if (recording_.op(ops_[i]).hasNode)
      for (const auto values : {document_.operands(ops_[i]), document_.outputs(ops_[i])})
        for (const auto value : values)
          if (value && document_.isTensor(value)) used.insert(document_.value(value).storage.index);
  for (auto i = span_.begin; i <= span_.last; ++i) {
    if (recording_.op(ops_[i]).phase != Phase::recompute) continue;
    for (const auto value : document_.operands(ops_[i]))
      if (value && document_.isTensor(value)) used.insert(document_.value(value).storage.index);
    for (const auto value : document_.outputs(ops_[i]))
      if (value) ofForward_.insert(value.index);
  }
  const auto isForward = [&](ValueId value) {
    if (!value || !document_.isTensor(value)) return true;
    const auto producer = document_.value(value).producer;
    if (producer && static_cast<std::size_t>(producer.index) >= span_.begin) return ofForward_.contains(value.index);
    return used.contains(document_.value(value).storage.index);
  };
  for (auto i = span_.begin; i <= span_.last; ++i) {
    const auto& recorded = recording_.op(ops_[i]);
    const auto* tensors = values_.at(i);
    const auto operands = document_.operands(ops_[i]);
    if (!operands.empty() && std::ranges::all_of(operands, isForward))
      for (const auto output : document_.outputs(ops_[i]))
        if (output) ofForward_.insert(output.index);
    if (!tensors || recorded.phase == Phase::recompute) continue;
    for (const auto& output : tensors->outputs)
      if (isGradient(output) && output.numel() > 0) made_.insert(recordedHashOf(output));
    const auto from = document_.boundSymbol(ops_[i]).origin.op;
    const bool isItsOwn = recording_.has(from) && (!recorded.function || recording_.op(from).function);
    if (recorded.phase == Phase::backward && isItsOwn && from != ops_[i]) linked_[from.index].push_back(i);
    if (recorded.accumulates && recorded.phase == Phase::accumulation)
      accumulated_[std::string(document_.text(recorded.accumulates))].push_back(i);
  }
}

void BackwardWalk::run() {
  index();
  for (const auto& other : recomputed_.others()) {
    auto claim = recomputed_.claimOf(other);
    for (const auto output : document_.outputs(other.forward))
      for (auto& parameter : trained_.behind(output)) claim.parameters.push_back(std::move(parameter));
    opinion_.claims.push_back(std::move(claim));
  }
  for (const auto position : std::views::reverse(recomputed_.order())) visit(position);
  for (const auto& [parameter, parts] : leaves_) finish(parameter);
  for (const auto& [parameter, positions] : accumulated_)
    if (!leaves_.contains(parameter))
      opinion_.notJudged.try_emplace(parameter, "no derivative of the recorded forward leads to it");
  for (auto i = span_.begin; i <= span_.last; ++i) hookWrote(i);
}

bool BackwardWalk::isNode(std::size_t position) const {
  const auto& recorded = recording_.op(ops_[position]);
  return (recorded.hasNode || linked_.contains(ops_[position].index)) && !functionOf(ops_[position]);
}

/// A detach of autograd's own, which keeps a result: right after the op that made it.
bool BackwardWalk::isSavedAlias(std::size_t position) const {
  if (position == 0 || document_.symbol(ops_[position]).name != "aten.detach.default") return false;
  const auto made = document_.outputs(ops_[position - 1]);
  const auto read = document_.operands(ops_[position]);
  const auto &own = document_.boundSymbol(ops_[position]), &before = document_.boundSymbol(ops_[position - 1]);
  const auto kept = recording_.op(ops_[position]).kept;
  const bool isKept = kept.value_or(own.source == before.source && own.module == before.module);
  return isKept && recording_.op(ops_[position - 1]).hasNode && !read.empty() &&
         std::ranges::find(made, read[0]) != made.end();
}

/// The tensor that an op wrote, or of which it is a detached alias, as it was before; none for another op.
ValueId BackwardWalk::sameTensorBefore(BoundSymbolId op) const {
  if (!op) return {};
  if (document_.symbol(op).name == "aten.detach.default") return document_.operands(op)[0];
  const auto written = writtenOperands(document_, op);
  return written.size() == 1 ? written[0] : ValueId();
}

/// Its memory was written by way of another view after it was made: what flows where is then not known from the values.
bool BackwardWalk::isTainted(ValueId value, std::size_t position) const {
  const auto until = recomputed_.takesPlace(position) ? span_.last : span_.begin;
  for (const auto write : values_.writesWithin(document_.value(value).storage, position, until)) {
    if (isNode(write)) continue;  // giveToWritten() knows
    auto written = sameTensorBefore(ops_[write]);
    while (written && written != value) written = sameTensorBefore(document_.value(written).producer);
    if (!written) return true;
  }
  return false;
}

void BackwardWalk::collect(std::vector<Candidate>& found, std::size_t position,
                           const std::set<std::int32_t>& without) const {
  const auto* tensors = values_.at(position);
  const auto operands = document_.operands(ops_[position]);
  for (std::size_t i = 0; tensors && i < operands.size(); ++i)
    if (isGradient(tensors->operands[i]) && !without.contains(document_.value(operands[i]).storage.index))
      found.push_back({tensors->operands[i], operands[i]});
}

/// The gradients that the backward ops of a forward op read, but for what they made themselves.
std::vector<BackwardWalk::Candidate> BackwardWalk::readBy(std::size_t forward) const {
  std::vector<Candidate> found;
  std::set<std::int32_t> without;
  const auto op = ops_[forward];
  for (const auto values : {document_.operands(op), document_.outputs(op)})
    for (const auto value : values)
      if (value && document_.isTensor(value)) without.insert(document_.value(value).storage.index);
  std::set<std::int32_t> own;
  if (const auto linked = linked_.find(op.index); linked != linked_.end())
    for (const auto position : linked->second) {
      const auto before = found.size();
      collect(found, position, without);
      found.erase(std::remove_if(found.begin() + before, found.end(),
                                 [&](const Candidate& one) {
                                   return own.contains(one.value.index) || ofForward_.contains(one.value.index);
                                 }),
                  found.end());
      for (const auto output : document_.outputs(ops_[position]))
        if (output) own.insert(output.index);
    }
  return found;
}

void BackwardWalk::addPart(ValueId read, Part part) {
  const auto value = recomputed_.standsFor(read);
  if (!trained_.has(value)) return;
  const auto* parameter = trained_.parameter(value);
  if (!parameter) {
    parts_[value.index].push_back(std::move(part));
    return;
  }
  leaves_[*parameter].push_back(std::move(part));
  leafValues_.emplace(*parameter, value);
}

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
          because = fmt::format("what it read or made was written later, by {} at {}",
                                document_.symbol(ops_[writes[0]]).name, recordedLine(document_, ops_[writes[0]]));
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
  if (meets(total, candidates, which) || splitAmongEqualViews(parts, candidates, value, which) ||
      leaveOut(parts, candidates, value, which)) {
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
  if (isTainted(value, position)) {
    opinion_.notCompared.push_back(
        {document_.value(value).producer, value, "its memory was written by way of another view"});
  } else {
    ++opinion_.compared;
    blame(parts, candidate, value);
  }
  return candidate.tensor;
}

/// An op that changes nothing about the gradient: each term goes on by itself.
void BackwardWalk::pass(std::size_t position, const Parts& parts) {
  const auto operands = document_.operands(ops_[position]);
  if (operands.empty()) return;
  const bool isOwn = isSavedAlias(position);
  for (auto part : parts) {
    const bool isWrite = part.cut && !writtenOperands(document_, part.cut).empty();
    if (!isOwn && !isWrite) part.cut = ops_[position];
    addPart(operands[0], std::move(part));
  }
}

/// The gradients of an op's operands. `from`: terms of a value that goes on behind autograd's back; null: autograd's.
void BackwardWalk::derive(std::size_t position, const std::vector<at::Tensor>& cotangents, const Parts* from) {
  const auto op = ops_[position];
  const auto* tensors = recomputed_.tensorsOf(position);
  const auto operands = document_.operands(op);
  std::vector<char> wanted;
  for (const auto operand : operands) wanted.push_back(trained_.has(operand));
  const auto found = derivatives_.of(op, *tensors, wanted, cotangents);
  if (!found) {
    opinion_.notCompared.push_back({op, {}, derivatives_.refusal()});
    return;
  }
  double terms = 1;
  for (const auto& one : tensors->operands)
    if (one.defined()) terms = std::max(terms, static_cast<double>(one.numel()));
  double noise = 0;
  if (from)
    for (const auto& part : *from) noise += part.noise;
  const auto start = functionOf(op) ? functionStart(position) : op;
  // A cut before a custom Function stays there, unless another Function made it.
  BoundSymbolId keptCut;
  if (from && !from->empty() && from->front().cut && functionOf(op) &&
      kindOf(from->front().cut) != GradientCut::Kind::function)
    keptCut = from->front().cut;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    auto gradient = found->byOperand[i];
    if (!wanted[i] || !gradient.defined()) continue;
    const auto dtype = toScalarType(document_.meta(operands[i]).dtype);
    if (gradient.scalar_type() != dtype) gradient = gradient.to(dtype);
    Part part;
    part.tensor = gradient;
    part.source = op;
    part.sure = isGradient(gradient) && gradient.numel() > 0 && made_.contains(recordedHashOf(gradient));
    if (found->passes && !from) part.sure = true;
    if (from) part.cut = keptCut ? keptCut : start;
    if (!part.sure || from)
      part.noise = noise + (isGradient(gradient) ? roundingFloor(toDType(dtype), largestOf(gradient), terms) : 0);
    addPart(operands[i], std::move(part));
  }
}

/// The gradients of an op that autograd did not see, apart for each cut that they come from, so that it keeps its name.
void BackwardWalk::goOnBehindAutograd(std::size_t position, std::vector<Parts> parts) {
  const auto outputs = document_.outputs(ops_[position]);
  const auto& made = recomputed_.tensorsOf(position)->outputs;
  std::set<std::int32_t> cuts;
  for (std::size_t o = 0; o < parts.size(); ++o) {
    if (o >= made.size() || !isGradient(made[o])) parts[o].clear();
    settleBeforeFunction(position, parts[o], outputs[o]);
    for (const auto& part : parts[o]) cuts.insert(part.cut.index);
  }
  for (const auto cut : cuts) {
    Parts of;
    std::vector<at::Tensor> cotangents(outputs.size());
    for (std::size_t o = 0; o < parts.size(); ++o) {
      Parts terms;
      std::ranges::copy_if(parts[o], std::back_inserter(terms),
                           [cut](const Part& part) { return part.cut.index == cut; });
      of.insert(of.end(), terms.begin(), terms.end());
      cotangents[o] = sumOf(terms).tensor;
      if (cotangents[o].defined()) cotangents[o] = cotangents[o].to(made[o].scalar_type());
    }
    derive(position, cotangents, &of);
  }
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

void BackwardWalk::visit(std::size_t position) {
  const auto op = ops_[position];
  const auto* tensors = recomputed_.tensorsOf(position);
  if (recomputed_.isRepeat(position)) return;
  if (tensors) giveToWritten(position);
  const auto outputs = document_.outputs(op);
  bool any = linked_.contains(op.index) && isNode(position);
  std::vector<Parts> parts(outputs.size());
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (const auto found = parts_.find(recomputed_.standsFor(outputs[o]).index); found != parts_.end()) {
      parts[o] = std::move(found->second);
      parts_.erase(found);
      any |= !parts[o].empty();
      markSaved(position, outputs[o], parts[o]);
    }
  if (!tensors) {
    for (const auto& one : parts)
      if (std::ranges::any_of(one, [](const Part& part) { return !part.cut; }))
        opinion_.notCompared.push_back({op, {}, "what it read and made was not kept"});
    return;
  }
  if (!any || (position >= span_.begin && !isNode(position) && recording_.op(op).phase != Phase::recompute)) return;
  const bool isView = document_.boundSymbol(op).effects & effect::view;
  if (isView && !linked_.contains(op.index) && (isNode(position) || recording_.op(op).phase == Phase::backward))
    if (const auto before =
            equalViewBefore(outputs[0])) {  // as the transpose of a transposed weight, which is read again
      for (auto& part : parts[0]) addPart(before, std::move(part));
      return;
    }
  const auto& symbol = document_.symbol(op).name;
  if (!isNode(position) && symbol == "aten.detach.default" && !functionOf(op)) return pass(position, parts[0]);
  std::vector<Candidate> candidates;
  if (isNode(position)) candidates = readBy(position);
  std::vector<at::Tensor> cotangents(outputs.size());
  Parts all;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (o >= tensors->outputs.size() || !isGradient(tensors->outputs[o])) continue;
    std::vector<Candidate> fitting;
    for (const auto& one : candidates)
      if (one.tensor.sizes() == tensors->outputs[o].sizes()) fitting.push_back(one);
    cotangents[o] = settle(parts[o], fitting, outputs[o], position);
    if (cotangents[o].defined() && cotangents[o].scalar_type() != tensors->outputs[o].scalar_type())
      cotangents[o] = cotangents[o].to(tensors->outputs[o].scalar_type());
    all.insert(all.end(), parts[o].begin(), parts[o].end());
  }
  if (recording_.op(op).number < 0) return derive(position, cotangents, nullptr);
  if (!isNode(position)) return goOnBehindAutograd(position, std::move(parts));
  if (linked_.contains(op.index)) return derive(position, cotangents, nullptr);
  goOnWithoutOps(position, cotangents, all);
}

}  // namespace retrograd
