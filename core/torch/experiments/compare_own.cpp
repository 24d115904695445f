#include "core/torch/experiments/compare_own.h"

#include <ATen/ops/empty_strided.h>
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

/// The op's name without overload, the same for a write in place.
std::string_view kindOf(const Document& document, BoundSymbolId op) {
  const std::string_view name = document.symbol(op).name;
  const auto dot = name.rfind('.');
  const auto end = dot == std::string_view::npos ? name.size() : dot;
  return name.substr(0, end > 0 && name[end - 1] == '_' ? end - 1 : end);
}

bool isProduct(std::string_view kind) {
  for (const auto one : {"mm", "linear", "convolution", "attention"})
    if (kind.find(one) != std::string_view::npos) return true;
  return false;
}

/// Bits of a number: fewer is coarser.
int digitsOf(DType dtype) {
  if (dtype == DType::bf16) return 8;
  if (dtype == DType::f16 || dtype == DType::c32) return 11;
  return dtype == DType::f64 || dtype == DType::c128 ? 53 : 24;
}

DType coarser(DType a, DType b) { return digitsOf(b) < digitsOf(a) ? b : a; }

/// What a run computes in: the precision of its weights, or that of most of its products where they are coarser, as
/// under autocast.
DType baseOf(const Analysis& analysis) {
  const auto own = ownPrecision(analysis.file);
  std::map<DType, std::size_t> products;
  std::size_t all = 0;
  for (const auto op : analysis.joint.ops) {
    const auto outputs = analysis.document->outputs(op);
    if (outputs.empty() || !outputs[0] || !analysis.document->isTensor(outputs[0])) continue;
    if (!isProduct(kindOf(*analysis.document, op))) continue;
    ++products[analysis.document->meta(outputs[0]).dtype];
    ++all;
  }
  auto base = own;
  for (const auto& [dtype, count] : products)
    if (2 * count > all) base = coarser(base, dtype);
  return base;
}

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

void collect(const Document& document, std::span<const ValueId> values, std::set<std::int64_t>& dims) {
  for (const auto value : values) {
    if (!value || !document.isTensor(value)) continue;
    const auto& meta = document.meta(value);
    const auto all = meta.elements();
    dims.insert(all);
    for (const auto size : meta.sizes) {
      dims.insert(size);
      if (size > 0) dims.insert(all / size);
    }
  }
}

}  // namespace

OwnErrors::OwnErrors(const Analysis& a, const Analysis& b, OpPairs& pairs, bool all)
    : a_(a),
      b_(b),
      documentA_(*a.document),
      documentB_(*b.document),
      pairs_(pairs),
      baseA_(baseOf(a)),
      baseB_(baseOf(b)),
      placeA_(a.document->boundSymbolCount(), -1),
      placeB_(b.document->boundSymbolCount(), -1),
      makerA_(a.document->valueCount()),
      makerB_(b.document->valueCount()),
      evaluatorB_(*b.document, b.request.seed),
      evaluatorA_(*a.document, a.request.seed) {
  evaluatorA_.setLeftOut(a.leftOut);
  evaluatorB_.setLeftOut(b.leftOut);
  for (std::size_t i = 0; i < a.joint.ops.size(); ++i) placeA_[a.joint.ops[i]] = static_cast<std::int64_t>(i);
  for (std::size_t j = 0; j < b.joint.ops.size(); ++j) placeB_[b.joint.ops[j]] = static_cast<std::int64_t>(j);
  const auto findMakers = [](const Analysis& analysis, IdVector<ValueId, BoundSymbolId>& makers) {
    for (const auto op : analysis.joint.ops)
      for (const auto output : analysis.document->outputs(op))
        if (output) makers[output] = op;
  };
  findMakers(a, makerA_);
  findMakers(b, makerB_);
  findSizes();
  findPairs();
  findWhatRuns(all);
}

OwnErrors::~OwnErrors() = default;

bool OwnErrors::isStrict(BoundSymbolId opA, BoundSymbolId opB) const {
  return opA && opB && kindOf(documentA_, opA) == kindOf(documentB_, opB);
}

std::optional<std::size_t> OwnErrors::partner(std::size_t position) const {
  return partners_[position] < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(partners_[position]));
}

