#include "core/questions/nan_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/questions/intended_infinities.h"

namespace retrograd {
namespace {

class Walker {
 public:
  Walker(const Analysis& analysis, const RunRecord& record)
      : document_(*analysis.document), record_(record), intended_(analysis) {
    for (auto op : analysis.joint.ops)
      for (auto output : document_.outputs(op))
        if (output && !makers_.contains(output.index)) makers_[output.index] = op;
  }

  NanWalk run(ValueId value) {
    if (!record_.of(value).recorded)
      throw Error(ErrorCode::badUse, "the run did not compute it", document_.displayName(value));
    if (!record_.of(value).bad())
      throw Error(ErrorCode::badUse, "all its elements are finite", document_.displayName(value));
    const bool meant = !isFault(value);  // who asks for a mask is shown where it is from
    std::set<ValueId> seen;
    while (seen.insert(value).second) {
      const auto maker = makers_.find(value.index);
      const auto op = maker == makers_.end() ? BoundSymbolId() : maker->second;
      walk_.path.push_back({op, value, record_.of(value).statistics});
      if (!op) return std::move(walk_);  // an input is bad itself
      const auto next = badOperand(op, record_.of(value).statistics.nan > 0, meant);
      if (!next) {
        atRoot(op);
        break;
      }
      value = next;
    }
    return std::move(walk_);
  }

 private:
  bool isFault(ValueId value) const {
    return record_.of(value).recorded && intended_.isFault(value, record_.of(value).statistics);
  }

  /// An operand with NaN where NaN is walked after; else one with infinities, which the op then turned to NaN.
  ValueId badOperand(BoundSymbolId op, bool wantNan, bool meant) {
    ValueId infinite;
    for (auto operand : document_.operands(op)) {
      if (!operand || !record_.of(operand).bad() || !(meant || isFault(operand)) || fromUninitialised(operand))
        continue;
      if (wantNan && record_.of(operand).statistics.nan > 0) return operand;
      if (!infinite) infinite = operand;
    }
    if (infinite && wantNan && !walk_.nanFrom) walk_.nanFrom = op;
    return infinite;
  }

  bool fromUninitialised(ValueId value) const {
    const auto maker = makers_.find(value.index);
    return maker != makers_.end() && leavesUninitialised(document_, maker->second);
  }

  void atRoot(BoundSymbolId op) {
    walk_.root = op;
    const auto operands = document_.operands(op);
    walk_.operands.assign(operands.begin(), operands.end());
    walk_.forward = OriginLinks::origin(document_, op);
    walk_.explanation = explain(op);
  }

  /// Points at what usually does it: zeros (divided by, logarithm of), negative numbers under a root or logarithm,
  /// numbers near the end of the dtype.
  std::string explain(BoundSymbolId op) const {
    const auto& symbol = document_.symbol(document_.boundSymbol(op).symbol);
    const auto& arguments = document_.pattern(document_.boundSymbol(op).pattern).arguments;
    std::string text;
    const auto operands = document_.operands(op);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const auto& entry = record_.of(operands[k]);
      if (!entry.recorded) continue;
      std::string argument = document_.displayName(operands[k]);
      for (std::size_t i = 0; i < arguments.size() && i < symbol.arguments.size(); ++i)
        if (arguments[i].kind == Argument::Kind::operand && arguments[i].integer == static_cast<std::int64_t>(k))
          argument = symbol.arguments[i].name;
      const auto& s = entry.statistics;
      std::vector<std::string> facts;
      if (s.inf > 0)
        facts.push_back(fmt::format("{} of {} elements are infinite, as the model masks them", s.inf, s.elements));
      if (s.zeros > 0) facts.push_back(fmt::format("{} of {} elements are 0", s.zeros, s.elements));
      if (s.min < 0) facts.push_back(fmt::format("least {:.3g}", s.min));
      if (std::max(std::abs(s.min), std::abs(s.max)) > 1e4)
        facts.push_back(fmt::format("largest {:.3g}", std::max(std::abs(s.min), std::abs(s.max))));
      if (facts.empty()) continue;
      text += fmt::format("{}{}: ", text.empty() ? "" : "; ", argument);
      for (std::size_t i = 0; i < facts.size(); ++i) text += (i ? ", " : "") + facts[i];
    }
    return text;
  }

  const Document& document_;
  const RunRecord& record_;
  const IntendedInfinities intended_;
  std::map<std::int32_t, BoundSymbolId> makers_;
  NanWalk walk_;
};

}  // namespace

NanWalk walkToRoot(const Analysis& analysis, const RunRecord& record, ValueId value) {
  return Walker(analysis, record).run(value);
}

ValueId badValueToExplain(const Analysis& analysis, const RunRecord& record) {
  const IntendedInfinities intended(analysis);
  const auto& outputs = analysis.joint.outputs;
  const auto isBad = [&](ValueId value) {
    return value && record.of(value).recorded && intended.isFault(value, record.of(value).statistics);
  };
  const auto results =
      outputs.begin() + static_cast<std::ptrdiff_t>(std::min(analysis.joint.resultCount, outputs.size()));
  if (const auto found = std::find_if(outputs.begin(), results, isBad); found != results) return *found;
  if (const auto found = std::find_if(outputs.rbegin(), std::make_reverse_iterator(results), isBad);
      found != std::make_reverse_iterator(results))
    return *found;
  return firstBadValue(analysis, record);
}

ValueId firstBadValue(const Analysis& analysis, const RunRecord& record) {
  const auto& document = *analysis.document;
  const IntendedInfinities intended(analysis);
  const auto isBad = [&](ValueId value) {
    return value && record.of(value).recorded && intended.isFault(value, record.of(value).statistics);
  };
  for (auto id : analysis.joint.inputs)
    if (isBad(id)) return id;
  for (auto op : analysis.joint.ops) {
    if (leavesUninitialised(document, op)) continue;
    for (auto output : document.outputs(op))
      if (isBad(output)) return output;
  }
  return {};
}

}  // namespace retrograd
