#include "core/trace/diff/op_pairs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

#include "core/trace/diff/alignment.h"

namespace retrograd {
namespace {

using Ops = std::vector<BoundSymbolId>;

void addLines(const Document& document, const Ops& ops, std::uint8_t depth, TraceLines& lines) {
  for (auto op : ops) {
    lines.ops.push_back(op);
    lines.depth.push_back(depth);
    forEachBody(document, op, [&](SubgraphId body) {
      addLines(document, document.subgraph(body).ops, static_cast<std::uint8_t>(std::min(depth + 1, 255)), lines);
    });
  }
}

/// Whether the op comes from no other. In a recording an op of the forward is its own origin.
bool standsAlone(const Document& document, BoundSymbolId op) {
  const auto& origin = document.boundSymbol(op).origin;
  return origin.role == Role::none || origin.op == op;
}

/// Whether it comes from another, and nobody knows which.
bool isUnlinked(const Document& document, BoundSymbolId op) {
  const auto& origin = document.boundSymbol(op).origin;
  return !standsAlone(document, op) && !origin.op && !origin.value;
}

template <class Visit>
void forEachDerived(const DiffSide& side, Visit&& visit) {
  for (const auto* trace : {side.joint, side.trace})
    if (trace && trace->kind != TraceKind::computation)
      for (auto op : trace->ops) visit(op);
}

/// Which forward op a recomputed one repeats. A pass may have put another maker of a value in the first one's place, so
/// those that are in the side's traces are asked first.
class Originals {
 public:
  explicit Originals(const DiffSide& side) : document_(*side.document), makers_(document_.valueCount()) {
    forEachDerived(side, [&](BoundSymbolId op) {
      if (document_.boundSymbol(op).origin.role != Role::forward) return;
      for (auto output : document_.outputs(op))
        if (output) makers_[output] = op;
    });
  }
  /// Invalid for an op that repeats none.
  BoundSymbolId of(BoundSymbolId op) const {
    const auto& origin = document_.boundSymbol(op).origin;
    if (origin.role != Role::recompute || !origin.value) return {};
    const auto maker = makers_[origin.value];
    return maker ? maker : document_.value(origin.value).producer;
  }

