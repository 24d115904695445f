// Where a backward ends: parameters, hooks that write gradients, ops whose node had no op to run; and what a cut is.
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/torch/execution/statistics.h"
#include "core/torch/judging/compare.h"
#include "core/torch/session/recorded_hash.h"
#include "core/torch/steps/backward_walk.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/effects.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

constexpr double evenly = 1e-3;  ///< of the largest element: how far a gradient may be from a multiple of another

/// By what factor `actual` is `expected`; none for anything but a multiple.
std::optional<double> factorOf(const at::Tensor& actual, const at::Tensor& expected, double& average) {
  const auto a = asDoubles(copyOut(actual)), e = asDoubles(copyOut(expected));
  double both = 0, own = 0, most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += a[i] * e[i];
    own += e[i] * e[i];
    most = std::max(most, std::abs(a[i]));
  }
  if (!(own > 0)) return std::nullopt;
  average = both / own;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - average * e[i]) <= evenly * most)) return std::nullopt;
  return average;
}

}  // namespace

/// The custom Function whose forward an op is within; none for its backward, whose ops have nodes of their own if
/// asked.
StringId BackwardWalk::functionOf(BoundSymbolId op) const {
  const auto& recorded = recording_.op(op);
  return recorded.phase == Phase::backward ? StringId() : recorded.function;
}

/// Whether a value within the forward of a custom Function is none of its results.
bool BackwardWalk::isIntermediate(ValueId value) const {
  const auto producer = document_.value(value).producer;
  return recording_.has(producer) && functionOf(producer) && !ofOutside_.contains(value.index);
}

/// What a backward reads of the forward of its custom Function, other than inputs and results, has no history: the
/// second derivative ends there.
void BackwardWalk::markSaved(std::size_t position, ValueId value, Parts& parts) const {
  if (!functionOf(ops_[position]) || !isIntermediate(value)) return;
  for (auto& part : parts)
    if (!part.cut && recording_.has(part.source) && recording_.op(part.source).phase == Phase::backward)
      part.cut = part.source;
}

/// The op that begins the call of a custom Function which this one is within.
BoundSymbolId BackwardWalk::functionStart(std::size_t position) const {
  return ops_[functionBegin(recording_, ops_, position)];
}

GradientCut::Kind BackwardWalk::kindOf(BoundSymbolId cut) const {
  using Kind = GradientCut::Kind;
  const auto& recorded = recording_.op(cut);
  const bool isDifferentiated = recorded.hasNode || (recorded.function && document_.boundSymbol(cut).gradMode);
  if (recorded.phase == Phase::backward && isDifferentiated) return Kind::saved;
  if (functionOf(cut)) return Kind::function;
  if (hasTrait(document_.symbol(cut).name, OpTrait::detach)) return Kind::detach;
  return writtenOperands(document_, cut).empty() ? Kind::noGrad : Kind::inPlace;
}

/// An op whose node ran none: its gradient passes as it is, or nothing arrived there.
void BackwardWalk::goOnWithoutOps(std::size_t position, const std::vector<at::Tensor>& cotangents, const Parts& parts) {
  const auto outputs = document_.outputs(ops_[position]);
  const bool isWritten = std::ranges::any_of(parts, [&](const Part& part) {
    const auto written = part.source ? writtenOperands(document_, part.source) : std::vector<ValueId>();
    return std::ranges::find(written, outputs[0]) != written.end();
  });
  if (isWritten) return derive(position, cotangents, nullptr);  // a view whose node gave way to that of the write
  std::vector<char> wanted;
  const auto operands = document_.operands(ops_[position]);
  for (const auto operand : operands) wanted.push_back(trained_.has(operand));
  const auto found = derivatives_.of(ops_[position], *recomputed_.tensorsOf(position), wanted, cotangents);
  if (!found) {
    opinion_.notCompared.push_back({ops_[position], {}, derivatives_.refusal()});
    return;
  }
  if (found->passes) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (found->byOperand[i].defined())
        for (const auto& part : parts) addPart(operands[i], part);
    return;
  }
  std::size_t made = 0, all = 0;
  for (const auto& gradient : found->byOperand) {
    all += gradient.defined() ? 1 : 0;
    made += gradient.defined() && made_.contains(recordedHashOf(gradient)) ? 1 : 0;
  }
  const bool isCut = std::ranges::all_of(parts, [](const Part& part) { return static_cast<bool>(part.cut); });
  if (made > 0 && (made == all || !isCut)) return derive(position, cotangents, nullptr);
  for (const auto& part : parts)
    if (part.cut) addCut(kindOf(part.cut), part.cut, {}, part.tensor, document_.outputs(ops_[position])[0]);
}

