#pragma once
#include <QCollator>
#include <QSortFilterProxyModel>
#include <QTreeView>

namespace retrograd::views {

/// Comes between a tree and its model, and shows the rows in the order of a column: by a click on its title, or by Alt
/// and an arrow up or down where the keyboard is. A third click, or the same key again, brings back the order of the
/// model. Numbers are compared as numbers (sortRole), texts as people read them; what is absent or NaN comes last in
/// both directions.
class SortedRows : public QSortFilterProxyModel {
 public:
  /// Takes the place of the tree's model. Call it before anything connects to the tree's selection.
  explicit SortedRows(QTreeView& tree);
  /// The model's own order, and titles that can be clicked: also after a header's state was restored.
  void reset();
  /// Asks the model itself: no row is filtered out, and the proxy of Qt would make a mapping for each row.
  bool hasChildren(const QModelIndex& parent = {}) const override;

 protected:
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QTreeView& tree_;
  QCollator texts_;
};

/// How people read texts: layers.2 before layers.10, whatever the case.
QCollator textOrder();
/// The same row in the model that a panel fills, whether a view sorts it or not.
QModelIndex ofModel(const QModelIndex& shown);
/// Where the view shows a row of that model.
QModelIndex shownIn(const QAbstractItemView& view, const QModelIndex& row);

}  // namespace retrograd::views
