#include "views/widgets/state_delegate.h"

#include <QPainter>

#include "views/models/values_model.h"
#include "views/theme/tokens.h"

namespace retrograd::views {

void StateDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  RowDelegate::paint(painter, option, index);
  const auto mark = index.data(ValuesModel::markRole);
  if (!mark.isValid()) return;
  const double size = tokens::glyph - 1;
  const auto color =
      option.palette.color(option.state & QStyle::State_Selected ? QPalette::HighlightedText : QPalette::Text);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(QPen(color, 1.5));
  painter->setBrush(mark.toBool() ? QBrush(color) : QBrush(Qt::NoBrush));
  painter->drawEllipse(QRectF(option.rect.left() + tokens::gap, option.rect.center().y() + 1 - size / 2, size, size));
  painter->restore();
}

QSize StateDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  constexpr int mostCharacters = 18;
  auto size = RowDelegate::sizeHint(option, index);
  const bool isMark = index.data(ValuesModel::markRole).isValid();
  size.setWidth(isMark ? tokens::glyph + 2 * tokens::gap
                       : std::min(size.width(), mostCharacters * option.fontMetrics.averageCharWidth()));
  return size;
}

void StateDelegate::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
  RowDelegate::initStyleOption(option, index);
  if (index.data(ValuesModel::markRole).isValid()) option->text.clear();
}

}  // namespace retrograd::views
