#include "views/widgets/flow_layout.h"

#include <algorithm>

namespace retrograd::views {

FlowLayout::~FlowLayout() {
  for (auto* item : items_) delete item;
}

QLayoutItem* FlowLayout::takeAt(int index) {
  auto* item = itemAt(index);
  if (item) items_.erase(items_.begin() + index);
  return item;
}

int FlowLayout::heightForWidth(int width) const {
  const auto margins = contentsMargins();
  return arrange(QRect(0, 0, width - margins.left() - margins.right(), 0), false) + margins.top() + margins.bottom();
}

QSize FlowLayout::sizeHint() const {
  QSize size(0, 0);
  int shown = 0;
  for (auto* item : items_) {
    if (item->isEmpty()) continue;
    const auto wanted = item->sizeHint();
    size =
        QSize(size.width() + wanted.width() + (shown++ > 0 ? spacing() : 0), std::max(size.height(), wanted.height()));
  }
  const auto margins = contentsMargins();
  return size + QSize(margins.left() + margins.right(), margins.top() + margins.bottom());
}

/// As narrow as the widest control; the height then follows from the width.
QSize FlowLayout::minimumSize() const {
  QSize size(0, 0);
  for (auto* item : items_)
    if (!item->isEmpty()) size = size.expandedTo(item->minimumSize());
  const auto margins = contentsMargins();
  return size + QSize(margins.left() + margins.right(), margins.top() + margins.bottom());
}

void FlowLayout::setGeometry(const QRect& rect) {
  QLayout::setGeometry(rect);
  arrange(contentsRect(), true);
}

int FlowLayout::arrange(const QRect& rect, bool puts) const {
  int y = rect.top();
  for (std::size_t begin = 0, end = 0; begin < items_.size(); begin = end) {
    int width = 0, height = 0, expanding = 0;
    for (; end < items_.size(); ++end) {
      if (items_[end]->isEmpty()) continue;
      const auto wanted = items_[end]->sizeHint();
      const int with = width + (width > 0 ? spacing() : 0) + wanted.width();
      if (width > 0 && with > rect.width()) break;
      width = with;
      height = std::max(height, wanted.height());
      expanding += items_[end]->expandingDirections() & Qt::Horizontal ? 1 : 0;
    }
    if (height == 0) break;  // nothing that shows is left
    int x = rect.left(), rest = std::max(0, rect.width() - width);
    for (std::size_t i = begin; puts && i < end; ++i) {
      if (items_[i]->isEmpty()) continue;
      auto size = items_[i]->sizeHint();
      if (items_[i]->expandingDirections() & Qt::Horizontal) {
        const int share = rest / expanding--;
        rest -= share;
        size.rwidth() += share;
      }
      size.setWidth(std::min(size.width(), rect.width()));
      items_[i]->setGeometry(QRect(QPoint(x, y + (height - size.height()) / 2), size));
      x += size.width() + spacing();
    }
    y += height + spacing();
  }
  return std::max(0, y - rect.top() - spacing());
}

}  // namespace retrograd::views