 private:
  const Document& document_;
  IdVector<ValueId, BoundSymbolId> makers_;
};

/// Derived ops of a side's traces, forward ones in the order in which they were made and those among them that only
/// run again included.
Ops derivedOps(const DiffSide& side) {
  const auto& document = *side.document;
  const Originals originals(side);
  IdVector<BoundSymbolId, bool> met(document.boundSymbolCount(), false);
  Ops forward, others;
  const auto add = [&](BoundSymbolId op) {
    if (met[op]) return;
    met[op] = true;
    if (standsAlone(document, op)) return;
    (document.boundSymbol(op).origin.role == Role::forward ? forward : others).push_back(op);
  };
  forEachDerived(side, [&](BoundSymbolId op) {
    add(op);
    if (const auto original = originals.of(op)) add(original);
  });
  std::sort(forward.begin(), forward.end());
  forward.insert(forward.end(), others.begin(), others.end());
  return forward;
}

/// Lines of the computation and of the trace whose ops come from no other.
Ops ownOps(const DiffSide& side) {
  Ops ops;
  IdVector<BoundSymbolId, bool> met(side.document->boundSymbolCount(), false);
  for (const auto* trace : {side.computation, side.trace}) {
    if (!trace) continue;
    for (auto op : linesOf(*side.document, *trace).ops)
      if (standsAlone(*side.document, op) && !met[op]) met[op] = true, ops.push_back(op);
  }
  return ops;
}

IdVector<BoundSymbolId, bool> marksOf(const Document& document, const Ops& ops) {
  IdVector<BoundSymbolId, bool> marks(document.boundSymbolCount(), false);
  for (auto op : ops) marks[op] = true;
  return marks;
}

}  // namespace

BoundSymbolId firstRunOf(const Document& document, BoundSymbolId op) {
  while (op) {
    const auto& origin = document.boundSymbol(op).origin;
    if (origin.role != Role::recompute || !origin.op || origin.op == op) break;
    op = origin.op;
  }
  return op;
}

TraceLines linesOf(const Document& document, const Trace& trace) {
  TraceLines lines;
  addLines(document, trace.ops, 0, lines);
  return lines;
}

OpPairs::OpPairs(const DiffSide& left, const DiffSide& right, const Progress& progress)
    : left_(left), right_(right), oneDocument_(left.document == right.document), signatures_(left, right) {
  for (auto which : bothSides) {
    ops_[which].resize(document(which).boundSymbolCount());
    values_[which].resize(document(which).valueCount());
  }
  const auto ownLeft = ownOps(left), ownRight = ownOps(right);
  const auto leftDerived = derivedOps(left), rightDerived = derivedOps(right);
  if (oneDocument_) {
    pairOneDocument(ownLeft, ownRight);
    pairOneDocument(leftDerived, rightDerived);
  } else {
    if (left.isPart && right.isPart) pairCuts(ownLeft, right.trace->inputs);
    for (auto member : {&DiffSide::computation, &DiffSide::joint, &DiffSide::trace})
      if (left.*member && right.*member) pairInputs((left.*member)->inputs, (right.*member)->inputs);
    progress.check();
    pairComputations(ownLeft, ownRight);
  }
  progress.check();
  if (!oneDocument_) {
    const auto unlinked = [](const DiffSide& side, const Ops& ops) {
      Ops found;
      std::ranges::copy_if(ops, std::back_inserter(found),
                           [&](BoundSymbolId op) { return isUnlinked(*side.document, op); });
      return found;
    };
    alignBySignatures(unlinked(left, leftDerived), unlinked(right, rightDerived));
  }
  pairDerived(leftDerived, rightDerived);
  pairRecomputed(leftDerived, rightDerived);
  if (isRecorded() && !oneDocument_) pairReadInputs();
}

BoundSymbolId OpPairs::partner(Side which, BoundSymbolId op) const { return op ? ops_[which][op] : BoundSymbolId(); }

ValueId OpPairs::partner(Side which, ValueId value) const {
  if (!value) return {};
  const auto stored = values_[which][value];
  return !stored && oneDocument_ ? value : stored;
}

bool OpPairs::same(ValueId left, ValueId right) const {
  if (!left || !right) return !left && !right;
  return (oneDocument_ && left == right) || partner(Side::left, left) == right || partner(Side::right, right) == left;
}

void OpPairs::pairValues(ValueId left, ValueId right) {
  if (!left || !right) return;
  values_[Side::left][left] = right;
  values_[Side::right][right] = left;
}

void OpPairs::pair(BoundSymbolId left, BoundSymbolId right) {
  ops_[Side::left][left] = right;
  ops_[Side::right][right] = left;
  const auto here = left_.document->outputs(left), there = right_.document->outputs(right);
  for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i) pairValues(here[i], there[i]);
  if (oneDocument_) return;
  // What bodies are given.
  EnumArray<Side, std::vector<const Subgraph*>, 2> bodies;
  for (auto which : bothSides)
    forEachBody(document(which), which == Side::left ? left : right,
                [&](SubgraphId body) { bodies[which].push_back(&document(which).subgraph(body)); });
  for (std::size_t k = 0; k < std::min(bodies[Side::left].size(), bodies[Side::right].size()); ++k)
    for (std::size_t i = 0; i < std::min(bodies[Side::left][k]->inputs.size(), bodies[Side::right][k]->inputs.size());
         ++i)
      pairValues(bodies[Side::left][k]->inputs[i], bodies[Side::right][k]->inputs[i]);
}

