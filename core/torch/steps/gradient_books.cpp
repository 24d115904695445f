// What becomes of each gradient, in the order in which it happens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/judge/report.h"
#include "core/torch/steps/step_books.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// The one number of a tensor; 0 where it is not one.
double numberOf(const Evaluator& evaluator, ValueId value) {
  const auto tensor = value ? evaluator.tensorOrNone(value) : at::Tensor();
  return tensor.defined() && tensor.numel() == 1 ? tensor.item().toDouble() : 0;
}

}  // namespace

GradientBooks::GradientBooks(const Analysis& analysis, const StepMembers& members)
    : document_(*analysis.document), recording_(*analysis.file.recording), ops_(analysis.joint.ops), members_(members) {
  for (const auto& name : recording_.names)
    if (name.role == "gathered") gathered_.insert(name.name);
  for (std::size_t i = 0; i < ops_.size(); ++i) visit(i);
  finish();
}

void GradientBooks::visit(std::size_t position) {
  const auto op = ops_[position];
  const auto& recorded = recording_.op(op);
  if (recorded.moves) return moves(position);
  if (recorded.accumulates && recorded.phase == Phase::accumulation)
    return accumulate(position, std::string(document_.text(recorded.accumulates)));
  if (recorded.phase == Phase::backward || recorded.phase == Phase::accumulation || recorded.phase == Phase::recompute)
    return;
  if (unscales(document_.symbol(op).name)) return unscale(position);
  if (recorded.phase == Phase::clip) return clip(position);
  touch(position);
}

std::string GradientBooks::backwardLine(const Gradient& gradient) const {
  const auto line = gradient.made ? lineOf(gradient.made) : std::string();
  return line.empty() ? fmt::format("backward {}", gradient.backward) : "the backward at " + line;
}

/// The gradient of a gathered parameter is handed to the ranks that have its shards, and added to what these had.
void GradientBooks::moves(std::size_t position) {
  for (const auto operand : writtenOperands(document_, ops_[position])) {
    if (!document_.isTensor(operand)) continue;
    const auto owner = owner_.find(document_.value(operand).storage);
    if (owner == owner_.end() || open_[owner->second].storage != owner->first) continue;
    auto& gradient = open_[owner->second];
    if (gradient.usedIn < 0) continue;
    gradient.mixedAt = ops_[position];
    gradient.mixedFrom = std::exchange(gradient.usedIn, -1);
  }
}

void GradientBooks::accumulate(std::size_t position, const std::string& parameter) {
  const auto op = ops_[position];
  const auto& recorded = recording_.op(op);
  if (gathered_.contains(parameter) || handsGradientOn(document_, recording_, op)) return;
  const auto outputs = document_.outputs(op), operands = document_.operands(op);
  if (outputs.empty() || !outputs[0]) return;
  auto& gradient = open_[parameter];
  const bool adds = std::ranges::any_of(operands, [&](ValueId operand) {
    if (!operand || !document_.isTensor(operand)) return false;
    const auto storage = document_.value(operand).storage;
    return gradient.storage ? storage == gradient.storage
                            : members_.gradientOf(operand) == parameter && operands.size() > 1;
  });
  if (!adds) {
    if (gradient.isOpen) loses(parameter, op);
    gradient = {};
  } else if (gradient.usedIn >= 0) {
    gradient.mixedAt = op;
    gradient.mixedFrom = gradient.usedIn;
    gradient.usedIn = -1;
  }
  if (adds && gradient.clipped && members_.isOptimized(parameter))
    groups_.add({.by = Producer::books,
                 .severity = Severity::suspicion,
                 .kind = "clip-before-backward",
                 .sentence = fmt::format("a backward adds to gradients that were clipped before, at {}",
                                         lineOf(gradient.clipped)),
                 .remedy = "clip once, after the last backward of an update",
                 .line = lineOf(op),
                 .op = op,
                 .command = "source"},
                parameter);
  gradient.storage = document_.value(outputs[0]).storage;
  gradient.backward = recorded.backward;
  gradient.made = op;
  gradient.clipped = {};
  gradient.wasLookedAt = false;
  gradient.isOpen = true;
  owner_[gradient.storage] = parameter;
}

