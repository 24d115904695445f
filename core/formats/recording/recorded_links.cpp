#include "core/formats/recording/recorded_links.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace retrograd {
namespace {

BoundSymbolId at(std::size_t index) { return BoundSymbolId(static_cast<std::int32_t>(index)); }

/// Whether an op's node gives the gradient on as it is, without an op of its own.
bool givesOn(std::string_view name) {
  constexpr std::array names{"aten.add.Tensor", "aten.add_.Tensor", "aten.clone.default", "aten.alias.default"};
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

bool isAliasOfAutograd(const Document& document, const StepRecording& recording, BoundSymbolId op) {
  if (op.index <= 0 || document.symbol(op).name != "aten.detach.default") return false;
  const BoundSymbolId before(op.index - 1);
  const auto &own = document.boundSymbol(op), &other = document.boundSymbol(before);
  const auto made = document.outputs(before), read = document.operands(op);
  const bool isKept = recording.op(op).kept.value_or(own.source == other.source && own.module == other.module);
  return isKept && recording.op(before).hasNode && !read.empty() && std::ranges::find(made, read[0]) != made.end();
}

RecordedLinks::RecordedLinks(const Document& document, const StepRecording& recording)
    : document_(document), recording_(recording), leads_(document.valueCount(), 0) {
  link();
  findLeading();
  findGradients();
}

bool RecordedLinks::isForward(BoundSymbolId op) const {
  const auto phase = recording_.op(op).phase;
  return phase == Phase::forward || phase == Phase::loss || phase == Phase::other;
}

bool RecordedLinks::isSeen(BoundSymbolId op) const {
  return document_.boundSymbol(op).gradMode || recording_.op(op).function || repeated_.contains(op.index);
}

bool RecordedLinks::isAlias(BoundSymbolId op) const { return isAliasOfAutograd(document_, recording_, op); }

BoundSymbolId RecordedLinks::callOf(BoundSymbolId op) const {
  const auto function = recording_.op(op).function;
  auto start = op;
  while (function && start.index > 0 && !recording_.op(start).hasNode &&
         recording_.op(BoundSymbolId(start.index - 1)).function == function)
    --start.index;
  return start;
}

std::span<const BoundSymbolId> RecordedLinks::backward(BoundSymbolId op) const {
  for (const auto one : {op, callOf(op), repeated_.contains(op.index) ? repeated_.at(op.index) : op})
    if (const auto found = linked_.find(one.index); found != linked_.end()) return found->second;
  return {};
}

void RecordedLinks::link() {
  for (std::size_t i = 0; i < recording_.ops.size(); ++i) {
    const auto op = at(i);
    const auto& recorded = recording_.op(op);
    const auto from = document_.boundSymbol(op).origin.op;
    if (recorded.phase == Phase::recompute && recording_.has(from) && document_.boundSymbol(op).gradMode)
      repeated_[from.index] = op;
    if (recorded.phase == Phase::backward && recording_.has(from) && from != op) {
      auto& linked = linked_[from.index];
      if (!linked.empty() && recording_.op(linked.back()).backward != recorded.backward) linked.clear();
      linked.push_back(op);
    }
    if (!isForward(op) || isAlias(op) || !(recorded.hasNode || recorded.function)) continue;
    for (const auto operand : document_.operands(op))
      if (operand) readers_[ownOf(operand).index].push_back(op);
  }
}

void RecordedLinks::findLeading() {
  for (const auto loss : recording_.losses) leads_[loss] = 1;
  for (auto i = recording_.ops.size(); i-- > 0;) {
    const auto op = at(i);
    if (!isForward(op)) continue;
    const auto outputs = document_.outputs(op);
    const bool leads =
        !backward(op).empty() || std::ranges::any_of(outputs, [&](ValueId output) { return leadsToLoss(output); });
    if (!leads) continue;
    for (const auto operand : document_.operands(op))
      if (operand) leads_[operand] = 1;
  }
}

/// The value that autograd keeps under another name.
ValueId RecordedLinks::ownOf(ValueId value) const {
  const auto producer = document_.value(value).producer;
  return recording_.has(producer) && isAlias(producer) ? document_.operands(producer)[0] : value;
}

bool RecordedLinks::hasSizes(ValueId value, ValueId gradient) const {
  if (!value || !gradient || !document_.isTensor(value) || !document_.isTensor(gradient)) return false;
  const auto &own = document_.meta(value), &other = document_.meta(gradient);
  return isDifferentiable(own.dtype) && isDifferentiable(other.dtype) && own.sizes == other.sizes;
}

/// Made by a backward, or what it began with.
bool RecordedLinks::isOfBackward(ValueId value) const {
  const auto producer = document_.value(value).producer;
  if (!recording_.has(producer)) return false;
  const auto& recorded = recording_.op(producer);
  if (recorded.phase == Phase::backward || recorded.phase == Phase::hook || recorded.phase == Phase::accumulation)
    return true;
  return document_.symbol(producer).name == "aten.ones_like.default" && !recorded.hasNode;
}

/// What the derivative of an op read as the gradient of its result; none where it is not one alone.
ValueId RecordedLinks::readFor(BoundSymbolId op, ValueId output) const {
  std::set<ValueId> found, own;
  std::set<StorageId> forward;
  for (const auto values : {document_.operands(op), document_.outputs(op)})
    for (const auto value : values)
      if (value && document_.isTensor(value)) forward.insert(document_.value(value).storage);
  for (const auto linked : backward(op)) {
    for (const auto operand : document_.operands(linked))
      if (operand && !own.contains(operand) && isOfBackward(operand) && hasSizes(output, operand) &&
          !forward.contains(document_.value(operand).storage))
        found.insert(operand);
    for (const auto made : document_.outputs(linked)) own.insert(made);
  }
  return found.size() == 1 ? *found.begin() : ValueId();
}

/// What the derivative of an op made for one of its operands; none where another could be meant.
ValueId RecordedLinks::madeFor(BoundSymbolId op, ValueId operand) const {
  std::set<ValueId> read, found;
  const auto linked = backward(op);
  for (const auto one : linked)
    for (const auto value : document_.operands(one))
      if (value) read.insert(value);
  for (const auto one : linked)
    for (const auto made : document_.outputs(one))
      if (made && !read.contains(made) && hasSizes(operand, made)) found.insert(made);
  const auto alike =
      std::ranges::count_if(document_.operands(op), [&](ValueId other) { return hasSizes(operand, other); });
  return found.size() == 1 && alike == 1 ? *found.begin() : ValueId();
}

/// From the end, as a value's gradient is what the ops that read it made, or passed on where their node ran no op; then
/// from the begin, where only the op that made a value knows the sum.
void RecordedLinks::findGradients() {
  const auto know = [&](ValueId value, ValueId gradient) {
    if (value && gradient) gradients_.try_emplace(value, gradient);
  };
  const auto known = [&](ValueId value) {
    const auto found = gradients_.find(value);
    return found == gradients_.end() ? ValueId() : found->second;
  };
  const auto passes = [&](BoundSymbolId op) {
    return recording_.op(op).hasNode && backward(op).empty() && givesOn(document_.symbol(op).name);
  };
  const auto count = recording_.ops.size();
  for (auto i = count; i-- > 0;) {
    const auto op = at(i);
    if (!isForward(op)) continue;
    for (const auto output : document_.outputs(op)) {
      if (!output || !document_.isTensor(output)) continue;
      if (isAlias(op)) continue;
      know(output, readFor(op, output));
      const auto readers = readers_.find(output.index);
      if (known(output) || readers == readers_.end() || readers->second.size() != 1) continue;
      const auto reader = readers->second.front();
      const auto read = std::ranges::find_if(document_.operands(reader),
                                             [&](ValueId operand) { return operand && ownOf(operand) == output; });
      const auto passed = passes(reader) ? known(document_.outputs(reader)[0]) : ValueId();
      know(output, passed && hasSizes(output, passed) ? passed : madeFor(reader, *read));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto op = at(i);
    if (!isForward(op)) continue;
    const auto outputs = document_.outputs(op);
    if (isAlias(op)) {
      know(outputs[0], known(document_.operands(op)[0]));
    } else if (passes(op) && !known(outputs[0])) {
      for (const auto operand : document_.operands(op)) {
        const auto readers = operand ? readers_.find(ownOf(operand).index) : readers_.end();
        const auto gradient = operand ? known(ownOf(operand)) : ValueId();
        if (readers != readers_.end() && readers->second.size() == 1 && hasSizes(outputs[0], gradient))
          know(outputs[0], gradient);
      }
    }
  }
}

}  // namespace retrograd