void OpPairs::pairReadInputs() {
  for (const auto op : left_.document->boundSymbolIds()) {
    const auto other = partner(Side::left, op);
    if (!other) continue;
    const auto here = left_.document->operands(op), there = right_.document->operands(other);
    if (here.size() != there.size()) continue;
    for (std::size_t i = 0; i < here.size(); ++i)
      if (isFreeInput(Side::left, here[i]) && isFreeInput(Side::right, there[i])) pairValues(here[i], there[i]);
  }
}

bool OpPairs::isFreeInput(Side which, ValueId value) const {
  return value && !partner(which, value) && !document(which).value(value).producer;
}

void OpPairs::pairInputs(std::span<const ValueId> left, std::span<const ValueId> right) {
  // A recording calls what has no name by its number.
  const auto free = [&](Side which, ValueId value) {
    return isFreeInput(which, value) && (!isRecorded() || document(which).value(value).kind != ValueKind::input);
  };
  std::unordered_map<std::string, ValueId> byName;
  for (auto value : right)
    if (free(Side::right, value) && right_.document->value(value).name)
      byName.emplace(right_.document->displayName(value), value);
  for (auto value : left)
    if (free(Side::left, value) && left_.document->value(value).name)
      if (const auto found = byName.find(left_.document->displayName(value));
          found != byName.end() && free(Side::right, found->second))
        pairValues(value, found->second);
  // Others by what they are and which of these: a renamed input, cotangents.
  std::map<ValueKind, std::vector<ValueId>> byKind;
  for (auto value : right)
    if (free(Side::right, value)) byKind[right_.document->value(value).kind].push_back(value);
  std::map<ValueKind, std::size_t> met;
  for (auto value : left) {
    if (!free(Side::left, value)) continue;
    const auto kind = left_.document->value(value).kind;
    const auto& others = byKind[kind];
    if (const auto n = met[kind]++; n < others.size()) pairValues(value, others[n]);
  }
}

void OpPairs::pairCuts(const Ops& left, std::span<const ValueId> right) {
  std::unordered_map<std::string, ValueId> made;
  for (const auto op : left)
    for (const auto output : left_.document->outputs(op))
      if (output) made.emplace(left_.document->displayName(output), output);
  for (const auto input : right) {
    if (!isFreeInput(Side::right, input)) continue;
    const auto found = made.find(right_.document->displayName(input));
    if (found != made.end()) pairValues(found->second, input);
  }
}

void OpPairs::pairOneDocument(const Ops& left, const Ops& right) {
  const auto onLeft = marksOf(*left_.document, left), onRight = marksOf(*right_.document, right);
  for (auto op : left)
    if (onRight[op]) pair(op, op);
  // What a pass on the way from one to the other put in an op's place; where it made one of several, the one that is
  // the same op.
  for (const bool sameSymbol : {true, false})
    for (const auto* trace : {left_.trace, right_.trace})
      for (const auto& record : trace->history)
        for (const auto& [before, after] : record.replaced) {
          const auto answer = [&](BoundSymbolId a, BoundSymbolId b) {
            if (sameSymbol && left_.document->boundSymbol(a).symbol != left_.document->boundSymbol(b).symbol) return;
            if (onLeft[a] && onRight[b] && isFree(Side::left, a) && isFree(Side::right, b)) pair(a, b);
          };
          answer(before, after);
          answer(after, before);
        }
}

void OpPairs::pairComputations(const Ops& left, const Ops& right) {
  if (pairAlike(left, right)) return;
  alignBySignatures(left, right);
  pairUnique(left, right);
}

bool OpPairs::pairAlike(const Ops& left, const Ops& right) {
  auto& s = signatures_;
  const auto name = [&](Side which, BoundSymbolId op) {
    return document(which).text(document(which).boundSymbol(op).name);
  };
  // A recording has no names of ops, so more of them has to be the same.
  const auto alike = [&](BoundSymbolId a, BoundSymbolId b) {
    if (s.symbol(Side::left, a) != s.symbol(Side::right, b) || name(Side::left, a) != name(Side::right, b))
      return false;
    return !isRecorded() ||
           (s.module(Side::left, a) == s.module(Side::right, b) && s.part(Side::left, a) == s.part(Side::right, b));
  };
  if (!std::equal(left.begin(), left.end(), right.begin(), right.end(), alike)) return false;
  for (std::size_t i = 0; i < left.size(); ++i) pair(left[i], right[i]);
  return true;
}

