#include "core/torch/experiments/compare_own.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/rand.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/derivation/precision.h"
#include "core/formats/recording/recording.h"
#include "core/questions/intended_infinities.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/execution/as_recorded.h"
#include "core/torch/experiments/compare_runs.h"
#include "core/torch/judging/judge.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// Numbers that an element of the op's result may be a sum of: the longest dimension that it reads, or what falls away.
double termsOf(const std::vector<at::Tensor>& operands, const at::Tensor& output) {
  double terms = 1;
  for (const auto& operand : operands) {
    if (!operand.defined() || operand.numel() == 0) continue;
    for (const auto size : operand.sizes()) terms = std::max(terms, static_cast<double>(size));
    if (output.numel() > 0) terms = std::max(terms, static_cast<double>(operand.numel()) / output.numel());
  }
  return terms;
}

bool hasDTypeLiteral(const Argument& argument) {
  return argument.kind == Argument::Kind::dtype || std::ranges::any_of(argument.items, hasDTypeLiteral);
}

}  // namespace

OwnErrors::OwnErrors(const Analysis& a, const Analysis& b, OpPairs& pairs, bool all)
    : a_(a),
      b_(b),
      documentA_(*a.document),
      documentB_(*b.document),
      pairs_(pairs),
      paired_(a, b, pairs, all),
      all_(all),
      figures_(b.joint.ops.size()),
      evaluatorB_(*b.document, b.request.seed),
      evaluatorA_(*a.document, a.request.seed) {
  evaluatorA_.setLeftOut(a.leftOut);
  evaluatorB_.setLeftOut(b.leftOut);
}

OwnErrors::~OwnErrors() = default;

std::optional<std::size_t> OwnErrors::partner(std::size_t position) const {
  const auto found = paired_.partners[position];
  return found < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(found));
}

void OwnErrors::start(const Lane& a) {
  for (const auto value : paired_.wanted)
    if (!paired_.makerA[value]) snapshots_[value] = a.keep(value);
  for (const auto& [value, given] : startValues(b_))
    if (given.isTensor()) startB_[value] = given.toTensor();
  for (const auto& [value, given] : startValues(a_))
    if (given.isTensor()) startA_[value] = given.toTensor();
  judgeInputs();
}

void OwnErrors::before(const Lane& a) {
  const auto i = a.position();
  const auto op = a.op(i);
  const auto j = paired_.answers[i];
  if (j < 0) {
    for (const auto value : silentWrites(documentA_, op))
      if (const auto other = pairs_.partner(Side::left, value))
        mixed_.try_emplace(other, Mixed{a.keep(value).clone(), op, {}});
    return;
  }
  if (!paired_.runs[j]) return;
  auto& captured = captured_[i];
  for (const auto operand : documentA_.operands(op)) captured.operands.push_back(a.keep(operand));
}

void OwnErrors::after(const Lane& a) {
  const auto i = a.position() - 1;
  const auto op = a.op(i);
  for (const auto output : documentA_.outputs(op))
    if (paired_.wanted.contains(output)) snapshots_[output] = a.keep(output);
  const auto j = paired_.answers[i];
  if (j < 0) return;
  if (!paired_.runs[j]) return;
  auto& captured = captured_[i];
  for (const auto output : documentA_.outputs(op)) captured.outputs.push_back(a.keep(output));
  for (const auto value : silentWrites(documentA_, op)) captured.written.push_back(a.keep(value));
}

at::Tensor OwnErrors::operandOf(std::size_t j, std::size_t slot, const Captured* captured) const {
  const auto op = b_.joint.ops[j];
  const auto value = documentB_.operands(op)[slot];
  if (!value || !documentB_.isTensor(value)) return {};
  at::Tensor found;
  if (const auto mixed = mixed_.find(value); mixed != mixed_.end()) {
    found = mixed->second.tensor;
  } else if (const auto other = paired_.forced(value)) {
    const auto operands =
        captured ? documentA_.operands(a_.joint.ops[paired_.partners[j]]) : std::span<const ValueId>();
    if (slot < operands.size() && paired_.stands(operands[slot], value)) found = captured->operands[slot];
    else if (const auto snapshot = snapshots_.find(other); snapshot != snapshots_.end()) found = snapshot->second;
  } else if (const auto given = startB_.find(value); given != startB_.end()) {
    found = given->second;
  }
  if (!found.defined() || found.layout() != at::kStrided) return found;
  // As the second has it: its dtype, its place, its strides.
  const auto& meta = documentB_.meta(value);
  const auto type = toScalarType(meta.dtype);
  if (found.scalar_type() != type && found.is_floating_point() && at::isFloatingType(type)) found = found.to(type);
  if (toDevice(found.device()) != meta.device && meta.device.type != Device::Type::meta)
    found = found.to(toTorchDevice(meta.device));
  const at::IntArrayRef sizes(meta.sizes), strides(meta.strides);
  if (found.sizes() == sizes && found.strides() != strides && strides.size() == sizes.size()) {
    auto laid = at::empty_strided(sizes, strides, found.options());
    if (found.numel() > 0 && std::ranges::find(meta.strides, 0) == meta.strides.end()) found = laid.copy_(found);
  }
  return found;
}

