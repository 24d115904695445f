#include "core/torch/steps/backward_walk.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "core/formats/recording/recorded_links.h"
#include "core/torch/execution/statistics.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/judge.h"
#include "core/torch/session/recorded_hash.h"
#include "core/torch/steps/layout_replay.h"
#include "core/torch/steps/step_books.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/effects.h"

namespace retrograd {
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
    if (recorded.accumulates && recorded.phase == Phase::accumulation &&
        !handsGradientOn(document_, recording_, ops_[i]))
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
  for (auto& claim : LayoutReplay(analysis_, values_).claims(linked_)) {
    const bool isSaid = std::ranges::any_of(opinion_.claims, [&](const Claim& one) {
      return one.kind == claim.kind && one.subject == claim.subject && one.line == claim.line;
    });
    if (!isSaid) opinion_.claims.push_back(std::move(claim));
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

/// An op that changes nothing about the gradient: each term goes on by itself.
void BackwardWalk::pass(std::size_t position, const Parts& parts) {
  const auto operands = document_.operands(ops_[position]);
  if (operands.empty()) return;
  const bool isOwn = isAliasOfAutograd(document_, recording_, ops_[position]);
  for (auto part : parts) {
    const bool isWrite = part.cut && !writtenOperands(document_, part.cut).empty();
    if (!isOwn && !isWrite) part.cut = ops_[position];
    addPart(operands[0], std::move(part));
  }
}

/// Whether a collective gives a rank the values of another. A sum over ranks has its gradient from what all made of it.
static bool takesFromOthers(std::string_view name) {
  const auto has = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return has("c10d") && !has("all_reduce") && !has("allreduce") && !has("wait_tensor") && !has("_wrap_tensor");
}

bool BackwardWalk::betweenRanks(std::size_t position) const {
  const auto& name = document_.symbol(ops_[position]).name;
  const bool isCollective = name.find("c10d") != std::string::npos;  // some are "recorded.c10d..."
  return recording_.op(ops_[position]).moves || isCollective || name == "recorded.arrived.default";
}

/// An op that moves a tensor between ranks or layouts: its gradient goes on where it keeps its shape. Behind any other
/// the gradients begin anew, as recorded: those of the other ranks are in them.
void BackwardWalk::goThroughRanks(std::size_t position, std::vector<Parts> parts) {
  const auto operands = document_.operands(ops_[position]);
  const auto outputs = document_.outputs(ops_[position]);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    for (auto& part : parts[o])
      for (const auto operand : operands)
        if (trained_.has(operand) && document_.meta(operand).sizes == document_.meta(outputs[o]).sizes) {
          part.moved |= takesFromOthers(document_.symbol(ops_[position]).name);
          addPart(operand, std::move(part));
          break;
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
  if (!any || (position >= span_.begin && !isNode(position) && recording_.op(op).phase != Phase::recompute)) return;
  const bool isView = document_.boundSymbol(op).effects & effect::view;
  if (isView && !linked_.contains(op.index) && (isNode(position) || recording_.op(op).phase == Phase::backward))
    if (const auto before =
            equalViewBefore(outputs[0])) {  // as the transpose of a transposed weight, which is read again
      for (auto& part : parts[0]) addPart(before, std::move(part));
      return;
    }
  const auto& symbol = document_.symbol(op).name;
  if (betweenRanks(position)) return goThroughRanks(position, std::move(parts));
  if (!isNode(position) && symbol == "aten.detach.default" && !functionOf(op)) return pass(position, parts[0]);
  if (!tensors) {
    for (const auto& one : parts)
      if (std::ranges::any_of(one, [](const Part& part) { return !part.cut; }))
        opinion_.notCompared.push_back({op, {}, "what it read and made was not kept"});
    return;
  }
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
