#include "views/widgets/sorted_rows.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <cmath>
#include <optional>

#include "views/models/tree_model.h"

namespace retrograd::views {
namespace {

/// What rows are compared by; nullopt where the model gives no number.
std::optional<double> numberOf(const QModelIndex& index) {
  const auto value = index.data(sortRole);
  return value.isValid() ? std::optional(value.toDouble()) : std::nullopt;
}

}  // namespace

QCollator textOrder() {
  QCollator texts{QLocale(QLocale::English)};  // the C locale, which a shell may have, sorts layers.10 before layers.2
                                               // whatever the mode says
  texts.setNumericMode(true);
  texts.setCaseSensitivity(Qt::CaseInsensitive);
  return texts;
}

SortedRows::SortedRows(QTreeView& tree) : QSortFilterProxyModel(&tree), tree_(tree), texts_(textOrder()) {
  setSourceModel(tree.model());
  tree.setModel(this);
  tree.header()->setSortIndicatorClearable(true);
  tree.header()->setSortIndicator(-1, Qt::AscendingOrder);  // or enabling it sorts at once
  tree.setSortingEnabled(true);
  tree.installEventFilter(this);
}

void SortedRows::reset() {
  auto* header = tree_.header();
  header->setSectionsClickable(true);
  header->setSortIndicatorShown(true);
  header->setSortIndicatorClearable(true);
  header->setSortIndicator(-1, Qt::AscendingOrder);
  sort(-1);
}

bool SortedRows::hasChildren(const QModelIndex& parent) const {
  return sourceModel()->hasChildren(mapToSource(parent));
}

bool SortedRows::lessThan(const QModelIndex& left, const QModelIndex& right) const {
  const auto a = numberOf(left), b = numberOf(right);
  const auto isNumber = [](const auto& n) { return n && !std::isnan(*n); };
  if (a || b) {
    if (isNumber(a) && isNumber(b)) return *a < *b;
    return isNumber(a) == (sortOrder() == Qt::AscendingOrder) && isNumber(a) != isNumber(b);
  }
  return texts_.compare(left.data().toString(), right.data().toString()) < 0;
}

bool SortedRows::eventFilter(QObject* watched, QEvent* event) {
  if (watched != &tree_ || event->type() != QEvent::KeyPress) return false;
  const auto* key = static_cast<QKeyEvent*>(event);
  if (key->modifiers() != Qt::AltModifier) return false;
  if (key->key() != Qt::Key_Up && key->key() != Qt::Key_Down) return false;
  const int column = std::max(0, tree_.currentIndex().column());
  const auto order = key->key() == Qt::Key_Up ? Qt::AscendingOrder : Qt::DescendingOrder;
  if (sortColumn() == column && sortOrder() == order) reset();
  else tree_.sortByColumn(column, order);
  return true;
}

QModelIndex ofModel(const QModelIndex& shown) {
  const auto* sorted = dynamic_cast<const SortedRows*>(shown.model());
  return sorted ? sorted->mapToSource(shown) : shown;
}

QModelIndex shownIn(const QAbstractItemView& view, const QModelIndex& row) {
  const auto* sorted = dynamic_cast<const SortedRows*>(view.model());
  return sorted ? sorted->mapFromSource(row) : row;
}

}  // namespace retrograd::views