/// The sum of what came to a parameter in several goes, as by a checkpoint within another's backward; undefined where
/// it came in one.
BackwardWalk::Candidate BackwardWalk::accumulatedInAll(const std::string& parameter) const {
  const auto found = accumulated_.find(parameter);
  Candidate whole;
  if (found == accumulated_.end() || found->second.size() < 2) return whole;
  std::set<std::int32_t> own;  // memory of the gradient so far
  for (const auto& name : recording_.names)
    if (name.role == "gradient" && name.name == parameter) own.insert(name.storage.index);
  for (const auto position : found->second) {
    std::vector<Candidate> read;
    collect(read, position, {});
    if (read.size() > 1)
      std::erase_if(read, [&](const Candidate& one) { return own.contains(document_.value(one.value).storage.index); });
    for (const auto output : document_.outputs(ops_[position]))
      if (output) own.insert(document_.value(output).storage.index);
    if (read.size() != 1 || (whole.tensor.defined() && whole.tensor.sizes() != read[0].tensor.sizes())) return {};
    whole.tensor = whole.tensor.defined() ? whole.tensor + read[0].tensor : read[0].tensor;
    whole.value = read[0].value;
  }
  return whole;
}

void BackwardWalk::finish(const std::string& parameter) {
  const auto& parts = leaves_[parameter];
  std::vector<Candidate> candidates;
  if (const auto found = accumulated_.find(parameter); found != accumulated_.end())
    for (const auto position : found->second) collect(candidates, position, {});
  if (const auto whole = accumulatedInAll(parameter); whole.tensor.defined())
    candidates.insert(candidates.begin(), whole);
  if (candidates.empty()) {
    for (const auto& part : parts)
      if (part.cut) addCut(kindOf(part.cut), part.cut, {}, part.tensor, leafValues_[parameter]);
    return;
  }
  const auto before = opinion_.compared;
  settle(parts, candidates, leafValues_[parameter], span_.last);
  if (opinion_.compared > before) opinion_.judged.insert(parameter);
  else opinion_.notJudged.try_emplace(parameter, "no derivative of the recorded forward leads to it");
}

/// A hook that runs after accumulation writes into `.grad`.
void BackwardWalk::hookWrote(std::size_t position) {
  if (recording_.op(ops_[position]).phase != Phase::hook) return;
  const auto* tensors = values_.at(position);
  const auto written = writtenOperands(document_, ops_[position]);
  const auto operands = document_.operands(ops_[position]);
  const auto outputs = document_.outputs(ops_[position]);
  if (!tensors || written.empty() || outputs.empty() || !outputs[0] || !tensors->outputs[0].defined()) return;
  const auto storage = document_.value(written[0]).storage;
  const auto named = std::ranges::find_if(
      recording_.names, [&](const RecordedName& one) { return one.storage == storage && one.role == "gradient"; });
  if (named == recording_.names.end()) return;
  const auto place = std::ranges::find(operands, written[0]) - operands.begin();
  const auto& before = tensors->operands[place];
  if (!before.defined() || recordedHashOf(before) == recordedHashOf(tensors->outputs[0])) return;
  addCut(GradientCut::Kind::hook, ops_[position], tensors->outputs[0], before, written[0]);
  auto& parameters = opinion_.cuts.back().parameters;
  if (std::ranges::find(parameters, named->name) == parameters.end()) parameters.push_back(named->name);
}