void GradientBooks::clip(std::size_t position) {
  const auto op = ops_[position];
  const auto written = writtenOperands(document_, op);
  const bool begins = position == 0 || recording_.op(ops_[position - 1]).phase != Phase::clip;
  if (begins) clipSawGradient_ = false;
  if (begins) blindClip_ = op;
  for (const auto operand : document_.operands(op)) {
    if (!operand || !document_.isTensor(operand)) continue;
    const auto owner = owner_.find(document_.value(operand).storage);
    clipSawGradient_ |= owner != owner_.end() || !members_.gradientOf(operand).empty();
    if (owner == owner_.end()) continue;
    auto& gradient = open_[owner->second];
    gradient.wasLookedAt = true;
    if (std::ranges::find(written, operand) == written.end()) continue;
    if (gradient.usedIn >= 0 && !gradient.isOpen)
      groups_.add({.by = Producer::books,
                   .severity = Severity::suspicion,
                   .kind = "clip-after-update",
                   .sentence = "gradients are clipped after the update that used them",
                   .remedy = "clip between the backward and the update",
                   .line = lineOf(op),
                   .op = op,
                   .command = "source"},
                  owner->second);
    gradient.clipped = op;
  }
  const bool ends = position + 1 == ops_.size() || recording_.op(ops_[position + 1]).phase != Phase::clip;
  if (ends && !clipSawGradient_)
    groups_.add({.by = Producer::books,
                 .severity = Severity::suspicion,
                 .kind = "clip-without-gradient",
                 .sentence = "clipping found no gradient: it runs before the backward, or on other parameters",
                 .remedy = "clip between the backward and the update",
                 .line = lineOf(blindClip_),
                 .op = blindClip_,
                 .command = "source"},
                "");
}

/// A scaler divides gradients by its scale: who clipped them before saw them that much too large.
void GradientBooks::unscale(std::size_t position) {
  Scaled scaled{.position = position};
  for (const auto operand : document_.operands(ops_[position])) {
    if (!operand || !document_.isTensor(operand)) continue;
    const auto owner = owner_.find(document_.value(operand).storage);
    if (owner == owner_.end()) continue;
    auto& gradient = open_[owner->second];
    gradient.isOpen = false;
    if (!gradient.clipped) continue;
    scaled.clip = gradient.clipped;
    scaled.parameters.push_back(owner->second);
  }
  if (scaled.clip) scaled_.push_back(std::move(scaled));
}

/// Ops of optimizers and of the loop.
void GradientBooks::touch(std::size_t position) {
  const auto op = ops_[position];
  const auto& recorded = recording_.op(op);
  const auto written = writtenOperands(document_, op);
  const auto& name = document_.symbol(op).name;
  const bool clears = name.find("zero_") != std::string::npos || name.starts_with("aten.fill_");
  for (const auto operand : document_.operands(op)) {
    if (!operand || !document_.isTensor(operand)) continue;
    const auto storage = document_.value(operand).storage;
    auto owner = owner_.find(storage);
    if (owner == owner_.end() && recorded.phase == Phase::optimizer)  // made before the recording, or by hand
      if (const auto& parameter = members_.gradientOf(operand); !parameter.empty()) {
        open_[parameter].storage = storage;
        owner = owner_.emplace(storage, parameter).first;
      }
    if (owner == owner_.end() || open_[owner->second].storage != storage) continue;
    auto& gradient = open_[owner->second];
    if (clears && std::ranges::find(written, operand) != written.end()) {
      if (gradient.isOpen) loses(owner->second, op);
      gradient.isOpen = false;
      gradient.usedIn = -1;
      gradient.mixedAt = gradient.clipped = {};
      continue;
    }
    gradient.isOpen = false;
    if (recorded.phase != Phase::optimizer) continue;
    if (gradient.mixedAt && usedTwice_.insert(owner->second).second) claimMixed(owner->second, gradient);
    gradient.mixedAt = {};
    gradient.usedIn = recorded.step;
    gradient.clipped = {};
    usedBackwards_.insert(gradient.backward);
  }
}

