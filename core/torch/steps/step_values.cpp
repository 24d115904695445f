#include "core/torch/steps/step_values.h"

#include <algorithm>
#include <unordered_set>

#include "core/formats/recording/recording.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

bool isWithinBackward(Phase phase) {
  return phase == Phase::backward || phase == Phase::hook || phase == Phase::accumulation || phase == Phase::recompute;
}

}  // namespace

StepValues::StepValues(const Analysis& analysis, std::function<void(const BackwardSpan&)> over)
    : analysis_(analysis),
      document_(*analysis.document),
      recording_(*analysis.file.recording),
      over_(std::move(over)),
      until_(analysis.joint.ops.size(), 0),
      writes_(document_.storageCount()),
      kept_(analysis.joint.ops.size()) {
  const auto& ops = analysis.joint.ops;
  for (std::size_t i = 0; i < ops.size(); ++i)
    for (const auto operand : writtenOperands(document_, ops[i]))
      if (const auto storage = document_.value(operand).storage) writes_[storage].push_back(i);
  findSpans();
  findUntil();
}

void StepValues::findSpans() {
  const auto& ops = analysis_.joint.ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto& op = recording_.op(ops[i]);
    if (!isWithinBackward(op.phase)) continue;
    if (spans_.empty() || spans_.back().number != op.backward) spans_.push_back({op.backward, i, i});
    spans_.back().last = i;
  }
}

/// An op is asked for by the backward that follows it, and by each that has ops which belong to it.
void StepValues::findUntil() {
  const auto& ops = analysis_.joint.ops;
  std::size_t next = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    while (next < spans_.size() && spans_[next].last < i) ++next;
    if (next == spans_.size()) break;
    const auto phase = recording_.op(ops[i]).phase;
    if (phase != Phase::optimizer && phase != Phase::clip) until_[i] = spans_[next].last;
  }
  for (const auto& span : spans_)
    for (auto i = span.begin; i <= span.last; ++i)
      if (const auto from = document_.boundSymbol(ops[i]).origin.op; recording_.has(from)) {
        auto& until = until_[from.index];
        until = std::max(until, span.last);
      }
  keepWhatIsRead();
}

/// What an op reads is asked for as long as the op: a second forward goes on from the first one, or from a backward.
/// Parameters and buffers begin anew, and a value that was detached.
void StepValues::keepWhatIsRead() {
  const auto& ops = analysis_.joint.ops;
  std::unordered_set<StorageId> named;
  for (const auto& name : recording_.names) named.insert(name.storage);
  for (auto i = ops.size(); i-- > 0;) {
    const auto& op = recording_.op(ops[i]);
    if (until_[i] <= i || op.kept == false) continue;
    for (const auto operand : document_.operands(ops[i])) {
      const auto producer = operand ? document_.value(operand).producer : BoundSymbolId();
      if (!recording_.has(producer) || !document_.isTensor(operand)) continue;
      const bool isView = document_.boundSymbol(producer).effects & effect::view;
      if (!isView && named.contains(document_.value(operand).storage)) continue;
      const auto phase = recording_.op(producer).phase;
      if (phase == Phase::optimizer || phase == Phase::clip) continue;
      auto& until = until_[producer.index];
      until = std::max(until, until_[i]);
    }
  }
}

std::span<const std::size_t> StepValues::writesWithin(StorageId storage, std::size_t after, std::size_t until) const {
  if (!storage) return {};
  const auto& writes = writes_[storage];
  const auto begin = std::ranges::upper_bound(writes, after);
  return {begin, std::max(begin, std::ranges::upper_bound(writes, until))};
}

at::Tensor StepValues::now(ValueId id, std::size_t position, const Evaluator& evaluator) const {
  if (!evaluator.hasTensor(id)) return {};
  const auto& tensor = evaluator.value(id).toTensor();
  return writesWithin(document_.value(id).storage, position, until_[position]).empty() ? tensor : tensor.clone();
}

/// Operands that the op writes and gives back. What else it writes (the noise of rrelu) its backward reads as written.
std::vector<ValueId> StepValues::returnedWrites(BoundSymbolId op) const {
  const auto& symbol = document_.symbol(op);
  const auto& arguments = document_.pattern(document_.boundSymbol(op).pattern).arguments;
  const auto operands = document_.operands(op);
  std::vector<ValueId> found;
  for (const auto i : writtenArguments(symbol, arguments)) {
    const bool isReturned = symbol.returns.empty() || std::ranges::any_of(symbol.returns, [&](const SchemaEntry& one) {
                              return one.aliasSet >= 0 && one.aliasSet == symbol.arguments[i].aliasSet;
                            });
    if (isReturned && i < arguments.size())
      forEachOperand(arguments[i], [&](std::size_t hole) { found.push_back(operands[hole]); });
  }
  return found;
}

/// What the op is about to write over.
void StepValues::keepBefore(std::size_t position, const Evaluator& evaluator) {
  if (position >= kept_.size() || until_[position] <= position) return;
  const auto op = analysis_.joint.ops[position];
  const auto written = returnedWrites(op);
  if (written.empty()) return;
  kept_[position] = std::make_unique<OpTensors>();
  const auto operands = document_.operands(op);
  kept_[position]->operands.resize(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (std::ranges::find(written, operands[i]) != written.end() && evaluator.hasTensor(operands[i]))
      kept_[position]->operands[i] = evaluator.value(operands[i]).toTensor().clone();
}

void StepValues::keep(std::size_t position, const Evaluator& evaluator) {
  const auto op = analysis_.joint.ops[position];
  auto& kept = kept_[position];
  if (!kept) kept = std::make_unique<OpTensors>();
  const auto operands = document_.operands(op);
  kept->operands.resize(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!kept->operands[i].defined()) kept->operands[i] = now(operands[i], position, evaluator);
  for (const auto output : document_.outputs(op)) kept->outputs.push_back(now(output, position, evaluator));
}

void StepValues::ran(std::size_t position, const Evaluator& evaluator, const OpMeasure&) {
  if (until_[position] >= position && !spans_.empty() && until_[position] > 0) keep(position, evaluator);
  keepBefore(position + 1, evaluator);
  if (nextSpan_ >= spans_.size() || spans_[nextSpan_].last != position) return;
  over_(spans_[nextSpan_++]);
  for (std::size_t i = 0; i <= position; ++i)
    if (until_[i] <= position) kept_[i].reset();
}

}  // namespace retrograd