/// Whether it ran; its results are in evaluatorB_ then.
bool OwnErrors::runAgain(std::size_t j, const Captured* captured, std::vector<at::Tensor>& operands) {
  const auto op = b_.joint.ops[j];
  const auto ids = documentB_.operands(op);
  const auto written = writtenOperands(documentB_, op);
  for (std::size_t slot = 0; slot < ids.size(); ++slot) {
    operands.push_back(operandOf(j, slot, captured));
    if (!ids[slot]) continue;
    if (!documentB_.isTensor(ids[slot])) {
      notJudged_.push_back({documentB_.opName(op), "it reads a number that another op made"});
      return false;
    }
    if (!operands.back().defined()) {
      notJudged_.push_back({documentB_.opName(op), "what it reads is not known"});
      return false;
    }
    const bool isWritten = std::ranges::find(written, ids[slot]) != written.end();
    evaluatorB_.bind(ids[slot], isWritten ? operands.back().clone() : operands.back());
  }
  try {
    evaluatorB_.run(op);
    return true;
  } catch (const Error& error) {
    const auto i = paired_.partners[j];
    if (i < 0 || !paired_.batchDiffers) notJudged_.push_back({documentB_.opName(op), error.what()});
    return false;
  }
}

/// What an op without a partner made, for those that read it.
void OwnErrors::keepMixed(std::size_t j) {
  const auto op = b_.joint.ops[j];
  for (const auto output : documentB_.outputs(op))
    if (output) mixed_[output] = {evaluatorB_.tensorOrNone(output), {}, {}};
  for (const auto value : silentWrites(documentB_, op)) mixed_[value] = {evaluatorB_.tensorOrNone(value), {}, op};
}

std::vector<at::Tensor> OwnErrors::resultsOf(BoundSymbolId opA, const std::vector<at::Tensor>& operands) {
  const auto ids = documentA_.operands(opA);
  std::vector<at::Tensor> results;
  for (std::size_t slot = 0; slot < ids.size(); ++slot)
    if (ids[slot]) evaluatorA_.bind(ids[slot], operands[slot]);
  try {
    evaluatorA_.run(opA);
    for (const auto output : documentA_.outputs(opA)) results.push_back(evaluatorA_.tensorOrNone(output));
  } catch (const Error&) {
    results.clear();
  }
  for (const auto id : ids)
    if (id) evaluatorA_.release(id);
  for (const auto output : documentA_.outputs(opA))
    if (output) evaluatorA_.release(output);
  return results;
}

std::vector<at::Tensor> OwnErrors::inDouble(BoundSymbolId opA, const std::vector<at::Tensor>& operands) {
  const auto& bound = documentA_.boundSymbol(opA);
  if (std::ranges::any_of(documentA_.pattern(bound.pattern).arguments, hasDTypeLiteral)) return {};
  if (bound.effects & (effect::random | effect::opaque)) return {};
  const auto ids = documentA_.operands(opA);
  std::vector<at::Tensor> wide(ids.size());
  for (std::size_t slot = 0; slot < ids.size(); ++slot) {
    if (!ids[slot]) continue;
    if (slot >= operands.size() || !operands[slot].defined()) return {};
    const bool isReal = operands[slot].is_floating_point();
    if (!isReal && operands[slot].is_complex()) return {};
    wide[slot] = isReal ? operands[slot].to(at::kDouble).clone() : operands[slot];
  }
  return resultsOf(opA, wide);
}