/// The first's value that stands for the second's; none where an op that has no partner makes it.
ValueId OwnErrors::forced(ValueId ofB) const {
  if (!ofB) return {};
  const auto maker = makerB_[ofB];
  if (!maker) return pairs_.partner(Side::right, ofB);
  const auto place = placeB_[maker];
  if (place < 0) return {};
  if (partners_[place] >= 0) {
    const auto outputs = documentB_.outputs(maker);
    const auto at = static_cast<std::size_t>(std::ranges::find(outputs, ofB) - outputs.begin());
    const auto others = documentA_.outputs(a_.joint.ops[partners_[place]]);
    return at < others.size() ? others[at] : ValueId();
  }
  if (!isRepeat_[place]) return {};
  // What runs again in the backward gives what it gave in the forward.
  const auto original = documentB_.boundSymbol(maker).origin.op;
  const auto before = documentB_.outputs(original), now = documentB_.outputs(maker);
  const auto at = static_cast<std::size_t>(std::ranges::find(now, ofB) - now.begin());
  return at < before.size() ? forced(before[at]) : ValueId();
}

void OwnErrors::findPairs() {
  const auto &opsA = a_.joint.ops, &opsB = b_.joint.ops;
  partners_.assign(opsB.size(), -1);
  answers_.assign(opsA.size(), -1);
  isRepeat_.assign(opsB.size(), 0);
  for (std::size_t j = 0; j < opsB.size(); ++j) {
    const auto other = pairs_.partner(Side::right, opsB[j]);
    if (!isStrict(other, opsB[j]) || placeA_[other] < 0) continue;
    if (!isAnchor(other, opsB[j])) {
      carriersA_[other] = opsB[j];
      carriersB_[opsB[j]] = other;
      continue;
    }
    partners_[j] = placeA_[other];
    answers_[placeA_[other]] = static_cast<std::int64_t>(j);
  }
  for (std::size_t j = 0; j < opsB.size(); ++j) {
    const auto& origin = documentB_.boundSymbol(opsB[j]).origin;
    if (partners_[j] < 0 && origin.role == Role::recompute && origin.op && placeB_[origin.op] >= 0 &&
        partners_[placeB_[origin.op]] >= 0)
      isRepeat_[j] = 1;
  }
}

void OwnErrors::findSizes() {
  for (const auto& input : b_.joint.inputs) {
    const auto other = input ? pairs_.partner(Side::right, input) : ValueId();
    if (!other || !documentA_.isTensor(other) || !documentB_.isTensor(input)) continue;
    const auto &x = documentA_.meta(other), &y = documentB_.meta(input);
    if (x.sizes == y.sizes) continue;
    batchDiffers_ = true;
    ratios_.emplace(x.elements(), y.elements());
  }
}

/// Whether what the two make is the same value of both runs. What only hands on its operands, and a sum of gradients,
/// whose order is nobody's choice, are where these are; nothing of another shape is.
bool OwnErrors::isAnchor(BoundSymbolId opA, BoundSymbolId opB) const {
  const auto here = documentA_.operands(opA), there = documentB_.operands(opB);
  const auto role = documentB_.boundSymbol(opB).origin.role;
  const bool isSum = (role == Role::gradient || role == Role::accumulation) && kindOf(documentB_, opB) == "aten.add";
  if (isSum || isPlain(documentB_, opB)) {
    if (here.size() != there.size()) return false;
    if (!std::ranges::equal(there, here, [&](ValueId ofB, ValueId ofA) { return forced(ofB) == ofA; })) {
      const bool isSwapped = isSum && here.size() == 2 && forced(there[0]) == here[1] && forced(there[1]) == here[0];
      if (!isSwapped) return false;
    }
  }
  if (batchDiffers_) return true;
  const auto sizesOf = [](const Document& document, ValueId value) {
    return value && document.isTensor(value) ? document.meta(value).sizes : std::vector<std::int64_t>();
  };
  const bool readsSame = std::ranges::equal(there, here, [&](ValueId ofB, ValueId ofA) { return forced(ofB) == ofA; });
  return readsSame || std::ranges::equal(documentA_.outputs(opA), documentB_.outputs(opB), [&](ValueId x, ValueId y) {
           return sizesOf(documentA_, x) == sizesOf(documentB_, y);
         });
}

/// Without a new value: what the operands hold changes, and their names do not say so.
static std::vector<ValueId> silentWrites(const Document& document, BoundSymbolId op) {
  const auto outputs = document.outputs(op);
  if (std::ranges::any_of(outputs, [](ValueId value) { return value.valid(); })) return {};
  return writtenOperands(document, op);
}

