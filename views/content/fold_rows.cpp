#include "views/content/fold_rows.h"

#include <algorithm>
#include <numeric>

namespace retrograd::views {

std::int32_t FoldRows::visibleOf(std::int32_t row) const {
  if (row < 0 || visible_.empty() || !shows(row)) return -1;
  const auto it = std::ranges::upper_bound(visible_, row);
  // A hidden row lies below the last shown row before it.
  return it == visible_.begin() ? -1 : static_cast<std::int32_t>(it - visible_.begin()) - 1;
}

void FoldRows::setFolded(std::int32_t row, bool on) {
  if (!outline_ || row < 0 || !outline_->foldable(row) || folded(row) == on) return;
  folded_[row] = on;
  rebuild();
}

void FoldRows::setAllFolded(bool on) {
  if (!outline_) return;
  for (std::int32_t row = 0; row < outline_->rows(); ++row) folded_[row] = on && outline_->foldable(row);
  rebuild();
}

bool FoldRows::reveal(std::int32_t row) {
  if (!outline_ || row < 0) return false;
  bool changed = false;
  for (auto parent = outline_->parent[row]; parent >= 0; parent = outline_->parent[parent]) {
    changed = changed || folded(parent);
    folded_[parent] = false;
  }
  if (changed) rebuild();
  return changed;
}

void FoldRows::setFilter(std::shared_ptr<const PassingLines> filter) {
  filter_ = std::move(filter);
  if (outline_) rebuild();
}

bool FoldRows::keep(std::vector<std::int32_t> lines) {
  std::ranges::sort(lines);
  if (lines == kept_) return false;
  kept_ = std::move(lines);
  if (!outline_ || !filter_) return false;
  rebuild();
  return true;
}

/// The first line at or after a row; one past the last line where there is none.
std::int32_t FoldRows::firstLine(std::int32_t row) const {
  while (row < outline_->rows() && outline_->isHeader(row)) ++row;
  return row < outline_->rows() ? outline_->item[row] : static_cast<std::int32_t>(outline_->rowOfLine.size());
}

std::int32_t FoldRows::passingBelow(std::int32_t row) const {
  const auto [begin, end] = linesOf(row);
  return filter_ ? filter_->count(begin, end) : end - begin;
}

bool FoldRows::passes(std::int32_t row) const {
  if (!filter_) return true;
  const auto item = outline_->item[row];
  return item >= 0 ? filter_->passes(item) : passingBelow(row) > 0;
}

bool FoldRows::shows(std::int32_t row) const {
  if (!filter_) return true;
  const auto [begin, end] = linesOf(row);
  if (filter_->count(begin, end) > 0) return true;
  const auto kept = std::ranges::lower_bound(kept_, begin);
  return kept != kept_.end() && *kept < end;
}

std::int32_t FoldRows::nearest(std::int32_t row) const {
  if (visible_.empty()) return -1;
  const auto it = std::ranges::upper_bound(visible_, row);
  return it == visible_.begin() ? 0 : static_cast<std::int32_t>(it - visible_.begin()) - 1;
}

void FoldRows::rebuild() {
  visible_.clear();
  if (!filter_ && std::ranges::find(folded_, true) == folded_.end()) {
    visible_.resize(outline_->item.size());  // every row: a million are not looked at one by one
    std::iota(visible_.begin(), visible_.end(), 0);
    return;
  }
  visible_.reserve(filter_ ? static_cast<std::size_t>(filter_->count()) : outline_->item.size());
  for (std::int32_t row = 0; row < outline_->rows();) {
    const bool shown = shows(row);
    if (shown) visible_.push_back(row);
    row = shown && !folded(row) ? row + 1 : outline_->end[row];
  }
}

}  // namespace retrograd::views
