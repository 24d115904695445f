#include "core/trace/diff/trace_diff.h"

#include <algorithm>

#include "core/trace/diff/alignment.h"

namespace retrograd {
namespace {

/// Values that a trace keeps for its backward, by value; empty where the trace does not say.
IdVector<ValueId, bool> keptBy(const Document& document, const Trace& trace) {
  IdVector<ValueId, bool> kept;
  const auto keep = [&](ValueId value) {
    if (value) kept[value] = true;
  };
  if (trace.kind == TraceKind::forward) {
    kept.assign(document.valueCount(), false);
    for (auto i = trace.resultCount; i < trace.outputs.size(); ++i) keep(trace.outputs[i]);
  } else if (trace.kind == TraceKind::joint) {
    kept.assign(document.valueCount(), false);
    IdVector<ValueId, bool> made(document.valueCount(), false);
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
      if (i < trace.forwardCount) {
        for (auto output : document.outputs(trace.ops[i]))
          if (output) made[output] = true;
      } else {
        for (auto operand : document.operands(trace.ops[i]))
          if (operand && made[operand]) keep(operand);
      }
    }
  }
  return kept;
}

/// Of a computation op the derived op that makes its result: the last of its forward ops. By computation op.
IdVector<BoundSymbolId, BoundSymbolId> makersIn(const Document& document, const Trace& trace) {
  IdVector<BoundSymbolId, BoundSymbolId> makers(document.boundSymbolCount());
  for (auto op : trace.ops)
    if (const auto& origin = document.boundSymbol(op).origin; origin.role == Role::forward && origin.op)
      makers[origin.op] = op;
  return makers;
}

class Differ {
 public:
  Differ(const DiffSide& left, const DiffSide& right, const Progress& progress)
      : pairs_(std::make_shared<OpPairs>(left, right, progress)), progress_(progress) {
    diff_.left = left;
    diff_.right = right;
    diff_.leftLines = linesOf(*left.document, *left.trace);
    diff_.rightLines = linesOf(*right.document, *right.trace);
    diff_.kept = {keptBy(*left.document, *left.trace), keptBy(*right.document, *right.trace)};
  }

  TraceDiff run() {
    inputs();
    ops();
    results();
    count();
    diff_.pairs = pairs_;
    return std::move(diff_);
  }

 private:
  using Kind = DiffRow::Kind;
  using Part = DiffRow::Part;
  const Document& leftDocument() const { return *diff_.left.document; }
  const Document& rightDocument() const { return *diff_.right.document; }

  void add(Part part, Kind kind, std::int32_t left, std::int32_t right, std::uint16_t changes = 0) {
    diff_.rows.push_back({part, kind, changes, left, right, -1});
  }

  // --- ops

  /// Places on the right of what is on the left; -1 where nothing matches it.
  std::vector<std::int32_t> partners() {
    const auto &left = diff_.leftLines.ops, &right = diff_.rightLines.ops;
    IdVector<BoundSymbolId, std::int32_t> place(rightDocument().boundSymbolCount(), -1);
    std::vector<std::int32_t> found(left.size(), -1);
    for (std::size_t j = 0; j < right.size(); ++j) place[right[j]] = static_cast<std::int32_t>(j);
    const bool leftIsOwn = diff_.left.trace->kind == TraceKind::computation,
               rightIsOwn = diff_.right.trace->kind == TraceKind::computation;
    // Next to a derived trace, a computation's op represents the derived op that makes its result.
    const auto makers = leftIsOwn == rightIsOwn ? IdVector<BoundSymbolId, BoundSymbolId>()
                        : leftIsOwn             ? makersIn(rightDocument(), *diff_.right.trace)
                                                : makersIn(leftDocument(), *diff_.left.trace);
    for (std::size_t i = 0; i < left.size(); ++i) {
      auto other = pairs_->partner(Side::left, left[i]);
      if (leftIsOwn && !rightIsOwn) {
        other = other ? makers[other] : other;
      } else if (rightIsOwn && !leftIsOwn) {
        const auto origin = leftDocument().boundSymbol(left[i]).origin.op;
        other = origin && makers[origin] == left[i] ? pairs_->partner(Side::left, origin) : BoundSymbolId();
      }
      if (other) found[i] = place[other];
    }
    return found;
  }