void OwnErrors::findWhatRuns(bool all) {
  const auto &opsA = a_.joint.ops, &opsB = b_.joint.ops;
  for (std::size_t j = 0; j < opsB.size(); ++j)
    if (partners_[j] < 0)
      for (const auto value : silentWrites(documentB_, opsB[j])) dynamicB_.insert(value);
  for (std::size_t i = 0; i < opsA.size(); ++i)
    if (answers_[i] < 0)
      for (const auto value : silentWrites(documentA_, opsA[i]))
        if (const auto other = pairs_.partner(Side::left, value)) dynamicB_.insert(other);
  runs_.assign(opsB.size(), 0);
  needs_.assign(opsB.size(), 0);
  for (std::size_t j = 0; j < opsB.size(); ++j) {
    const auto i = partners_[j];
    if (i < 0) runs_[j] = isRepeat_[j] ? 0 : 1;
    else if (documentB_.boundSymbol(opsB[j]).effects & effect::random) runs_[j] = 0;
    else runs_[j] = all || differs(static_cast<std::size_t>(i), j) ? 1 : 0;
    if (i < 0 || runs_[j]) mustRun_ += i < 0 || differs(static_cast<std::size_t>(i), j) ? 1 : 0;
    auto need = i < 0 ? std::size_t{0} : static_cast<std::size_t>(i) + 1;
    if (runs_[j]) {
      const auto operands = documentB_.operands(opsB[j]);
      for (std::size_t slot = 0; slot < operands.size(); ++slot) {
        const auto value = forced(operands[slot]);
        if (!value) continue;
        const auto others = i < 0 ? std::span<const ValueId>() : documentA_.operands(opsA[i]);
        if (slot < others.size() && others[slot] == value) continue;
        wanted_.insert(value);
        if (const auto maker = makerA_[value]) need = std::max(need, static_cast<std::size_t>(placeA_[maker]) + 1);
      }
    }
    needs_[j] = need;
  }
  mustRun_ += static_cast<std::size_t>(std::ranges::count(answers_, -1));
  findEnds();
}

/// Whether the second's op is another call, or reads something else.
bool OwnErrors::differs(std::size_t i, std::size_t j) {
  const auto opA = a_.joint.ops[i], opB = b_.joint.ops[j];
  if (opA == opB && pairs_.isOneDocument()) return false;
  auto& s = pairs_.signatures();
  if (s.symbol(Side::left, opA) != s.symbol(Side::right, opB) || s.call(Side::left, opA) != s.call(Side::right, opB))
    return true;
  const auto here = documentA_.operands(opA), there = documentB_.operands(opB);
  if (here.size() != there.size() || hasDynamicOperand(opB)) return true;
  const auto sameType = [&](ValueId x, ValueId y) {
    if (!x || !y || !documentA_.isTensor(x) || !documentB_.isTensor(y)) return true;
    return documentA_.meta(x).dtype == documentB_.meta(y).dtype &&
           documentA_.meta(x).device == documentB_.meta(y).device;
  };
  for (std::size_t k = 0; k < here.size(); ++k)
    if (forced(there[k]) != here[k] || !sameType(here[k], there[k])) return true;
  const auto made = documentA_.outputs(opA), madeB = documentB_.outputs(opB);
  return !std::ranges::equal(made, madeB, sameType);
}

bool OwnErrors::hasDynamicOperand(BoundSymbolId opB) const {
  return !dynamicB_.empty() &&
         std::ranges::any_of(documentB_.operands(opB), [&](ValueId value) { return dynamicB_.contains(value); });
}

bool OwnErrors::isSameButForSizes(const Argument& x, const Argument& y, const std::set<std::int64_t>& dimsA,
                                  const std::set<std::int64_t>& dimsB) const {
  if (x == y) return true;
  if (x.kind != y.kind || x.items.size() != y.items.size()) return false;
  if (x.kind == Argument::Kind::list) {
    for (std::size_t i = 0; i < x.items.size(); ++i)
      if (!isSameButForSizes(x.items[i], y.items[i], dimsA, dimsB)) return false;
    return true;
  }
  if (x.kind == Argument::Kind::operand) return true;
  const bool isInteger = x.kind == Argument::Kind::integer;
  if (!isInteger && x.kind != Argument::Kind::real) return false;
  if (isInteger && dimsA.contains(x.integer) && dimsB.contains(y.integer)) return true;
  const auto numberA = isInteger ? static_cast<double>(x.integer) : x.real,
             numberB = isInteger ? static_cast<double>(y.integer) : y.real;
  return std::ranges::any_of(ratios_, [&](const auto& ratio) {
    const auto [n, m] = ratio;
    return numberA * m == numberB * n || numberA * n == numberB * m;
  });
}