/// The first backward op of a custom Function's call, whose line is that of the formula.
BoundSymbolId BackwardWalk::backwardOf(BoundSymbolId function) const {
  const auto linked = linked_.find(function.index);
  return linked != linked_.end() && recording_.op(ops_[linked->second.front()]).function ? ops_[linked->second.front()]
                                                                                         : function;
}

/// The op of a custom Function's backward that made a gradient last, whose line is that of the statement.
BoundSymbolId BackwardWalk::madeBy(BoundSymbolId function, const at::Tensor& gradient) const {
  const auto linked = linked_.find(function.index);
  if (linked == linked_.end() || !isGradient(gradient)) return backwardOf(function);
  BoundSymbolId same, alike;
  const auto hash = recordedHashOf(gradient);
  for (const auto position : linked->second) {
    const auto op = ops_[position];
    const auto* tensors = values_.at(position);
    if (!tensors || !recording_.op(op).function || (document_.boundSymbol(op).effects & effect::view)) continue;
    for (const auto& output : tensors->outputs) {
      if (!isGradient(output) || output.sizes() != gradient.sizes()) continue;
      alike = op;
      if (recordedHashOf(output) == hash) same = op;
    }
  }
  return same ? same : alike ? alike : backwardOf(function);
}

/// `actual`: undefined where no gradient went on.
void BackwardWalk::addCut(GradientCut::Kind kind, BoundSymbolId op, const at::Tensor& actual,
                          const at::Tensor& expected, ValueId value, std::string because) {
  if (expected.defined() && largestOf(expected) == 0 && !actual.defined()) return;
  GradientCut cut{.kind = kind, .op = op, .because = std::move(because), .backward = span_.number};
  const auto& recorded = recording_.op(op);
  const bool byFunction = kind == GradientCut::Kind::function;
  cut.name = document_.text(byFunction ? recorded.function : recorded.hook ? recorded.hook : recorded.function);
  if (kind == GradientCut::Kind::builtin || cut.name.empty()) cut.name = document_.symbol(op).name;
  cut.at = byFunction ? madeBy(op, actual) : op;
  cut.line = recordedLine(document_, cut.at);
  if (kind == GradientCut::Kind::noGrad && recorded.phase == Phase::backward && !document_.boundSymbol(op).gradMode) {
    cut.line = recordedLine(document_, recorded.called);
    cut.name = "backward";
    cut.because = "this backward ran without create_graph, so its gradients are constants for the next one";
  }
  if (byFunction) {
    const auto* parameter = trained_.parameter(value);
    const auto producer = document_.value(value).producer;
    if (parameter) cut.because = "in the gradient of " + *parameter;
    else if (producer)
      cut.because =
          fmt::format("in the gradient of what {} made{}{}", document_.symbol(producer).name,
                      recordedLine(document_, producer).empty() ? "" : " at ", recordedLine(document_, producer));
  }
  if (kind == GradientCut::Kind::saved)
    cut.because =
        "it keeps a value of its forward that has no history, so the second derivative lacks what goes through it";
  cut.parameters = trained_.behind(value);
  if (!actual.defined()) {
    cut.factor = 0;
    cut.deviation = cut.scale = expected.defined() ? largestOf(expected) : 0;
  } else {
    double average = 0;
    cut.factor = factorOf(actual, expected, average);
    const auto found = difference(copyOut(actual), copyOut(expected), true);
    cut.deviation = found.deviation;
    cut.scale = found.scale;
    cut.nonFinite = hasBadNumber(actual) && !hasBadNumber(expected);
    if (!cut.factor)
      cut.off = found.failure.empty() ? fmt::format(
                                            "off by {:.2g} where the largest element is {:.2g}, {:.2g} times the "
                                            "derivative on average",
                                            found.deviation, found.scale, average)
                                      : found.failure;
  }
  for (auto& one : opinion_.cuts)
    if (one.kind == cut.kind && one.name == cut.name && one.line == cut.line) {
      for (const auto& parameter : cut.parameters)
        if (std::ranges::find(one.parameters, parameter) == one.parameters.end()) one.parameters.push_back(parameter);
      one.nonFinite |= cut.nonFinite;
      return;
    }
  opinion_.cuts.push_back(std::move(cut));
}

}  // namespace retrograd