  void ops() {
    const auto partner = partners();
    std::vector<std::int32_t> lefts, rights;
    for (std::size_t i = 0; i < partner.size(); ++i)
      if (partner[i] >= 0) lefts.push_back(static_cast<std::int32_t>(i)), rights.push_back(partner[i]);
    std::vector<std::int32_t> answers(diff_.rightLines.ops.size(), -1);
    for (std::size_t k = 0; k < lefts.size(); ++k) answers[rights[k]] = lefts[k];
    std::int32_t i = 0, j = 0;
    std::vector<std::int32_t> rowOfMoved(partner.size(), -1);
    const auto upTo = [&](std::int32_t endLeft, std::int32_t endRight) {
      for (; i < endLeft; ++i) {
        const auto other = partner[i];
        if (other < 0) add(Part::op, Kind::onlyLeft, i, -1);
        else moved(Kind::movedAway, i, other, rowOfMoved);
      }
      for (; j < endRight; ++j) {
        if (answers[j] < 0) add(Part::op, Kind::onlyRight, -1, j);
        else moved(Kind::movedHere, answers[j], j, rowOfMoved);
      }
    };
    for (auto k : longestRising(rights)) {
      upTo(lefts[k], rights[k]);
      progress_.check();
      const auto changes = changesOf(diff_.leftLines.ops[i], diff_.rightLines.ops[j]);
      add(Part::op, changes ? Kind::changed : Kind::same, i++, j++, changes);
    }
    upTo(static_cast<std::int32_t>(partner.size()), static_cast<std::int32_t>(answers.size()));
  }

  void moved(Kind kind, std::int32_t left, std::int32_t right, std::vector<std::int32_t>& rowOfMoved) {
    const auto row = static_cast<std::int32_t>(diff_.rows.size());
    add(Part::op, kind, left, right, changesOf(diff_.leftLines.ops[left], diff_.rightLines.ops[right]));
    auto& first = rowOfMoved[left];
    if (first < 0) {
      first = row;
      return;
    }
    diff_.rows[row].partner = first;
    diff_.rows[first].partner = row;
  }

  std::uint16_t changesOf(BoundSymbolId left, BoundSymbolId right) {
    const bool oneOp = pairs_->isOneDocument() && left == right;
    auto& s = pairs_->signatures();
    std::uint16_t changes = 0;
    const auto note = [&](bool differs, std::uint16_t bit) {
      changes = static_cast<std::uint16_t>(changes | (differs ? bit : 0));
    };
    if (!oneOp) {
      const auto &a = leftDocument().boundSymbol(left), &b = rightDocument().boundSymbol(right);
      const bool sameSymbol = s.symbol(Side::left, left) == s.symbol(Side::right, right);
      note(!sameSymbol, change::op);
      if (sameSymbol)
        note(s.call(Side::left, left) != s.call(Side::right, right) || !sameOperands(left, right), change::arguments);
      note(s.module(Side::left, left) != s.module(Side::right, right), change::module);
      const auto here = leftDocument().outputs(left), there = rightDocument().outputs(right);
      note(here.size() != there.size(), change::results);
      for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i)
        changes = static_cast<std::uint16_t>(changes | typeChanges(here[i], there[i]));
      note(a.gradMode != b.gradMode, change::gradient);
      note(a.recomputed != b.recomputed, change::recomputed);
      if (a.origin.role != Role::none && b.origin.role != Role::none)
        note(originDiffers(a.origin, b.origin), change::origin);
    }
    if (!diff_.kept[Side::left].empty() && !diff_.kept[Side::right].empty())
      note(diff_.keeps(Side::left, left) != diff_.keeps(Side::right, right), change::saved);
    return changes;
  }

  bool sameOperands(BoundSymbolId left, BoundSymbolId right) const {
    const auto here = leftDocument().operands(left), there = rightDocument().operands(right);
    return std::equal(here.begin(), here.end(), there.begin(), there.end(),
                      [&](ValueId a, ValueId b) { return pairs_->same(a, b); });
  }

  /// A forward op that runs again instead says so by change::recomputed.
  bool originDiffers(const Origin& a, const Origin& b) const {
    const auto role = [](Role r) { return r == Role::recompute ? Role::forward : r; };
    const bool sameOp = (!a.op && !b.op) || (pairs_->isOneDocument() && a.op == b.op) ||
                        (a.op && pairs_->partner(Side::left, a.op) == b.op);
    return role(a.role) != role(b.role) || a.operand != b.operand || a.output != b.output || !sameOp;
  }

