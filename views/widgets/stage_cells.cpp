#include "views/widgets/stage_cells.h"

#include <QPainter>

#include "views/models/stages_model.h"
#include "views/theme/stage_colors.h"

namespace retrograd::views {

void StageCells::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const auto share = index.data(shareRole);
  const auto swatch = index.data(swatchRole);
  const bool selected = option.state & QStyle::State_Selected;
  auto text = option;
  if (swatch.isValid()) text.rect.adjust(18, 0, 0, 0);
  if (share.isValid() && !selected) {
    const auto area = option.rect.adjusted(3, 2, -3, -2);
    const int width = static_cast<int>(area.width() * share.toDouble());
    painter->fillRect(QRect(area.left(), area.top(), width, area.height()),
                      stageFill(index.data(stageRole).toInt(), theme_->dark()));
  }
  if (swatch.isValid()) {
    if (selected)
      painter->fillRect(
          option.rect, option.palette.brush(option.state & QStyle::State_Active ? QPalette::Active : QPalette::Inactive,
                                            QPalette::Highlight));
    const QRect box(option.rect.left() + 5, option.rect.center().y() - 5, 11, 11);
    painter->fillRect(box, stageColor(swatch.toInt(), theme_->dark()));
  }
  RowDelegate::paint(painter, text, index);
}

}  // namespace retrograd::views
