// Pipeline stages in a listing: a band next to the marks, and lines where one stage ends and another begins.
#include <QPainter>
#include <QScrollBar>

#include "views/canvases/listing_view.h"
#include "views/stages/stage_plan.h"
#include "views/text/format.h"
#include "views/theme/stage_colors.h"

namespace retrograd::views {
namespace {

constexpr int farthest = 40;  ///< rows: markers and what else is in no stage are alone or in small groups
constexpr int grip = 4;       ///< pixels from a border at which it can be taken hold of

}  // namespace

int ListingView::stagesWidth() const {
  if (!context_.stages || !context_.stages->hasMarks()) return 0;
  const auto digits = QString::number(context_.stages->cut()->stages() - 1).size();
  return columnAt(static_cast<qreal>(digits)) + 8;
}

BoundSymbolId ListingView::firstOpAt(int visible) const {
  const auto op = opForKey(visible);
  return op ? op : firstOpFrom(rows_.rowAt(visible));
}

BoundSymbolId ListingView::firstOpFrom(std::int32_t row) const {
  for (; row < outline().rows(); ++row)
    if (const auto item = outline().item[row]; item >= 0) return index().lines[item];
  return {};
}

int ListingView::stageAt(int visible) const {
  if (!context_.stages || !context_.stages->hasMarks() || visible < 0 || visible >= rows_.count()) return -1;
  const auto op = firstOpAt(visible);
  return op ? context_.stages->mark(op) : -1;
}

int ListingView::stageAbove(int visible) const {
  for (int above = visible - 1; above >= std::max(0, visible - farthest); --above)
    if (const int stage = stageAt(above); stage >= 0) return stage;
  return -1;
}

bool ListingView::beginsStage(int visible) const {
  const int stage = stageAt(visible), above = stage < 0 ? -1 : stageAbove(visible);
  return above >= 0 && stage != above;
}

int ListingView::roomAbove(int visible) const {
  return stagesWidth() > 0 && beginsStage(visible) ? rowHeight_ * 3 / 4 : 0;
}

QString ListingView::crossingText(int visible) const {
  if (!beginsStage(visible)) return {};
  const int stage = stageAt(visible), above = stageAbove(visible);
  auto text = QStringLiteral("%1 \u25b8 %2").arg(above).arg(stage);
  if (std::abs(stage - above) != 1) return text;
  const auto& border = context_.stages->cut()->borders[std::min(stage, above)];
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
  font.setPointSizeF(font.pointSizeF() * 0.75);
  painter.save();
  painter.setFont(font);
  const QFontMetrics metrics(font);
  for (int visible = first; visible < last; ++visible) {
    const auto text = crossingText(visible);
    if (text.isEmpty()) continue;
    const auto color = stageColor(stageAt(visible), context_.theme->dark());
    const int y = borderY(visible);
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
  paintDrag(painter);
  painter.restore();
}

/// Where the border comes when it is let go, and in words whether it can.
void ListingView::paintDrag(QPainter& painter) const {
  if (drag_.stage < 0) return;
  const bool good = dropPlace() >= 0;
  const auto& colors = context_.theme->colors();
  const auto color = good ? stageColor(drag_.stage, context_.theme->dark()) : colors.gutterText;
  const int y = borderY(drag_.row);
  painter.setPen(QPen(color, 3));
  painter.drawLine(marksWidth(), y, viewport()->width(), y);
  const auto text =
      good ? tr("Stage %1 begins here").arg(drag_.descending ? drag_.stage - 1 : drag_.stage) : tr("Not here");
  const auto width = painter.fontMetrics().horizontalAdvance(text) + 12, height = painter.fontMetrics().height();
  const QRect tag(gutterWidth() + 6, std::max(0, y - height / 2), width, height);
  painter.setPen(QPen(color, 1));
  painter.setBrush(colors.background);
  painter.drawRoundedRect(tag, 4, 4);
  painter.setPen(colors.text);
  painter.drawText(tag, Qt::AlignCenter, text);
}

int ListingView::edgeAt(int y) const {
  const int row = rowAtY(y);
  if (row < 0) return y < 0 ? verticalScrollBar()->value() : rows_.count();
  return y > rowTop(row) + heightOf(row) / 2 ? row + 1 : row;
}

int ListingView::borderAt(const QPoint& point) const {
  if (stagesWidth() == 0 || point.x() < marksWidth() || point.x() >= gutterWidth()) return -1;
  const int row = edgeAt(point.y());
  if (std::abs(borderY(row) - point.y()) > std::max(grip, roomAbove(row) / 2)) return -1;
  const int stage = stageAt(row), above = stageAbove(row);
  return stage >= 0 && above >= 0 && std::abs(stage - above) == 1 ? row : -1;
}

std::int64_t ListingView::dropPlace() const {
  if (!context_.stages->cut()) return -1;
  for (int row = drag_.row; row < std::min(rows_.count(), drag_.row + farthest); ++row) {
    const auto at = context_.stages->cut()->position(firstOpAt(row));
    if (at < 0) continue;
    const auto place = static_cast<std::size_t>(at) + (drag_.descending ? 1 : 0);
    return context_.stages->canMoveCut(drag_.stage, place) ? static_cast<std::int64_t>(place) : -1;
  }
  return -1;
}

bool ListingView::takeBorder(const QPoint& point) {
  const int row = borderAt(point);
  if (row < 0) return false;
  const int stage = stageAt(row), above = stageAbove(row);
  drag_ = {std::max(stage, above), stage < above, row};
  return true;
}

void ListingView::dragBorder(int y) {
  if (y < 0 || y > viewport()->height()) verticalScrollBar()->setValue(verticalScrollBar()->value() + (y < 0 ? -1 : 1));
  drag_.row = edgeAt(std::clamp(y, 0, viewport()->height() - 1));
  viewport()->update();
}

void ListingView::letGoOfBorder(bool drop) {
  const auto place = drop && context_.stages->hasMarks() ? dropPlace() : -1;
  const int stage = drag_.stage;
  drag_ = {};
  viewport()->update();
  if (place >= 0) context_.stages->moveCut(stage, static_cast<std::size_t>(place));
}

}  // namespace retrograd::views