  std::uint16_t typeChanges(ValueId left, ValueId right) {
    if (!left || !right) return left == right ? 0 : change::results;
    const auto &a = leftDocument().value(left), &b = rightDocument().value(right);
    std::uint16_t changes = a.requiresGrad != b.requiresGrad ? change::gradient : 0;
    auto& s = pairs_->signatures();
    if (s.type(Side::left, left) == s.type(Side::right, right)) return changes;
    if (!a.meta || !b.meta) return static_cast<std::uint16_t>(changes | change::results);
    const auto &x = leftDocument().meta(a.meta), &y = rightDocument().meta(b.meta);
    const bool sameShape = x.sizes == y.sizes && x.symbols == y.symbols;
    if (x.dtype != y.dtype) changes |= change::dtype;
    if (!sameShape) changes |= change::shape;
    if (x.device != y.device) changes |= change::device;
    // Another shape has other strides; those of a contiguous tensor go without saying.
    const bool sameMemory = x.strides == y.strides || (!sameShape && x.strides == contiguousStrides(x.sizes) &&
                                                       y.strides == contiguousStrides(y.sizes));
    if (!sameMemory || x.offset != y.offset || x.layout != y.layout || x.conjugate != y.conjugate ||
        x.negative != y.negative || x.wrappedNumber != y.wrappedNumber)
      changes |= change::memory;
    return changes;
  }

  // --- inputs and results

  /// Inputs match wherever they are.
  void inputs() { matchValues(Part::input, diff_.left.trace->inputs, 0, diff_.right.trace->inputs, 0); }

  /// Results match by their place, saved tensors and the results of traces of two kinds wherever they
  /// are.
  void results() {
    const auto &left = *diff_.left.trace, &right = *diff_.right.trace;
    const bool byPlace = left.kind == right.kind;
    const auto placed = [&](const Trace& trace) {
      return !byPlace ? 0 : trace.kind == TraceKind::forward ? trace.resultCount : trace.outputs.size();
    };
    const auto endLeft = placed(left), endRight = placed(right);
    for (std::size_t i = 0; i < std::max(endLeft, endRight); ++i) {
      const auto a = i < endLeft ? left.outputs[i] : ValueId(), b = i < endRight ? right.outputs[i] : ValueId();
      const auto here = i < endLeft ? static_cast<std::int32_t>(i) : -1,
                 there = i < endRight ? static_cast<std::int32_t>(i) : -1;
      if (here < 0 || there < 0) add(Part::result, here < 0 ? Kind::onlyRight : Kind::onlyLeft, here, there);
      else if (!pairs_->same(a, b)) add(Part::result, Kind::changed, here, there, change::results);
    }
    matchValues(Part::result, left.outputs, endLeft, right.outputs, endRight);
  }

  /// Values from these places on as sets: those without a partner on the other side, and inputs of another type.
  void matchValues(Part part, const std::vector<ValueId>& left, std::size_t beginLeft,
                   const std::vector<ValueId>& right, std::size_t beginRight) {
    IdVector<ValueId, std::int32_t> place(rightDocument().valueCount(), -1);
    for (auto j = beginRight; j < right.size(); ++j)
      if (right[j]) place[right[j]] = static_cast<std::int32_t>(j);
    std::vector<bool> met(right.size(), false);
    for (auto i = beginLeft; i < left.size(); ++i) {
      if (!left[i]) continue;
      const auto other = pairs_->partner(Side::left, left[i]);
      const auto j = other ? place[other] : -1;
      if (j < 0) {
        add(part, Kind::onlyLeft, static_cast<std::int32_t>(i), -1);
        continue;
      }
      met[j] = true;
      // The op's row shows what ops make.
      const auto changes = part == Part::input ? typeChanges(left[i], other) : std::uint16_t{0};
      if (changes) add(part, Kind::changed, static_cast<std::int32_t>(i), j, changes);
    }
    for (auto j = beginRight; j < right.size(); ++j)
      if (right[j] && !met[j]) add(part, Kind::onlyRight, -1, static_cast<std::int32_t>(j));
  }

  void count() {
    auto& counts = diff_.counts;
    for (const auto& row : diff_.rows) switch (row.kind) {
        case Kind::same: ++counts.same; break;
        case Kind::changed: ++counts.changed; break;
        case Kind::onlyLeft: ++counts.onlyLeft; break;
        case Kind::onlyRight: ++counts.onlyRight; break;
        case Kind::movedAway: ++counts.moved; break;
        case Kind::movedHere: break;
      }
  }

  TraceDiff diff_;
  std::shared_ptr<OpPairs> pairs_;
  const Progress& progress_;
};

}  // namespace

bool TraceDiff::keeps(Side which, BoundSymbolId op) const {
  const auto& marks = kept[which];
  const auto outputs = side(which).document->outputs(op);
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](ValueId value) { return value && !marks.empty() && marks[value]; });
}

TraceDiff diffTraces(const DiffSide& left, const DiffSide& right, const Progress& progress) {
  return Differ(left, right, progress).run();
}

}  // namespace retrograd
