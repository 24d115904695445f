#pragma once
#include <QHash>
#include <QSet>
#include <QStandardItem>
#include <QStyledItemDelegate>
#include <QTreeView>

#include "views/models/tree_model.h"

namespace retrograd::views {

/// In what the trees of the docks differ.
struct TreeLook {
  bool isFlat = false;    ///< a table: no row holds others
  bool isSorted = false;  ///< by a click on a title, see SortedRows
  bool wraps = false;     ///< sentences take as many lines as they need
};

/// What the trees of the docks have in common: `object` as name for tests, `name` for screen readers, whole rows, no
/// frame; they can be copied from, and typed letters search in them. Copying takes whole rows, or one column alone
/// where it is given.
void prepareTree(QTreeView& tree, QAbstractItemModel* model, QAnyStringView object, const QString& name,
                 TreeLook look = {}, int copied = -1);

/// A cell whose text is its tip too, for there may be more of it than there is room.
QStandardItem* textCell(const QString& text);
/// The same at the right, where numbers are, and with the number that it is sorted by.
QStandardItem* numberCell(const QString& text, double number);

/// Pixels by column.
void setWidths(QTreeView& tree, std::initializer_list<std::pair<int, int>> widths);

/// Makes columns as wide as what they show, but for those whose width a person chose.
class ColumnFitter : public QObject {
 public:
  explicit ColumnFitter(QTreeView* tree);
  /// As wide as what they show now.
  void fit() { fit(false); }
  /// The same, and none narrower: other numbers in the same rows move no column back and forth.
  void widen() { fit(true); }
  /// No wider than this many digits by itself; a person may make it so.
  void limit(int column, int digits) { limits_[column] = digits; }

 private:
  void fit(bool onlyWider);

  QTreeView* tree_;
  QSet<int> chosen_;
  QHash<int, int> limits_;  ///< digits, by column
  bool fitting_ = false;
};

/// The first column has the width that the others leave. Where that is less than `letters` of a name in sight, the
/// last columns go, one after another. A tree that is deeper still scrolls sideways before six letters of a name are
/// lost, or fewer where `letters` says so. The other columns have a fixed width, and rows say in a tooltip what they
/// show.
class NamesFirst : public QObject {
 public:
  explicit NamesFirst(QTreeView* tree, int letters = 8);
  /// A column that has nothing to show is not there, whatever room there is.
  void leaveOut(int column, bool isLeftOut);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  /// Scrolling takes columns away and brings none back: they would come and go with every name.
  void fit(bool mayShow = true);
  void hideColumns(bool mayShow);
  /// So that names in sight keep this many letters.
  int leastWidth(int letters) const;

  QTreeView* tree_;
  int letters_;
  QSet<int> leftOut_;
};

/// Gives rows some air and, in trees that wrap words, the height their text needs, where Qt would cut it off.
class RowDelegate : public QStyledItemDelegate {
 public:
  explicit RowDelegate(QTreeView* tree);
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;

 private:
  bool wraps(const QModelIndex& index) const;
  bool isSpanned(const QModelIndex& index) const;

  QTreeView* tree_;
};

/// The op a row leads to (opRole); may be invalid.
inline BoundSymbolId opOf(const QModelIndex& index) {
  const auto op = index.data(opRole);
  return op.isValid() ? BoundSymbolId(op.toInt()) : BoundSymbolId();
}

}  // namespace retrograd::views
