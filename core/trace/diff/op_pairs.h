#pragma once
// Which ops and values of two traces match.
#include <span>
#include <vector>

#include "core/base/enum_array.h"
#include "core/base/id_vector.h"
#include "core/base/progress.h"
#include "core/trace/diff/signatures.h"

namespace retrograd {

/// The ops of a trace, each followed by those of its bodies.
struct TraceLines {
  std::vector<BoundSymbolId> ops;
  std::vector<std::uint8_t> depth;  ///< 0 for the trace's own, one more in each body
};
TraceLines linesOf(const Document& document, const Trace& trace);

/// The op that ran first, where a checkpoint runs it again in the backward; else the op itself.
BoundSymbolId firstRunOf(const Document& document, BoundSymbolId op);

/// Which op, and which value, of one side matches which of the other.
///
/// In one document an op matches itself, or the one that a pass put in its place. Of two documents the ops that stand
/// alone (those of a computation; forward, loss and updates of a recording) are aligned: one by one where all are
/// alike, else by signatures from strict to loose: op, module, line of code, literals, part of the run, where operands
/// come from. Derived ops match where their origins do, by role, operand, output, symbol and which of several; a
/// forward op that only runs again in the backward to that one there. What comes from an op that ran again comes from
/// the op that ran first. An op without origin is aligned by signature.
/// Inputs that have a name match by it; those of a recording that have none by the ops that read them. Deterministic;
/// O(n log n).
class OpPairs {
 public:
  OpPairs(const DiffSide& left, const DiffSide& right, const Progress& progress = {});

  /// The partner on the other side, which may be in another trace than the one compared; invalid where there is
  /// none.
  BoundSymbolId partner(Side side, BoundSymbolId op) const;
  /// Whether the two are the same value: paired, or neither is there.
  bool same(ValueId left, ValueId right) const;
  ValueId partner(Side side, ValueId value) const;
  Signatures& signatures() { return signatures_; }
  bool isOneDocument() const { return oneDocument_; }

 private:
  using Ops = std::vector<BoundSymbolId>;
  const DiffSide& side(Side which) const { return which == Side::left ? left_ : right_; }
  const Document& document(Side which) const { return *side(which).document; }
  bool isFree(Side which, BoundSymbolId op) const { return !partner(which, op); }
  void pair(BoundSymbolId left, BoundSymbolId right);
  void pairValues(ValueId left, ValueId right);
  void pairInputs(std::span<const ValueId> left, std::span<const ValueId> right);
  /// Inputs of a graph that was cut out of the left one: what ops there make.
  void pairCuts(const std::vector<BoundSymbolId>& left, std::span<const ValueId> right);
  /// Inputs that paired ops read at the same place.
  void pairReadInputs();
  bool isFreeInput(Side which, ValueId value) const;
  bool isRecorded() const { return left_.parts && right_.parts; }
  void pairOneDocument(const Ops& left, const Ops& right);
  /// Whether the two lists are alike op by op; pairs them then.
  bool pairAlike(const Ops& left, const Ops& right);
  void pairComputations(const Ops& left, const Ops& right);
  void pairDerived(const Ops& left, const Ops& right);
  void pairGroup(const Ops& left, const Ops& right);
  void pairRecomputed(const Ops& left, const Ops& right);
  /// Free ops of the two lists in order, by one signature after another: each aligns what those before it left between
  /// their matches.
  void alignBySignatures(const Ops& left, const Ops& right);
  /// The ops left of both lists whose signature nothing else left over has.
  void pairUnique(const Ops& left, const Ops& right);

  DiffSide left_, right_;
  bool oneDocument_;
  Signatures signatures_;
  // By id of the side: the id on the other side, or none.
  EnumArray<Side, IdVector<BoundSymbolId, BoundSymbolId>, 2> ops_;
  EnumArray<Side, IdVector<ValueId, ValueId>, 2> values_;
};

}  // namespace retrograd
