#pragma once
#include <memory>
#include <vector>

#include "views/models/trace_index.h"

namespace retrograd::views {

/// Which rows of an outline show, given which are folded. "Visible" indices count shown rows only.
class FoldRows {
 public:
  FoldRows() = default;
  /// Nothing is folded at first. The outline must outlive this.
  explicit FoldRows(const Outline* outline);

  std::int32_t count() const { return static_cast<std::int32_t>(visible_.size()); }
  std::int32_t rowAt(std::int32_t visible) const { return visible_[static_cast<std::size_t>(visible)]; }
  /// The visible index of a row, or that of the folded row it hides in; -1 for no row.
  std::int32_t visibleOf(std::int32_t row) const;
  bool folded(std::int32_t row) const { return folded_[static_cast<std::size_t>(row)]; }
  void setFolded(std::int32_t row, bool on);
  void setAllFolded(bool on);
  /// Unfolds whatever hides the row; true if something changed.
  bool reveal(std::int32_t row);

 private:
  void rebuild();

  const Outline* outline_ = nullptr;
  std::vector<bool> folded_;
  std::vector<std::int32_t> visible_;
};

}  // namespace retrograd::views
