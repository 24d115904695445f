#include "core/questions/nan_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/trace/effects.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

/// Results are read behind the last op.
std::size_t endOf(const Analysis& analysis) { return analysis.joint.ops.size(); }

class Walker {
 public:
  Walker(const Analysis& analysis, const RunRecord& record)
      : document_(*analysis.document), record_(record), faults_(analysis, record), end_(endOf(analysis)) {
    for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i) {
      const auto op = analysis.joint.ops[i];
      positions_.emplace(op.index, i);
      for (auto output : document_.outputs(op))
        if (output) makers_.emplace(output.index, op);
      if (document_.boundSymbol(op).effects & effect::writes)
        for (auto operand : writtenOperands(document_, op))
          if (const auto storage = document_.value(operand).storage) writers_[storage].push_back(op);
    }
  }

  /// From `value` as it was read at `position`.
  NanWalk run(ValueId value, std::size_t position) {
    meant_ = !faults_.isFault(value, position);  // who asks for a mask is shown where it is from
    const std::pair start(value, position);
    std::set<std::pair<ValueId, BoundSymbolId>> seen;
    for (;;) {
      const auto statistics = record_.asRead(value, position).statistics;
      const auto op = sourceOf(value, position);
      if (!seen.emplace(value, op).second) break;
      walk_.path.push_back({op, value, statistics});
      if (!op) break;  // an input is bad itself
      const auto next = badOperand(op, statistics.nan > 0);
      if (!next) {
        atRoot(op);
        break;
      }
      value = next;
      position = positionOf(op);
    }
    addOtherRoots({start});
    return std::move(walk_);
  }

  /// The same, with the roots of further values as they are at the end of the run.
  NanWalk run(ValueId value, std::size_t position, const std::vector<ValueId>& others) {
    auto walk = run(value, position);
    walk_ = std::move(walk);
    std::vector<std::pair<ValueId, std::size_t>> starts{{value, position}};
    for (auto other : others) starts.emplace_back(other, end_);
    addOtherRoots(std::move(starts));
    return std::move(walk_);
  }

 private:
  std::size_t positionOf(BoundSymbolId op) const {
    const auto found = positions_.find(op.index);
    return found == positions_.end() ? 0 : found->second;
  }

  BoundSymbolId makerOf(ValueId value) const {
    const auto maker = makers_.find(value.index);
    return maker == makers_.end() ? BoundSymbolId() : maker->second;
  }

  /// Whether what the op left in that memory was bad, by its outputs there.
  bool leftBad(BoundSymbolId writer, StorageId storage) const {
    const auto outputs = document_.outputs(writer);
    return std::any_of(outputs.begin(), outputs.end(), [&](ValueId output) {
      return output && document_.value(output).storage == storage && record_.of(output).bad();
    });
  }

  /// The op whose content it had when it was read at `position`: the last that wrote something bad to its memory since
  /// it was made, else the one that made it; none for an input.
  BoundSymbolId sourceOf(ValueId value, std::size_t position) const {
    const auto maker = makerOf(value);
    if (!record_.readLater.contains({position, value})) return maker;
    const auto storage = document_.value(value).storage;
    const auto writers = writers_.find(storage);
    if (writers == writers_.end()) return maker;
    BoundSymbolId last;
    for (auto writer = writers->second.rbegin(); writer != writers->second.rend(); ++writer) {
      const auto at = positionOf(*writer);
      if (at >= position) continue;
      if (maker && at <= positionOf(maker)) break;
      if (leftBad(*writer, storage)) return *writer;
      if (!last) last = *writer;
    }
    return last && !record_.of(value).bad() ? last : maker;
  }

  bool isFault(ValueId value, std::size_t position) const {
    return meant_ ? record_.asRead(value, position).bad() : faults_.isFault(value, position);
  }

  /// What the op read of NaN or infinities.
  std::vector<ValueId> badOperands(BoundSymbolId op) const {
    const auto position = positionOf(op);
    std::vector<ValueId> bad;
    const auto operands = document_.operands(op);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (!operands[k] || !isFault(operands[k], position) ||
          (k == 0 && hasTrait(document_.symbol(op).name, OpTrait::fillsWhole)))
        continue;
      const auto source = sourceOf(operands[k], position);
      if (!source || !leavesUninitialised(document_, source)) bad.push_back(operands[k]);
    }
    return bad;
  }

  /// An operand with NaN where NaN is walked after; else one with infinities, which the op then turned to NaN.
  ValueId badOperand(BoundSymbolId op, bool wantNan) {
    const auto bad = badOperands(op);
    if (bad.empty()) return {};
    if (!wantNan) return bad.front();
    const auto position = positionOf(op);
    const auto nan = std::find_if(
        bad.begin(), bad.end(), [&](ValueId operand) { return record_.asRead(operand, position).statistics.nan > 0; });
    if (nan != bad.end()) return *nan;
    if (!walk_.nanFrom) walk_.nanFrom = op;
    return bad.front();
  }

  void atRoot(BoundSymbolId op) {
    walk_.root = op;
    const auto operands = document_.operands(op);
    walk_.operands.assign(operands.begin(), operands.end());
    walk_.forward = OriginLinks::origin(document_, op);
    walk_.explanation = explain(op);
  }

  /// Every root that bad values lead to, but the walk's own and those of the same computation op.
  void addOtherRoots(std::vector<std::pair<ValueId, std::size_t>> open) {
    std::set<std::pair<ValueId, BoundSymbolId>> seen;
    std::map<std::size_t, NanRoot> roots;  // by position, what comes in first
    while (!open.empty()) {
      const auto [value, position] = open.back();
      open.pop_back();
      const auto op = sourceOf(value, position);
      if (!seen.emplace(value, op).second) continue;
      const auto bad = op ? badOperands(op) : std::vector<ValueId>();
      for (auto operand : bad) open.emplace_back(operand, positionOf(op));
      if (!bad.empty()) continue;
      NanRoot root{op, value, record_.asRead(value, position).statistics, {}, {}};
      if (op) {
        root.forward = OriginLinks::origin(document_, op);
        root.explanation = explain(op);
      }
      roots.emplace(op ? end_ + positionOf(op) : static_cast<std::size_t>(value.index), std::move(root));
    }
    std::set<BoundSymbolId> known;
    if (walk_.root) known.insert(walk_.forward ? walk_.forward : walk_.root);
    walk_.otherRoots.clear();
    for (auto& [place, root] : roots) {
      const bool isOwn = root.op ? root.op == walk_.root : !walk_.root && root.value == walk_.path.back().value;
      if (isOwn || (root.op && !known.insert(root.forward ? root.forward : root.op).second)) continue;
      walk_.otherRoots.push_back(std::move(root));
    }
  }

  /// Points at what usually does it: zeros (divided by, logarithm of), negative numbers under a root or logarithm,
  /// numbers near the end of the dtype.
  std::string explain(BoundSymbolId op) const {
    const auto position = positionOf(op);
    const auto& symbol = document_.symbol(op);
    const auto& arguments = document_.pattern(document_.boundSymbol(op).pattern).arguments;
    std::string text;
    const auto operands = document_.operands(op);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const auto entry = record_.asRead(operands[k], position);
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
  const Faults faults_;
  const std::size_t end_;
  bool meant_ = false;
  std::map<std::int32_t, BoundSymbolId> makers_;
  std::map<std::int32_t, std::size_t> positions_;
  std::map<StorageId, std::vector<BoundSymbolId>> writers_;
  NanWalk walk_;
};

