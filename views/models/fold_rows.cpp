#include "views/models/fold_rows.h"

#include <algorithm>

namespace retrograd::views {

FoldRows::FoldRows(const Outline* outline) : outline_(outline), folded_(outline->item.size(), false) { rebuild(); }

std::int32_t FoldRows::visibleOf(std::int32_t row) const {
  if (row < 0 || visible_.empty()) return -1;
  const auto it = std::upper_bound(visible_.begin(), visible_.end(), row);
  // A hidden row lies below the last shown row before it.
  return it == visible_.begin() ? -1 : static_cast<std::int32_t>(it - visible_.begin()) - 1;
}

void FoldRows::setFolded(std::int32_t row, bool on) {
  if (!outline_ || row < 0 || !outline_->foldable(row) || folded(row) == on) return;
  folded_[static_cast<std::size_t>(row)] = on;
  rebuild();
}

void FoldRows::setAllFolded(bool on) {
  if (!outline_) return;
  for (std::int32_t row = 0; row < outline_->rows(); ++row) folded_[static_cast<std::size_t>(row)] = on && outline_->foldable(row);
  rebuild();
}

bool FoldRows::reveal(std::int32_t row) {
  if (!outline_ || row < 0) return false;
  bool changed = false;
  for (auto parent = outline_->parent[static_cast<std::size_t>(row)]; parent >= 0;
       parent = outline_->parent[static_cast<std::size_t>(parent)]) {
    changed = changed || folded(parent);
    folded_[static_cast<std::size_t>(parent)] = false;
  }
  if (changed) rebuild();
  return changed;
}

void FoldRows::rebuild() {
  visible_.clear();
  visible_.reserve(outline_->item.size());
  for (std::int32_t row = 0; row < outline_->rows(); row = folded(row) ? outline_->end[static_cast<std::size_t>(row)] : row + 1)
    visible_.push_back(row);
}

}  // namespace retrograd::views