/// Each element that the op reads moves by one rounding up or down, as drawn; an op that rounds no more than that
/// has 1.
std::optional<double> OwnErrors::enlargement(BoundSymbolId opA, const Captured& captured) {
  if (documentA_.boundSymbol(opA).effects & (effect::random | effect::opaque)) return {};
  const auto ids = documentA_.operands(opA);
  auto moved = captured.operands;
  double unit = 0;
  for (std::size_t slot = 0; slot < moved.size(); ++slot) {
    auto& operand = moved[slot];
    if (ids[slot] && !operand.defined()) return {};
    if (!operand.defined() || !operand.is_floating_point() || operand.layout() != at::kStrided) continue;
    const auto one = std::ldexp(1.0, 1 - digitsOf(toDType(operand.scalar_type())));
    unit = std::max(unit, one);
    const auto signs = at::rand(operand.sizes(), at::detail::createCPUGenerator(slot), at::kFloat).sub_(0.5).sign_();
    operand = operand + operand * signs.to(operand.options()).mul_(one);
  }
  if (unit == 0) return {};
  const auto results = resultsOf(opA, moved);
  std::optional<double> most;
  for (std::size_t k = 0; k < std::min(results.size(), captured.outputs.size()); ++k) {
    const auto &x = captured.outputs[k], &y = results[k];
    if (!x.defined() || !y.defined() || !x.is_floating_point()) continue;
    if (const auto found = differenceOf(x, y); found.note.empty())
      most = std::max(most.value_or(0), found.relative / unit);
  }
  return most;
}

/// In whose rounding a difference is measured: the first's, unless the runs compute in another precision altogether, or
/// the second's op got coarser operands from elsewhere.
DType OwnErrors::budgetType(std::size_t i, std::size_t j, const at::Tensor& a, const at::Tensor& b, bool isOwn) const {
  auto type = toDType(a.scalar_type());
  const auto other = toDType(b.scalar_type());
  if (paired_.isCoarse()) return coarser(coarser(type, other), coarser(paired_.baseA, paired_.baseB));
  if (!isOwn) return type;
  const auto here = documentA_.operands(a_.joint.ops[i]), there = documentB_.operands(b_.joint.ops[j]);
  for (std::size_t k = 0; k < std::min(here.size(), there.size()); ++k) {
    if (!here[k] || !there[k] || !documentA_.isTensor(here[k]) || !documentB_.isTensor(there[k])) continue;
    const auto x = documentA_.meta(here[k]).dtype, y = documentB_.meta(there[k]).dtype;
    if (x != y && isDifferentiable(x) && isDifferentiable(y)) type = coarser(type, coarser(x, y));
  }
  return type;
}

void OwnErrors::judge(std::size_t j) {
  const auto op = b_.joint.ops[j];
  const auto i = paired_.partners[j];
  if (i < 0) {
    if (paired_.isRepeatB[j]) return;
    std::vector<at::Tensor> operands;
    if (b_.file.recording && !runsAsRecorded(*b_.file.recording, op) && documentB_.outputs(op).empty()) return;
    if (runAgain(j, nullptr, operands)) keepMixed(j);
  } else {
    const auto at = static_cast<std::size_t>(i);
    const auto found = captured_.find(at);
    const auto opA = a_.joint.ops[at];
    if (paired_.runs[j] && found != captured_.end() && !paired_.isExplainedBySizes(opA, op)) {
      const bool isOpaque = b_.file.recording && !runsAsRecorded(*b_.file.recording, op);
      std::vector<at::Tensor> operands;
      if (isOpaque) notJudged_.push_back({documentB_.opName(op), "nobody can run it here"});
      else if (runAgain(j, &found->second, operands)) measure(at, j, found->second, operands);
      if (all_) figures_[j].enlarged = enlargement(opA, found->second);
    }
    ++judged_;
    // From here on the second has again what the first has.
    const auto written = silentWrites(documentB_, op);
    for (std::size_t k = 0; k < written.size(); ++k) {
      mixed_.erase(written[k]);
      if (!paired_.forced(written[k]) && found != captured_.end() && k < found->second.written.size())
        mixed_[written[k]] = {found->second.written[k], {}, {}};
    }
    if (found != captured_.end()) captured_.erase(found);
  }
  for (const auto operand : documentB_.operands(op))
    if (operand && evaluatorB_.has(operand)) evaluatorB_.release(operand);
  for (const auto output : documentB_.outputs(op))
    if (output && evaluatorB_.has(output)) evaluatorB_.release(output);
}