/// Whether literals differ only as the sizes of the batch do.
bool OwnErrors::isExplainedBySizes(BoundSymbolId opA, BoundSymbolId opB) const {
  if (!batchDiffers_) return false;
  const auto& x = documentA_.pattern(documentA_.boundSymbol(opA).pattern).arguments;
  const auto& y = documentB_.pattern(documentB_.boundSymbol(opB).pattern).arguments;
  if (x.size() != y.size()) return false;
  std::set<std::int64_t> dimsA, dimsB;
  collect(documentA_, documentA_.operands(opA), dimsA);
  collect(documentA_, documentA_.outputs(opA), dimsA);
  collect(documentB_, documentB_.operands(opB), dimsB);
  collect(documentB_, documentB_.outputs(opB), dimsB);
  bool differs = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    differs |= !(x[i] == y[i]);
    if (!isSameButForSizes(x[i], y[i], dimsA, dimsB)) return false;
  }
  return differs;
}

void OwnErrors::start(const Lane& a) {
  for (const auto value : wanted_)
    if (!makerA_[value]) snapshots_[value] = a.keep(value);
  for (const auto& [value, given] : startValues(b_))
    if (given.isTensor()) startB_[value] = given.toTensor();
  for (const auto& [value, given] : startValues(a_))
    if (given.isTensor()) startA_[value] = given.toTensor();
  judgeInputs();
}

void OwnErrors::before(const Lane& a) {
  const auto i = a.position();
  const auto op = a.op(i);
  const auto j = answers_[i];
  if (j < 0) {
    for (const auto value : silentWrites(documentA_, op))
      if (const auto other = pairs_.partner(Side::left, value))
        mixed_.try_emplace(other, Mixed{a.keep(value).clone(), op, {}});
    return;
  }
  if (!runs_[j]) return;
  auto& captured = captured_[i];
  for (const auto operand : documentA_.operands(op)) captured.operands.push_back(a.keep(operand));
}

