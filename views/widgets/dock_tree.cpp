#include "views/widgets/dock_tree.h"

#include <QEvent>
#include <QHeaderView>
#include <QScrollBar>

#include "views/widgets/item_view.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {

void prepareTree(QTreeView& tree, QAbstractItemModel* model, QAnyStringView object, const QString& name, TreeLook look,
                 int copied) {
  tree.setObjectName(object);
  tree.setAccessibleName(name);
  tree.setModel(model);
  if (look.isSorted) new SortedRows(tree);
  tree.setFrameShape(QFrame::NoFrame);
  tree.setRootIsDecorated(!look.isFlat);
  tree.setUniformRowHeights(!look.wraps);
  tree.setWordWrap(look.wraps);
  if (look.wraps && !look.isFlat) tree.setIndentation(14);  // sentences need the room
  tree.setAlternatingRowColors(false);
  tree.setSelectionBehavior(QAbstractItemView::SelectRows);
  tree.setItemDelegate(new RowDelegate(&tree));
  tree.setEditTriggers(QAbstractItemView::NoEditTriggers);
  tree.setExpandsOnDoubleClick(false);
  tree.setAllColumnsShowFocus(true);
  tree.setTextElideMode(Qt::ElideRight);
  tree.header()->setHighlightSections(false);
  tree.header()->setTextElideMode(Qt::ElideRight);
  addCopy(tree, copied);
  letTypeAhead(tree);
}

QStandardItem* textCell(const QString& text) {
  auto* item = new QStandardItem(text);
  item->setEditable(false);
  item->setToolTip(text);
  return item;
}

QStandardItem* numberCell(const QString& text, double number) {
  auto* item = textCell(text);
  item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  item->setData(number, sortRole);
  return item;
}

void setWidths(QTreeView& tree, std::initializer_list<std::pair<int, int>> widths) {
  for (const auto& [column, width] : widths) tree.header()->resizeSection(column, width);
}

ColumnFitter::ColumnFitter(QTreeView* tree) : QObject(tree), tree_(tree) {
  QObject::connect(tree->header(), &QHeaderView::sectionResized, this, [this](int column) {
    if (!fitting_) chosen_.insert(column);
  });
}

void ColumnFitter::fit(bool onlyWider) {
  fitting_ = true;
  for (int column = 0; column < tree_->model()->columnCount(); ++column) {
    if (chosen_.contains(column) || tree_->header()->isSectionHidden(column)) continue;
    const int before = tree_->columnWidth(column);
    tree_->resizeColumnToContents(column);
    if (const auto limit = limits_.find(column); limit != limits_.end())
      tree_->setColumnWidth(column, std::min(tree_->columnWidth(column),
                                             *limit * tree_->fontMetrics().horizontalAdvance(QLatin1Char('0'))));
    if (onlyWider && tree_->columnWidth(column) < before) tree_->setColumnWidth(column, before);
  }
  fitting_ = false;
}

NamesFirst::NamesFirst(QTreeView* tree, int letters) : QObject(tree), tree_(tree), letters_(letters) {
  tree->viewport()->installEventFilter(this);
  for (auto signal : {&QTreeView::expanded, &QTreeView::collapsed})
    QObject::connect(tree, signal, this, [this] { fit(); });
  QObject::connect(tree->model(), &QAbstractItemModel::modelReset, this, [this] { fit(); });
  QObject::connect(tree->model(), &QAbstractItemModel::rowsInserted, this, [this] { fit(); });
  QObject::connect(tree->verticalScrollBar(), &QScrollBar::valueChanged, this, [this] { fit(false); });
}

void NamesFirst::leaveOut(int column, bool isLeftOut) {
  if (isLeftOut) leftOut_.insert(column);
  else leftOut_.remove(column);
  fit();
}

bool NamesFirst::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) fit();
  return QObject::eventFilter(watched, event);
}

void NamesFirst::fit(bool mayShow) {
  const int fewest = std::min(6, letters_);
  // Sizes of rows that were just opened, and of the other columns, are known after this turn of the event loop.
  QMetaObject::invokeMethod(
      this,
      [this, mayShow, fewest] {
        hideColumns(mayShow);
        auto* header = tree_->header();
        const int others = header->length() - header->sectionSize(0);
        header->resizeSection(0, std::max(tree_->viewport()->width() - others, leastWidth(fewest)));
      },
      Qt::QueuedConnection);
}

void NamesFirst::hideColumns(bool mayShow) {
  auto* header = tree_->header();
  if (mayShow)
    for (int column = 1; column < header->count(); ++column)
      header->setSectionHidden(column, leftOut_.contains(column));
  const int least = leastWidth(letters_);
  for (int column = header->count() - 1; column > 0; --column)
    if (tree_->viewport()->width() - (header->length() - header->sectionSize(0)) < least) header->hideSection(column);
}

int NamesFirst::leastWidth(int letters) const {
  constexpr int margins = 8;
  const auto& metrics = tree_->fontMetrics();
  int least = 0;
  for (auto index = tree_->indexAt(QPoint(0, 0));
       index.isValid() && tree_->visualRect(index).top() < tree_->viewport()->height();
       index = tree_->indexBelow(index)) {
    int indent = 0;
    for (auto level = index; level.isValid(); level = level.parent()) indent += tree_->indentation();
    least = std::max(
        least, indent +
                   std::min(metrics.horizontalAdvance(index.data().toString()), letters * metrics.averageCharWidth()) +
                   margins);
  }
  return least;
}

RowDelegate::RowDelegate(QTreeView* tree) : QStyledItemDelegate(tree), tree_(tree) {
  QObject::connect(tree->header(), &QHeaderView::sectionResized, tree, [tree] {
    if (tree->wordWrap()) QMetaObject::invokeMethod(tree, &QTreeView::doItemsLayout, Qt::QueuedConnection);
  });
}

bool RowDelegate::isSpanned(const QModelIndex& index) const {
  return index.column() == 0 && tree_->isFirstColumnSpanned(index.row(), index.parent());
}

bool RowDelegate::wraps(const QModelIndex& index) const {
  return tree_->wordWrap() && !index.data(oneLineRole).toBool();
}

void RowDelegate::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
  QStyledItemDelegate::initStyleOption(option, index);
  if (option->displayAlignment & Qt::AlignTop) option->rect.adjust(0, 2, 0, 0);
  if (!wraps(index)) option->features &= ~QStyleOptionViewItem::WrapText;
  // A sentence over all columns ends where one sees it, not where the last column does.
  if (isSpanned(index)) option->rect.setRight(std::min(option->rect.right(), tree_->viewport()->width() - 1));
}

QSize RowDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  constexpr int air = 4;
  auto size = QStyledItemDelegate::sizeHint(option, index);
  size.setHeight(option.fontMetrics.height() + air);
  if (!wraps(index)) return size;
  int indent = 0;
  if (index.column() == 0)
    for (auto level = index; level.isValid(); level = level.parent()) indent += tree_->indentation();
  const int columns = isSpanned(index) ? std::min(tree_->header()->length(), tree_->viewport()->width())
                                       : tree_->columnWidth(index.column());
  const int width = std::max(40, columns - indent - 8);
  const auto text = option.fontMetrics.boundingRect(QRect(0, 0, width, 10000), Qt::TextWordWrap | Qt::AlignLeft,
                                                    index.data().toString());
  size.setHeight(std::max(size.height(), text.height() + air));
  return size;
}

}  // namespace retrograd::views
