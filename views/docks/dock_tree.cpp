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

}  // namespace retrograd::views
