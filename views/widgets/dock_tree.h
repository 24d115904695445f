#pragma once
#include <QHash>
#include <QSet>
#include <QStyledItemDelegate>
#include <QTreeView>

#include "views/models/tree_model.h"

namespace retrograd::views {

/// What the trees of the docks have in common: name for screen readers, whole rows, no frame; they can be copied from, and typed letters search in them.
/// Copying takes whole rows, or one column alone where it is given.
void prepareTree(QTreeView& tree, const QString& name, bool uniform, int copied = -1);

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

/// The first column has the width that the others leave, and at least what six letters of each name in sight need: a deep tree scrolls sideways before its
/// names are lost. The other columns have a fixed width.
class NamesFirst : public QObject {
 public:
  explicit NamesFirst(QTreeView* tree);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fit();
  int leastWidth() const;

  QTreeView* tree_;
};

/// Gives rows some air and, in trees that wrap words, the height their text needs, where Qt would cut it off.
class RowDelegate : public QStyledItemDelegate {
 public:
  explicit RowDelegate(QTreeView* tree);
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;

 private:
  bool isSpanned(const QModelIndex& index) const;

  QTreeView* tree_;
};

/// The op a row leads to (opRole); may be invalid.
inline BoundSymbolId opOf(const QModelIndex& index) {
  const auto op = index.data(opRole);
  return op.isValid() ? BoundSymbolId(op.toInt()) : BoundSymbolId();
}

}  // namespace retrograd::views
