// Pipeline stages in a listing: a band beside the marks, and lines where one stage ends and another begins.
#include <QPainter>
#include <QScrollBar>

#include "views/canvases/listing_view.h"
#include "views/models/format.h"
#include "views/models/stage_colors.h"
#include "views/session/stage_plan.h"

namespace retrograd::views {

int ListingView::stagesWidth() const {
  if (!context_.stages || !context_.stages->hasMarks()) return 0;
  const auto digits = QString::number(context_.stages->cut()->stages() - 1).size();
  return columnAt(static_cast<qreal>(digits)) + 8;
}

int ListingView::stageAt(int visible) const {
  if (!context_.stages || !context_.stages->hasMarks() || visible < 0 || visible >= rows_.count()) return -1;
  if (const auto op = opForKey(visible)) return context_.stages->mark(op);
  // The header of a module: the first op below it.
  for (auto row = rows_.rowAt(visible); row < outline().rows(); ++row)
    if (const auto item = outline().item[static_cast<std::size_t>(row)]; item >= 0) return context_.stages->mark(index().lines[static_cast<std::size_t>(item)]);
  return -1;
}

int ListingView::stageAbove(int visible) const {
  constexpr int farthest = 40;  // markers and what else is in no stage stand alone or in small groups
  for (int above = visible - 1; above >= std::max(0, visible - farthest); --above)
    if (const int stage = stageAt(above); stage >= 0) return stage;
  return -1;
}

QString ListingView::crossingText(int visible) const {
  const int stage = stageAt(visible), above = stageAbove(visible);
  if (stage < 0 || above < 0 || stage == above) return {};
  const auto text = QStringLiteral("%1 \u25b8 %2").arg(above).arg(stage);
  if (std::abs(stage - above) != 1) return text;
  const auto& border = context_.stages->cut()->borders[static_cast<std::size_t>(std::min(stage, above))];
  const auto bytes = stage > above ? border.valueBytes : border.gradientBytes;
  return QStringLiteral("%1: %2").arg(text, bytesText(bytes));
}

/// The stage's colour; its number where it begins and in the first row in sight.
void ListingView::paintStage(QPainter& painter, int visible, const QRect& rect) const {
  const int stage = stageAt(visible);
  if (stage < 0) return;
  const bool dark = context_.theme->dark();
  const QRect band(marksWidth(), rect.top(), stagesWidth() - 1, rect.height());
  painter.fillRect(band, stageFill(stage, dark));
  painter.fillRect(QRect(band.left(), band.top(), 3, band.height()), stageColor(stage, dark));
  if (visible != verticalScrollBar()->value() && stageAbove(visible) == stage) return;
  painter.setPen(context_.theme->colors().text);
  painter.drawText(band.adjusted(3, 0, 0, 0), Qt::AlignCenter, QString::number(stage));
}

void ListingView::paintStageBorders(QPainter& painter, int first, int last) const {
  if (stagesWidth() == 0) return;
  const auto& colors = context_.theme->colors();
  auto font = painter.font();
  font.setPointSizeF(font.pointSizeF() * 0.85);
  painter.save();
  painter.setFont(font);
  const QFontMetrics metrics(font);
  for (int visible = first; visible < last; ++visible) {
    const auto text = crossingText(visible);
    if (text.isEmpty()) continue;
    const auto color = stageColor(stageAt(visible), context_.theme->dark());
    const int y = (visible - first) * rowHeight_;
    painter.setPen(QPen(color, 1, Qt::DashLine));
    painter.drawLine(marksWidth(), y, viewport()->width(), y);
    const int width = metrics.horizontalAdvance(text) + 12, height = metrics.height();
    const QRect tag(viewport()->width() - width - 6, std::max(0, y - height / 2), width, height);
    if (tag.left() < gutterWidth()) continue;
    painter.setPen(QPen(color, 1));
    painter.setBrush(colors.background);
    painter.drawRoundedRect(tag, 4, 4);
    painter.setPen(colors.text);
    painter.drawText(tag, Qt::AlignCenter, text);
  }
  painter.restore();
}

}  // namespace retrograd::views
