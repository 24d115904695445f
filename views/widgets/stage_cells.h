#pragma once
#include "views/theme/theme.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

/// Cells of the pipeline's tables: behind a figure a bar as long as its share, before a stage its colour.
class StageCells : public RowDelegate {
 public:
  StageCells(Theme* theme, QTreeView* tree) : RowDelegate(tree), theme_(theme) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 private:
  Theme* theme_;
};

}  // namespace retrograd::views