void OpPairs::alignBySignatures(const Ops& left, const Ops& right) {
  auto& s = signatures_;
  using Signature = std::function<std::int32_t(Side, BoundSymbolId)>;
  const auto place = [&](Side w, BoundSymbolId op) { return s.together({s.module(w, op), s.part(w, op)}); };
  const std::array<Signature, 8> strictToLoose{{
      [&](Side w, BoundSymbolId op) {
        return s.together(
            {s.symbol(w, op), place(w, op), s.call(w, op), s.code(w, op), s.flow(w, op), s.results(w, op)});
      },
      [&](Side w, BoundSymbolId op) {
        return s.together({s.symbol(w, op), place(w, op), s.call(w, op), s.code(w, op), s.flow(w, op)});
      },
      [&](Side w, BoundSymbolId op) {
        return s.together({s.symbol(w, op), place(w, op), s.call(w, op), s.code(w, op)});
      },
      [&](Side w, BoundSymbolId op) { return s.together({s.symbol(w, op), place(w, op), s.call(w, op)}); },
      [&](Side w, BoundSymbolId op) { return s.together({s.symbol(w, op), place(w, op)}); },
      [&](Side w, BoundSymbolId op) { return s.together({s.symbol(w, op), s.call(w, op), s.results(w, op)}); },
      [&](Side w, BoundSymbolId op) { return s.symbol(w, op); },
      [&](Side w, BoundSymbolId op) { return s.together({place(w, op), s.results(w, op)}); },
  }};
  std::vector<Match> matches;
  for (const auto& signature : strictToLoose) {
    std::vector<Match> finer;
    Match from{0, 0};
    const auto gap = [&](const Match& to) {
      std::vector<std::int32_t> tokens[2];
      for (auto i = from.first; i < to.first; ++i) tokens[0].push_back(signature(Side::left, left[i]));
      for (auto i = from.second; i < to.second; ++i) tokens[1].push_back(signature(Side::right, right[i]));
      for (const auto& [a, b] : alignTokens(tokens[0], tokens[1])) finer.emplace_back(from.first + a, from.second + b);
    };
    for (const auto& match : matches) {
      gap(match);
      finer.push_back(match);
      from = {match.first + 1, match.second + 1};
    }
    gap({static_cast<std::int32_t>(left.size()), static_cast<std::int32_t>(right.size())});
    matches = std::move(finer);
  }
  for (const auto& [a, b] : matches) pair(left[a], right[b]);
}

void OpPairs::pairUnique(const Ops& left, const Ops& right) {
  auto& s = signatures_;
  struct Found {
    EnumArray<Side, std::int32_t, 2> count{};
    EnumArray<Side, BoundSymbolId, 2> op;
  };
  std::map<std::int32_t, Found> found;
  const auto look = [&](Side which, const Ops& ops) {
    for (auto op : ops) {
      if (!isFree(which, op)) continue;
      auto& one =
          found[s.together({s.symbol(which, op), s.module(which, op), s.call(which, op), s.results(which, op)})];
      ++one.count[which];
      one.op[which] = op;
    }
  };
  look(Side::left, left);
  look(Side::right, right);
  for (const auto& [signature, one] : found)
    if (one.count[Side::left] == 1 && one.count[Side::right] == 1) pair(one.op[Side::left], one.op[Side::right]);
}

