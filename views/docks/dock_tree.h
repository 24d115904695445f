#pragma once
#include <QStyledItemDelegate>
#include <QTreeView>

#include "views/models/tree_model.h"

namespace retrograd::views {

/// What the trees of the docks have in common: name for screen readers, whole rows, no frame.
void prepareTree(QTreeView& tree, const QString& name, bool uniform);

/// Gives rows some air and, in trees that wrap words, the height their text needs, where Qt would cut it off.
class RowDelegate : public QStyledItemDelegate {
 public:
  explicit RowDelegate(QTreeView* tree);
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;

 private:
  QTreeView* tree_;
};

/// The op a row leads to (opRole); may be invalid.
inline BoundSymbolId opOf(const QModelIndex& index) {
  const auto op = index.data(opRole);
  return op.isValid() ? BoundSymbolId(op.toInt()) : BoundSymbolId();
}

}  // namespace retrograd::views
