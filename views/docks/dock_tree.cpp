#include "views/docks/dock_tree.h"

#include <QHeaderView>

namespace retrograd::views {

void prepareTree(QTreeView& tree, const QString& name, bool uniform) {
  tree.setAccessibleName(name);
  tree.setFrameShape(QFrame::NoFrame);
  tree.setUniformRowHeights(uniform);
  tree.setAlternatingRowColors(false);
  tree.setSelectionBehavior(QAbstractItemView::SelectRows);
  tree.setEditTriggers(QAbstractItemView::NoEditTriggers);
  tree.setExpandsOnDoubleClick(false);
  tree.setAllColumnsShowFocus(true);
  tree.setTextElideMode(Qt::ElideRight);
  tree.header()->setHighlightSections(false);
}

WrapDelegate::WrapDelegate(QTreeView* tree) : QStyledItemDelegate(tree), tree_(tree) {
  QObject::connect(tree->header(), &QHeaderView::sectionResized, tree, [tree] { QMetaObject::invokeMethod(tree, &QTreeView::doItemsLayout, Qt::QueuedConnection); });
}

QSize WrapDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  auto size = QStyledItemDelegate::sizeHint(option, index);
  if (index.column() != index.model()->columnCount() - 1) return size;
  const int width = std::max(40, tree_->columnWidth(index.column()) - 8);
  const auto text = option.fontMetrics.boundingRect(QRect(0, 0, width, 10000), Qt::TextWordWrap | Qt::AlignLeft, index.data().toString());
  size.setHeight(std::max(size.height(), text.height() + 4));
  return size;
}

}  // namespace retrograd::views