/// What a run gives: outputs of the forward, gradients, and what it left in memory that it was given.
struct BadResults {
  std::vector<ValueId> outputs, gradients, written;

  BadResults(const Analysis& analysis, const RunRecord& record) {
    const Faults faults(analysis, record);
    const auto end = endOf(analysis);
    const auto& all = analysis.joint.outputs;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto entry = record.asRead(all[i], end);
      if (!all[i] || !entry.bad()) continue;
      const bool isGradient = i >= analysis.joint.resultCount;
      // A loss or a gradient is never meant to be infinite, whatever masks lead to it.
      if (isGradient || entry.statistics.elements == 1 || faults.isFault(all[i], end))
        (isGradient ? gradients : outputs).push_back(all[i]);
    }
    for (const auto& [input, value] : analysis.mutated)
      if (value && faults.isFault(value, end)) written.push_back(value);
  }

  ValueId toExplain() const {
    if (!outputs.empty()) return outputs.front();
    if (!gradients.empty()) return gradients.back();
    return written.empty() ? ValueId() : written.front();
  }
};

/// The end of the run for what is bad there; else when it was made, or when it was first read so.
std::size_t whenBad(const RunRecord& record, ValueId value, std::size_t end) {
  if (record.asRead(value, end).bad()) return end;
  for (const auto& [at, statistics] : record.readLater)
    if (at.second == value && statistics.nan + statistics.inf > 0) return at.first;
  return 0;
}

}  // namespace

NanWalk walkToRoot(const Analysis& analysis, const RunRecord& record, ValueId value) {
  if (!record.of(value).recorded) badUse("the run did not compute it", analysis.document->displayName(value));
  const auto at = whenBad(record, value, endOf(analysis));
  if (!record.asRead(value, at).bad()) badUse("all its elements are finite", analysis.document->displayName(value));
  return Walker(analysis, record).run(value, at);
}

NanWalk walkToRoots(const Analysis& analysis, const RunRecord& record) {
  const BadResults results(analysis, record);
  const auto value = results.toExplain();
  if (!value) {
    const auto first = firstBadValue(analysis, record);
    return first ? walkToRoot(analysis, record, first) : NanWalk();
  }
  auto all = results.outputs;
  for (const auto* more : {&results.gradients, &results.written}) all.insert(all.end(), more->begin(), more->end());
  return Walker(analysis, record).run(value, endOf(analysis), all);
}

ValueId firstBadValue(const Analysis& analysis, const RunRecord& record) {
  const auto& document = *analysis.document;
  const Faults faults(analysis, record);
  for (auto id : analysis.joint.inputs)
    if (faults.isFault(id)) return id;
  for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i) {
    const auto op = analysis.joint.ops[i];
    if (leavesUninitialised(document, op)) continue;
    for (auto output : document.outputs(op))
      if (faults.isFault(output)) return output;
  }
  return {};
}

Faults::Faults(const Analysis& analysis, const RunRecord& record)
    : record_(record), intended_(analysis, [&](ValueId input) {
        const auto& entry = record.of(input);
        return !entry.recorded || entry.bad();
      }) {
  const auto& document = *analysis.document;
  for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i) {
    const auto op = analysis.joint.ops[i];
    const auto operands = document.operands(op);
    const auto makesInfinities = [&] {
      return !hasInfiniteLiteral(document, op) && std::none_of(operands.begin(), operands.end(), [&](ValueId operand) {
        return operand && record.asRead(operand, i).bad();
      });
    };
    for (auto output : document.outputs(op))
      if (output && record.of(output).bad() && intended_.mayHold(output) && makesInfinities())
        overflowed_.insert(output);
  }
}

bool Faults::isFault(ValueId value, std::size_t position) const {
  if (!value) return false;
  const auto entry = record_.asRead(value, position);
  return entry.bad() && (intended_.isFault(value, entry.statistics) || overflowed_.contains(value));
}

}  // namespace retrograd
