#pragma once
#include <memory>
#include <vector>

#include "core/base/enum_array.h"
#include "core/base/id_vector.h"
#include "core/trace/diff/op_pairs.h"

namespace retrograd {

/// Bits of DiffRow::changes: in what two matching ops, inputs or results differ.
namespace change {
inline constexpr std::uint16_t op = 1;         ///< another op in its place
inline constexpr std::uint16_t arguments = 2;  ///< literals, or operands that do not match
inline constexpr std::uint16_t results =
    4;  ///< how many it makes, or what is not a tensor on one side; of a trace's result: which value
inline constexpr std::uint16_t dtype = 8;
inline constexpr std::uint16_t shape = 16;
inline constexpr std::uint16_t memory = 32;  ///< strides, offset, layout
inline constexpr std::uint16_t device = 64;
inline constexpr std::uint16_t module = 128;
inline constexpr std::uint16_t origin = 256;       ///< what a derived op comes from, and its role
inline constexpr std::uint16_t gradient = 512;     ///< whether a result requires a gradient, or grad mode
inline constexpr std::uint16_t saved = 1024;       ///< whether the backward keeps a result
inline constexpr std::uint16_t recomputed = 2048;  ///< whether it runs (again) in the backward
}  // namespace change

/// One row of two traces side by side.
struct DiffRow {
  enum class Part : std::uint8_t { input, op, result };
  enum class Kind : std::uint8_t {
    same,
    changed,
    onlyLeft,
    onlyRight,
    movedAway,  ///< its place on the left; the row `partner` is its place on the right
    movedHere
  };
  Part part = Part::op;
  Kind kind = Kind::same;
  std::uint16_t changes = 0;
  std::int32_t left = -1, right = -1;  ///< into the lines, inputs or outputs of the side; a moved row has both
  std::int32_t partner = -1;

  bool showsLeft() const { return left >= 0 && kind != Kind::movedHere; }
  bool showsRight() const { return right >= 0 && kind != Kind::movedAway; }
};

/// Two traces aligned. Refers to documents and traces of the sides, which have to live as long.
struct TraceDiff {
  DiffSide left, right;
  TraceLines leftLines, rightLines;
  std::shared_ptr<const OpPairs> pairs;
  EnumArray<Side, IdVector<ValueId, bool>, 2>
      kept;  ///< by side and value: what the trace keeps for its backward; empty where the trace does not say
  std::vector<DiffRow> rows;  ///< inputs that differ, all ops, results that differ

  struct Counts {
    std::size_t same = 0, changed = 0, onlyLeft = 0, onlyRight = 0, moved = 0;
  };
  Counts counts;  ///< of the rows; what moved counts once

  const DiffSide& side(Side which) const { return which == Side::left ? left : right; }
  const TraceLines& lines(Side which) const { return which == Side::left ? leftLines : rightLines; }
  /// The op of a row on one side; invalid for a row of inputs or results, and where the side has none.
  BoundSymbolId op(const DiffRow& row, Side which) const {
    const auto line = which == Side::left ? row.left : row.right;
    return row.part == DiffRow::Part::op && line >= 0 ? lines(which).ops[line] : BoundSymbolId();
  }
  /// Whether the trace of this side keeps what the op makes for its backward.
  bool keeps(Side side, BoundSymbolId op) const;
  bool equal() const { return counts.changed + counts.onlyLeft + counts.onlyRight + counts.moved == 0; }
};

/// Aligns two traces. What has only another name, another id or, as a computation's op, another place in the source is
/// the same; so is an input in another place of the signature. Matching ops in another order have
/// moved, as few of them as possible. Throws Error(cancelled).
TraceDiff diffTraces(const DiffSide& left, const DiffSide& right, const Progress& progress = {});

}  // namespace retrograd
