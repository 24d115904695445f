#pragma once
#include <QString>
#include <memory>
#include <vector>

#include "core/base/enum_array.h"
#include "core/torch/experiments/passes.h"
#include "core/trace/diff/trace_diff.h"
#include "views/text/line_text.h"

namespace retrograd::views {

/// One side of a comparison with what it lives in.
struct ComparedTrace {
  std::shared_ptr<const Analysis> analysis;
  std::shared_ptr<const PassTraces> passes;  ///< where the trace is one that a pass left; else null
  const Trace* trace = nullptr;
  QString title;  ///< "model.pt2, as few bytes saved as possible"

  DiffSide side() const;
};

/// Two traces aligned, with all that they refer to; never changed once made.
struct Comparison {
  ComparedTrace left, right;
  TraceDiff diff;
  EnumArray<Side, SavedValues, 2> saved;  ///< by side, for what lines say

  const ComparedTrace& of(Side side) const { return side == Side::left ? left : right; }
};
/// Throws Error(cancelled).
std::shared_ptr<const Comparison> compareTraces(ComparedTrace left, ComparedTrace right, const Progress& progress);

/// The rows of a comparison as they are seen: all of them, or with long equal stretches folded to one row each. Knows
/// no widget.
class DiffRows {
 public:
  /// Equal rows that stay around what differs where the others are folded.
  static constexpr std::int32_t context = 3;

  DiffRows() = default;
  explicit DiffRows(std::shared_ptr<const Comparison> comparison, bool onlyDifferences = false);

  const Comparison* comparison() const { return comparison_.get(); }
  bool onlyDifferences() const { return onlyDifferences_; }
  void showOnlyDifferences(bool on);
  /// Shows what a folded row represents.
  void unfold(int visible);

  int count() const { return static_cast<int>(begins_.size()); }
  /// How many rows of the comparison are behind a visible one; more than one where it is folded.
  int folded(int visible) const;
  const DiffRow& row(int visible) const { return comparison_->diff.rows[begins_[visible]]; }
  /// The visible row that shows the op, or the folded one that hides it; -1 where the side has no such op.
  int rowOf(Side side, BoundSymbolId op) const;
  BoundSymbolId opAt(int visible, Side side) const;

  /// What differs is in blocks of rows; these are the first visible rows of each.
  const std::vector<int>& blocks() const { return blocks_; }
  /// The first row of the next block after (or before) `visible`; -1 where there is none.
  int nextBlock(int visible, bool forward) const;
  /// Which block a row is in, or the last before it; -1 above the first.
  int blockAt(int visible) const;

  /// A side of a row as it is painted; empty where the side has nothing there.
  LineText line(int visible, Side side) const;
  /// Whether each token of line() represents something else than on the other side; only of rows with both.
  std::vector<bool> changedTokens(int visible, Side side) const;
  int depth(int visible, Side side) const;
  /// "~": the mark next to the colour.
  static QString sign(DiffRow::Kind kind);
  /// In what the sides differ, for people: "dtype: f32 → f64"; "517 equal rows" of a folded one.
  QString explanation(int visible) const;
  /// A row as a screen reader hears it.
  QString spoken(int visible) const;

 private:
  void rebuild();
  bool isShown(std::int32_t row) const;

  std::shared_ptr<const Comparison> comparison_;
  bool onlyDifferences_ = false;
  std::vector<std::int32_t> begins_;     ///< by visible row: the first row behind it
  std::vector<std::int32_t> visibleOf_;  ///< by row
  std::vector<int> blocks_;
  std::vector<std::uint8_t> shown_;                        ///< by row: it is not folded away
  EnumArray<Side, std::vector<std::int32_t>, 2> rowOfOp_;  ///< by side and op: where it is
};

}  // namespace retrograd::views