void OpPairs::pairDerived(const Ops& left, const Ops& right) {
  // Origins are known by their ids on the left.
  const auto keyed = [&](Side which, BoundSymbolId op, bool withSymbol) -> std::optional<std::int32_t> {
    const auto& origin = document(which).boundSymbol(op).origin;
    const auto here = [&](auto id) { return which == Side::left ? id : partner(Side::right, id); };
    const auto from = firstRunOf(document(which), origin.op);
    const auto operation = here(from);
    if (from && !(which == Side::left ? partner(Side::left, from) : operation)) return {};
    const auto value = from ? ValueId() : here(origin.value);
    return signatures_.together({operation.index, value.index, static_cast<std::int32_t>(origin.role), origin.operand,
                                 origin.output, withSymbol ? signatures_.symbol(which, op) : -1});
  };
  // Several of a key in order; without the symbol only where there is just one: another op in its place.
  for (const bool withSymbol : {true, false}) {
    std::unordered_map<std::int32_t, EnumArray<Side, Ops, 2>> byKey;
    std::vector<std::int32_t> order;
    const auto look = [&](Side which, const Ops& ops) {
      for (auto op : ops) {
        const auto& origin = document(which).boundSymbol(op).origin;
        if (!isFree(which, op) || isUnlinked(document(which), op)) continue;
        if (origin.role == Role::recompute && origin.value) continue;
        const auto key = keyed(which, op, withSymbol);
        if (!key) continue;
        const auto [entry, isNew] = byKey.try_emplace(*key);
        if (isNew) order.push_back(*key);
        entry->second[which].push_back(op);
      }
    };
    look(Side::left, left);
    look(Side::right, right);
    for (auto key : order) {
      const auto& both = byKey.at(key);
      const auto &here = both[Side::left], &there = both[Side::right];
      if (!withSymbol && (here.size() != 1 || there.size() != 1)) continue;
      pairGroup(here, there);
    }
  }
}

/// In order; where one side has more, those that give the same come first.
void OpPairs::pairGroup(const Ops& left, const Ops& right) {
  if (left.size() != right.size()) {
    std::vector<std::int32_t> tokens[2];
    for (auto op : left) tokens[0].push_back(signatures_.results(Side::left, op));
    for (auto op : right) tokens[1].push_back(signatures_.results(Side::right, op));
    const auto matches = alignTokens(tokens[0], tokens[1]);
    for (const auto& [a, b] : matches) pair(left[a], right[b]);
    if (!matches.empty()) return;
  }
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) pair(left[i], right[i]);
}

void OpPairs::pairRecomputed(const Ops& left, const Ops& right) {
  struct Runs {
    IdVector<BoundSymbolId, bool> inTrace;  ///< by op: it is in the traces itself, not as the original of another
    std::unordered_map<BoundSymbolId, BoundSymbolId> copies;  ///< by original
    Ops originals;                                            ///< in order of their copies
  };
  const auto runsOf = [&](Side which, const Ops& ops) {
    Runs runs;
    Ops standing;
    forEachDerived(side(which), [&](BoundSymbolId op) { standing.push_back(op); });
    runs.inTrace = marksOf(document(which), standing);
    const Originals originals(side(which));
    for (auto op : ops)
      if (const auto original = originals.of(op))
        if (runs.copies.emplace(original, op).second) runs.originals.push_back(original);
    return runs;
  };
  const auto here = runsOf(Side::left, left), there = runsOf(Side::right, right);
  for (auto original : there.originals) {
    const auto forward = partner(Side::right, original);
    if (!forward) continue;
    const auto copy = there.copies.at(original);
    if (const auto other = here.copies.find(forward); other != here.copies.end()) pair(other->second, copy);
    else if (!there.inTrace[original] && here.inTrace[forward]) pair(forward, copy);
  }
  for (auto original : here.originals) {
    const auto forward = partner(Side::left, original);
    const auto copy = here.copies.at(original);
    if (forward && isFree(Side::left, copy) && !here.inTrace[original] && there.inTrace[forward]) pair(copy, forward);
  }
}

}  // namespace retrograd