void OwnErrors::after(const Lane& a) {
  const auto i = a.position() - 1;
  const auto op = a.op(i);
  for (const auto output : documentA_.outputs(op))
    if (wanted_.contains(output)) snapshots_[output] = a.keep(output);
  const auto j = answers_[i];
  if (j < 0) return;
  if (!runs_[j]) return;
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
  } else if (const auto other = forced(value)) {
    const auto operands = captured ? documentA_.operands(a_.joint.ops[partners_[j]]) : std::span<const ValueId>();
    if (slot < operands.size() && operands[slot] == other) found = captured->operands[slot];
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
    const auto i = partners_[j];
    if (i < 0 || !batchDiffers_) notJudged_.push_back({documentB_.opName(op), error.what()});
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

std::vector<at::Tensor> OwnErrors::inDouble(BoundSymbolId opA, const std::vector<at::Tensor>& operands) {
  const auto& bound = documentA_.boundSymbol(opA);
  if (std::ranges::any_of(documentA_.pattern(bound.pattern).arguments, hasDTypeLiteral)) return {};
  if (bound.effects & (effect::random | effect::opaque)) return {};
  const auto ids = documentA_.operands(opA);
  for (std::size_t slot = 0; slot < ids.size(); ++slot) {
    if (!ids[slot]) continue;
    if (slot >= operands.size() || !operands[slot].defined()) return {};
    const bool isReal = operands[slot].is_floating_point();
    if (!isReal && operands[slot].is_complex()) return {};
    evaluatorA_.bind(ids[slot], isReal ? operands[slot].to(at::kDouble).clone() : operands[slot]);
  }
  std::vector<at::Tensor> results;
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

/// In whose rounding a difference is measured: the first's, unless the runs compute in another precision altogether, or
/// the second's op got coarser operands from elsewhere.
DType OwnErrors::budgetType(std::size_t i, std::size_t j, const at::Tensor& a, const at::Tensor& b, bool isOwn) const {
  auto type = toDType(a.scalar_type());
  const auto other = toDType(b.scalar_type());
  if (isCoarse()) return coarser(coarser(type, other), coarser(baseA_, baseB_));
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
  const auto i = partners_[j];
  if (i < 0) {
    if (isRepeat_[j]) return;
    std::vector<at::Tensor> operands;
    if (b_.file.recording && !runsAsRecorded(*b_.file.recording, op) && documentB_.outputs(op).empty()) return;
    if (runAgain(j, nullptr, operands)) keepMixed(j);
  } else {
    const auto at = static_cast<std::size_t>(i);
    const auto found = captured_.find(at);
    const auto opA = a_.joint.ops[at];
    if (runs_[j] && found != captured_.end() && !isExplainedBySizes(opA, op)) {
      const bool isOpaque = b_.file.recording && !runsAsRecorded(*b_.file.recording, op);
      std::vector<at::Tensor> operands;
      if (isOpaque) notJudged_.push_back({documentB_.opName(op), "nobody can run it here"});
      else if (runAgain(j, &found->second, operands)) measure(at, j, found->second, operands);
    }
    ++judged_;
    // From here on the second has again what the first has.
    const auto written = silentWrites(documentB_, op);
    for (std::size_t k = 0; k < written.size(); ++k) {
      mixed_.erase(written[k]);
      if (!forced(written[k]) && found != captured_.end() && k < found->second.written.size())
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
  bool isOwn = here.size() == there.size() && !hasDynamicOperand(opB);
  for (std::size_t k = 0; isOwn && k < here.size(); ++k) isOwn = forced(there[k]) == here[k];
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
      const auto steps = (isCoarse() && digitsOf(type) < 24 ? 4.0 : 1.0) *
                         (1.0 + static_cast<double>(std::max(regions.a.size(), regions.b.size())));
      if (!exact) exact = inDouble(opA, captured.operands);
      const auto noiseOf = [&](const std::vector<at::Tensor>& right, const at::Tensor& of) {
        if (k >= right.size() || !right[k].defined() || right[k].sizes() != of.sizes()) return 0.0;
        const auto distance = differenceOf(of, right[k]);
        return distance.note.empty() ? distance.largest : 0.0;
      };
      const auto noise = noiseOf(*exact, x);
      double moved = 0;  // by the rounding of what it reads, as a rounding within the op would
      const bool isRounded = isOwn && documentB_.operands(opB).size() == operands.size() && (!sameType || isCoarse());
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
  if (!worst || worst->good()) return;
  blame(opA, opB, isOwn ? Regions() : regionsOf(opA, opB), *worst);
}

void OwnErrors::findEnds() {
  const auto &outputsA = a_.joint.outputs, &outputsB = b_.joint.outputs;
  // Of a recording the losses; gradients there have names.
  const bool isRecorded = a_.file.recording && b_.file.recording;
  const auto placedA = isRecorded ? a_.joint.resultCount : outputsA.size(),
             placedB = isRecorded ? b_.joint.resultCount : outputsB.size();
  if (placedA == placedB)
    for (std::size_t k = 0; k < placedA; ++k)
      if (outputsA[k] && outputsB[k]) ends_.push_back({outputsA[k], outputsB[k], isRecorded ? "the loss" : "a result"});
  if (isRecorded) {
    const auto namesOf = [](const Analysis& analysis) {
      IdVector<StorageId, ValueId> latest(analysis.document->storageCount());
      std::map<std::string, ValueId> named;
      for (const auto value : analysis.document->valueIds())
        if (const auto storage = analysis.document->value(value).storage) latest[storage] = value;
      const auto& recording = *analysis.file.recording;
      for (const auto& name : recording.names)
        if (name.role == "buffer") named["buffer " + name.name] = latest[name.storage];
      for (const auto& [name, value] : recording.gradients) named["gradient of " + name] = value;
      return named;
    };
    const auto namedA = namesOf(a_), namedB = namesOf(b_);
    for (const auto& [name, value] : namedA) {
      const auto found = namedB.find(name);
      ends_.push_back({value, found == namedB.end() ? ValueId() : found->second, name});
    }
    for (const auto& [name, value] : namedB)
      if (!namedA.contains(name)) ends_.push_back({{}, value, name});
  }
  for (const auto& end : ends_) {
    const auto other = forced(end.b);
    if (!end.a || !end.b || (other == end.a && !dynamicB_.contains(end.b))) continue;
    wanted_.insert(end.a);
    if (other) wanted_.insert(other);
  }
}

void OwnErrors::finish() {
  for (const auto& end : ends_) judgeEnd(end.a, end.b, end.name);
}

}  // namespace retrograd
