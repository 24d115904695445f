#pragma once
#include <memory>
#include <vector>

#include "views/session/filtered_ops.h"

namespace retrograd::views {

/// Which rows of an outline show, given which are folded and which lines pass a filter. "Visible" indices count shown
/// rows only.
///
/// A filter leaves the lines that pass, with the headers and ops they are below, and the lines that are kept in spite
/// of it.
class FoldRows {
 public:
  FoldRows() = default;
  /// Nothing is folded at first. The outline must outlive this.
  explicit FoldRows(const Outline* outline) : outline_(outline), folded_(outline->item.size(), false) { rebuild(); }

  std::int32_t count() const { return static_cast<std::int32_t>(visible_.size()); }
  std::int32_t rowAt(std::int32_t visible) const { return visible_[visible]; }
  /// The visible index of a row, or that of the folded row it hides in; -1 for no row and for one that the filter
  /// hides.
  std::int32_t visibleOf(std::int32_t row) const;
  bool folded(std::int32_t row) const { return folded_[row]; }
  void setFolded(std::int32_t row, bool on);
  void setAllFolded(bool on);
  /// Unfolds whatever hides the row; true if something changed.
  bool reveal(std::int32_t row);

  /// Null: every line passes. Must be of the outline's trace.
  void setFilter(std::shared_ptr<const PassingLines> filter);
  bool isFiltered() const { return filter_ != nullptr; }
  /// Lines to show though they do not pass, in any order; true if something changed.
  bool keep(std::vector<std::int32_t> lines);
  /// True of what passes, or is a header above such a line; false of what shows only because it is kept, or is hidden.
  bool passes(std::int32_t row) const;
  /// Lines at or below the row that pass, all of them without a filter.
  std::int32_t passingBelow(std::int32_t row) const;
  /// Whether folds alone decide if the row is seen.
  bool shows(std::int32_t row) const;
  /// The visible row where this row is, or would be.
  std::int32_t nearest(std::int32_t row) const;

 private:
  struct Lines {
    std::int32_t begin = 0, end = 0;
  };
  /// Those at or below the row.
  Lines linesOf(std::int32_t row) const { return {firstLine(row), firstLine(outline_->end[row])}; }
  std::int32_t firstLine(std::int32_t row) const;
  void rebuild();

  const Outline* outline_ = nullptr;
  std::vector<bool> folded_;
  std::vector<std::int32_t> visible_;
  std::shared_ptr<const PassingLines> filter_;
  std::vector<std::int32_t> kept_;  ///< sorted
};

}  // namespace retrograd::views