/// An update reads what an earlier one read, with more on top.
void GradientBooks::claimMixed(const std::string& parameter, const Gradient& gradient) {
  const auto step = recording_.op(gradient.mixedAt).step;
  groups_.add(
      {.by = Producer::books,
       .kind = "gradient-used-twice",
       .sentence = fmt::format(
           "gradients that {} already used are added to and used again: nothing cleared them "
           "before the backward of step {}",
           gradient.mixedFrom < step ? fmt::format("the update of step {}", gradient.mixedFrom) : "an earlier update",
           step),
       .remedy = "call zero_grad() once for each update, before its first backward",
       .line = lineOf(gradient.mixedAt),
       .op = gradient.mixedAt,
       .command = "source"},
      parameter);
}

void GradientBooks::loses(const std::string& parameter, BoundSymbolId by) {
  if (members_.isOptimized(parameter)) lost_.push_back({parameter, open_[parameter], by});
}

/// A gradient that is still there counts as lost only where an update came after it.
void GradientBooks::finish() {
  std::int64_t lastUpdate = -1;
  for (const auto op : ops_)
    if (recording_.op(op).phase == Phase::optimizer) lastUpdate = op.index;
  for (const auto& [parameter, gradient] : open_)
    if (gradient.isOpen && gradient.made && lastUpdate > gradient.made.index) loses(parameter, {});
  for (const auto& one : lost_) {
    const bool isCollateral = usedBackwards_.contains(one.gradient.backward);
    if (isCollateral && !one.by) continue;
    Claim claim{.by = Producer::books,
                .severity = isCollateral               ? Severity::note
                            : one.gradient.wasLookedAt ? Severity::suspicion
                                                       : Severity::fault,
                .kind = "gradient-never-read",
                .sentence = fmt::format("gradients of {} were never read by an update", backwardLine(one.gradient)),
                .remedy = isCollateral ? "" : "clear gradients only after an update has read them",
                .op = one.by ? one.by : one.gradient.made,
                .command = "source"};
    if (one.by)
      claim.sentence += recording_.op(one.by).accumulates ? ": they were gone when the next backward came"
                                                          : ": they were cleared before it";
    claim.line = lineOf(claim.op);
    groups_.add(std::move(claim), one.parameter);
  }
}

void GradientBooks::ran(std::size_t position, const Evaluator& evaluator, const OpMeasure&) {
  for (auto& one : scaled_) {
    if (ops_[position] == one.clip)
      for (const auto operand : document_.operands(one.clip))
        if (operand && document_.isTensor(operand) && document_.meta(operand).elements() == 1 &&
            members_.gradientOf(operand).empty())
          one.factor = numberOf(evaluator, operand);
    if (position == one.position) {
      const auto inverse = numberOf(evaluator, document_.operands(ops_[position]).back());
      one.scale = inverse > 0 ? 1 / inverse : 0;
    }
  }
}

std::vector<Claim> GradientBooks::claims() {
  auto claims = groups_.take();
  for (auto& claim : claims)
    if (claim.subject.empty()) claim.parameters.clear();
  bool isSaid = false;
  for (const auto& one : scaled_) {
    if (one.scale == 0 || one.scale == 1 || isSaid) continue;
    isSaid = true;
    const bool isSame = one.factor == 1;
    claims.push_back(
        {.by = Producer::books,
         .severity = isSame ? Severity::suspicion : Severity::fault,
         .kind = "clip-before-unscale",
         .subject = one.parameters.front(),
         .sentence = fmt::format("clipping saw gradients {:g} times too large, as the scaler had not unscaled them: it "
                                 "multiplied them by {:.3g}",
                                 one.scale, one.factor),
         .remedy = "call scaler.unscale_(optimizer) before clipping",
         .line = lineOf(one.clip),
         .parameters = one.parameters,
         .op = one.clip,
         .command = "source"});
  }
  return claims;
}

}  // namespace retrograd
