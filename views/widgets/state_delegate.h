#pragma once
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

/// The state of a value (ValuesModel::state) as a mark: a disc where it is here now, a ring where it is shown as it was
/// at the op. Any other state keeps its words, up to a width; a longer one is elided, and its tooltip has the whole.
class StateDelegate : public RowDelegate {
 public:
  using RowDelegate::RowDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;
};

}  // namespace retrograd::views
