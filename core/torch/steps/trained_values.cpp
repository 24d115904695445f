#include <algorithm>

#include "core/torch/steps/backward_walk.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

bool isReal(const Document& document, ValueId value) {
  return value && document.isTensor(value) && isDifferentiable(document.meta(value).dtype);
}

}  // namespace

TrainedValues::TrainedValues(const Analysis& analysis)
    : document_(*analysis.document), recording_(*analysis.file.recording), leads_(document_.valueCount(), 0) {
  const auto& recording = recording_;
  for (const auto& name : recording.names) names_.emplace(name.storage, &name);
  trained_.insert(recording.optimized.begin(), recording.optimized.end());
  for (const auto& op : recording.ops)
    if (op.accumulates) trained_.emplace(document_.text(op.accumulates));
  const auto begins = [&](ValueId value) {
    if (!isReal(document_, value)) return false;
    const auto named = names_.find(document_.value(value).storage);
    if (named == names_.end()) return trained_.empty() && !document_.value(value).producer;
    return named->second->isWeight() && (trained_.empty() || trained_.contains(named->second->name));
  };
  for (const auto input : analysis.joint.inputs)
    if (input) leads_[input] = begins(input);
  std::unordered_set<StorageId> written;  // with what leads to one, by way of another view
  for (const auto op : analysis.joint.ops) {
    const auto phase = recording.op(op).phase;
    const auto operands = document_.operands(op);
    for (const auto operand : operands)
      if (isReal(document_, operand) && written.contains(document_.value(operand).storage)) leads_[operand] = 1;
    const bool leads = phase != Phase::optimizer && phase != Phase::clip &&
                       std::ranges::any_of(operands, [&](ValueId operand) { return has(operand); });
    for (const auto output : document_.outputs(op)) {
      if (!isReal(document_, output)) continue;
      const bool isNamed = names_.contains(document_.value(output).storage);
      leads_[output] = isNamed && document_.value(output).version > 0 ? begins(output) : leads || begins(output);
      if (leads_[output] && !isNamed && !writtenOperands(document_, op).empty())
        written.insert(document_.value(output).storage);
    }
  }
}

const std::string* TrainedValues::parameter(ValueId value) const {
  const auto storage = value ? document_.value(value).storage : StorageId();
  const auto named = storage ? names_.find(storage) : names_.end();
  if (named == names_.end() || !named->second->isWeight()) return nullptr;
  const auto producer = document_.value(value).producer;
  const bool isView = producer && document_.boundSymbol(producer).effects & effect::view;
  const bool isGathered =
      named->second->role == "gathered" && recording_.has(producer) && recording_.op(producer).moves;
  return isView && !isGathered ? nullptr : &named->second->name;
}

std::vector<std::string> TrainedValues::behind(ValueId value) const {
  std::set<std::string> found;
  std::set<std::int32_t> seen;
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const auto next = open.back();
    open.pop_back();
    if (!has(next) || !seen.insert(next.index).second) continue;
    if (const auto* name = parameter(next)) {
      found.insert(*name);
      continue;
    }
    if (const auto producer = document_.value(next).producer)
      for (const auto operand : document_.operands(producer)) open.push_back(operand);
  }
  return {found.begin(), found.end()};
}

}  // namespace retrograd