void OwnErrors::measure(std::size_t i, std::size_t j, const Captured& captured,
                        const std::vector<at::Tensor>& operands) {
  const auto opA = a_.joint.ops[i], opB = b_.joint.ops[j];
  if (leavesUninitialised(documentA_, opA) || leavesUninitialised(documentB_, opB)) return;
  const auto here = documentA_.operands(opA), there = documentB_.operands(opB);
  // Both read the same values, whatever their dtype: then the first's op in double precision on just these is what is
  // right. Else something is between, and what the first made of it counts.
  bool isOwn = here.size() == there.size() && !paired_.hasDynamicOperand(opB);
  for (std::size_t k = 0; isOwn && k < here.size(); ++k) isOwn = paired_.stands(here[k], there[k]);
  auto& s = pairs_.signatures();
  const bool sameCall =
      s.symbol(Side::left, opA) == s.symbol(Side::right, opB) && s.call(Side::left, opA) == s.call(Side::right, opB);
  std::vector<at::Tensor> results, expected = captured.outputs;
  for (const auto output : documentB_.outputs(opB)) results.push_back(evaluatorB_.tensorOrNone(output));
  for (const auto value : silentWrites(documentB_, opB)) results.push_back(evaluatorB_.tensorOrNone(value));
  expected.insert(expected.end(), captured.written.begin(), captured.written.end());
  std::optional<Measure> worst;
  std::optional<std::vector<at::Tensor>> exact, exactOfB;
  for (std::size_t k = 0; k < std::min(results.size(), expected.size()); ++k) {
    const auto &x = expected[k], &y = results[k];
    if (!x.defined() || !y.defined()) continue;
    const bool sameType = x.scalar_type() == y.scalar_type();
    if (sameType && x.sizes() == y.sizes() && x.device() == y.device() && x.equal(y)) continue;
    auto found = differenceOf(x, y);
    if (found.relative == 0) continue;
    Measure one{.deviation = found.largest, .tolerance = 0, .scale = found.scale, .failure = found.note};
    if (x.is_floating_point() && found.note.empty()) {
      const auto type = budgetType(i, j, x, y, isOwn);
      const auto regions = isOwn ? Regions() : regionsOf(opA, opB);
      // A kernel may round in the narrow type on its way, of which roundingFloor() grants two roundings.
      const auto steps = (paired_.isCoarse() && digitsOf(type) < 24 ? 4.0 : 1.0) *
                         (1.0 + static_cast<double>(std::max(regions.a.size(), regions.b.size())));
      if (!exact) exact = inDouble(opA, captured.operands);
      const auto noiseOf = [&](const std::vector<at::Tensor>& right, const at::Tensor& of) {
        if (k >= right.size() || !right[k].defined() || right[k].sizes() != of.sizes()) return 0.0;
        const auto distance = differenceOf(of, right[k]);
        return distance.note.empty() ? distance.largest : 0.0;
      };
      const auto noise = noiseOf(*exact, x);
      double moved = 0;  // by the rounding of what it reads, as a rounding within the op would
      const bool isRounded =
          isOwn && documentB_.operands(opB).size() == operands.size() && (!sameType || paired_.isCoarse());
      if (isRounded && sameCall) {
        if (!exactOfB) exactOfB = inDouble(opA, operands);
        if (k < exactOfB->size() && (*exactOfB)[k].defined() && (*exactOfB)[k].sizes() == y.sizes())
          one.deviation = differenceOf(y, (*exactOfB)[k]).largest;
        moved = k < exact->size() && (*exact)[k].defined() ? noiseOf(*exactOfB, (*exact)[k]) : 0;
      }
      const bool isOtherCall =
          isOwn && sameType && !sameCall && s.symbol(Side::left, opA) == s.symbol(Side::right, opB) && !exact->empty();
      one.tolerance = isOtherCall
                          ? 4 * noise + roundingFloor(type, found.scale, 0) / 2
                          : steps * roundingFloor(type, found.scale, termsOf(operands, y)) + 4 * (noise + moved);
    }
    if (!worst || one.ratio() > worst->ratio()) worst = one;
  }
  figures_[j].own = worst && worst->scale > 0 ? worst->deviation / worst->scale : 0;
  if (worst && worst->scale > 0) figures_[j].budget = worst->tolerance / worst->scale;
  if (!worst || worst->good()) return;
  blame(opA, opB, isOwn ? Regions() : regionsOf(opA, opB), *worst);
}

std::optional<double> OwnErrors::atStart(ValueId ofA) const {
  const auto found = atStart_.find(ofA);
  return found == atStart_.end() ? std::nullopt : std::optional(found->second);
}

void OwnErrors::finish() {
  for (const auto& end : paired_.ends) judgeEnd(end);
}

}  // namespace retrograd
