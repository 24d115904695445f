#include <QPainter>
#include <QRegularExpression>
#include <QScrollBar>
#include <cmath>

#include "core/base/enum_array.h"
#include "views/canvases/diff_view.h"
#include "views/content/token_color.h"

namespace retrograd::views {
namespace {

using Kind = DiffRow::Kind;

QColor groundOf(const DiffColors& colors, Kind kind) {
  switch (kind) {
    case Kind::same: return {};
    case Kind::changed: return colors.changed;
    case Kind::onlyLeft: return colors.onlyLeft;
    case Kind::onlyRight: return colors.onlyRight;
    case Kind::movedAway:
    case Kind::movedHere: return colors.moved;
  }
  return {};
}

}  // namespace

QColor markOf(const DiffColors& colors, Kind kind) {
  switch (kind) {
    case Kind::same: return {};
    case Kind::changed: return colors.changedMark;
    case Kind::onlyLeft: return colors.onlyLeftMark;
    case Kind::onlyRight: return colors.onlyRightMark;
    case Kind::movedAway:
    case Kind::movedHere: return colors.movedMark;
  }
  return {};
}

void DiffView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  const auto& colors = theme_->colors();
  painter.fillRect(viewport()->rect(), colors.background);
  if (rows_.count() == 0 || !message_.isEmpty()) {
    painter.setFont(font());
    painter.setPen(colors.gutterText);
    const auto text = !message_.isEmpty() ? message_ : rows_.comparison() ? tr("Neither trace has ops") : QString();
    painter.drawText(viewport()->rect().adjusted(40, 20, -40, -20), Qt::AlignCenter | Qt::TextWordWrap, text);
    return;
  }
  painter.setFont(viewport()->font());
  const int before = widestText_, first = verticalScrollBar()->value();
  const int last = std::min(rows_.count(), first + viewport()->height() / rowHeight_ + 2);
  for (auto side : bothSides) {
    const int x = side == Side::left ? 0 : halfWidth();
    painter.fillRect(QRect(x, 0, gutterWidth() - 1, viewport()->height()), colors.gutter);
  }
  for (int visible = first; visible < last; ++visible) paintRow(painter, visible, (visible - first) * rowHeight_);
  painter.fillRect(QRect(halfWidth() - 1, 0, 1, viewport()->height()), colors.border);
  paintOverview(painter);
  // Wider lines came into view: the scroll bar learns of it after this paint.
  if (widestText_ != before) QMetaObject::invokeMethod(this, &DiffView::updateScrollBars, Qt::QueuedConnection);
}

void DiffView::paintRow(QPainter& painter, int visible, int top) const {
  const QRect whole(0, top, viewport()->width() - overviewWidth, rowHeight_);
  if (rows_.folded(visible) > 1) {
    paintFold(painter, visible, whole);
  } else {
    const int half = halfWidth();
    paintSide(painter, visible, Side::left, QRect(0, top, half - 1, rowHeight_));
    paintSide(painter, visible, Side::right, QRect(half, top, whole.width() - half, rowHeight_));
  }
  if (visible != cursor_) return;
  const auto highlight = palette().color(hasFocus() ? QPalette::Highlight : QPalette::Mid);
  painter.setPen(QPen(highlight, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(whole.adjusted(0, 0, -1, -1));
  // The side of the keyboard, marked by a bar at its edge.
  if (rows_.folded(visible) == 1)
    painter.fillRect(QRect(side_ == Side::left ? 0 : halfWidth(), top, 3, rowHeight_), highlight);
}

void DiffView::paintSide(QPainter& painter, int visible, Side side, const QRect& rect) const {
  const auto& colors = theme_->colors();
  const auto& own = theme_->colors().diff;
  const auto& row = rows_.row(visible);
  const bool isHere = side == Side::left ? row.showsLeft() : row.showsRight();
  const auto text = rect.adjusted(gutterWidth(), 0, 0, 0);
  if (!isHere) {
    painter.fillRect(text, own.gap);
    painter.setPen(QPen(colors.border, 1, Qt::DotLine));
    painter.drawLine(text.left(), text.center().y(), text.right(), text.center().y());
    return;
  }
  const auto mark = markOf(own, row.kind);
  if (const auto ground = groundOf(own, row.kind); ground.isValid()) painter.fillRect(rect, ground);
  if (const auto number = gutterText(visible, side); !number.isEmpty()) {
    painter.setPen(colors.gutterText);
    painter.drawText(QRectF(rect.left(), rect.top(), gutterWidth() - 2.6 * charWidth_, rect.height()),
                     Qt::AlignRight | Qt::AlignVCenter, number);
  }
  if (mark.isValid()) {
    auto font = painter.font();
    font.setBold(true);
    painter.setFont(font);
    painter.setPen(mark);
    painter.drawText(QRectF(rect.left() + gutterWidth() - 2.4 * charWidth_, rect.top(), 2 * charWidth_, rect.height()),
                     Qt::AlignCenter, DiffRows::sign(row.kind));
    font.setBold(false);
    painter.setFont(font);
  }
  painter.save();
  painter.setClipRect(text);
  paintText(painter, visible, side, text, mark);
  painter.restore();
}

void DiffView::paintText(QPainter& painter, int visible, Side side, const QRect& rect, const QColor& mark) const {
  const auto& colors = theme_->colors();
  const auto& [line, changed] = prepared(visible, side);
  const qreal left =
      rect.left() + charWidth_ / 2 + 2 * charWidth_ * rows_.depth(visible, side) - horizontalScrollBar()->value();
  auto ground = mark;
  ground.setAlphaF(theme_->dark() ? 0.34F : 0.22F);
  for (std::size_t i = 0; i < line.tokens.size(); ++i) {
    const auto& token = line.tokens[i];
    const qreal x = left + token.begin * charWidth_, width = token.length * charWidth_;
    if (x > rect.right()) break;
    if (x + width < rect.left()) continue;
    if (i < changed.size() && changed[i] && token.kind != TokenKind::plain) {
      // The ground under the word, not under the blanks before a comment.
      const auto blanks = static_cast<int>(
          line.text.mid(token.begin, token.length).indexOf(QRegularExpression(QStringLiteral("[^ #]"))));
      const qreal skip = std::max(0, blanks) * charWidth_;
      painter.fillRect(QRectF(x + skip - 1, rect.top() + 1, width - skip + 2, rect.height() - 2), ground);
      painter.fillRect(QRectF(x + skip - 1, rect.bottom() - 1, width - skip + 2, 1.5), mark);
    }
    painter.setPen(colorOf(colors, token.kind));
    painter.drawText(QPointF(x, rect.top() + ascent_ + 1), line.text.mid(token.begin, token.length));
  }
}

void DiffView::paintFold(QPainter& painter, int visible, const QRect& rect) const {
  const auto& colors = theme_->colors();
  painter.fillRect(rect, colors.diff.gap);
  painter.setPen(colors.gutterText);
  const auto words = QStringLiteral("\u22ef  %1  \u22ef").arg(rows_.explanation(visible));
  painter.drawText(rect, Qt::AlignCenter, words);
}

QImage DiffView::makeOverview() const {
  const auto& own = theme_->colors().diff;
  const auto ratio = devicePixelRatioF();
  QImage image(overviewRect().size() * ratio, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(ratio);
  image.fill(theme_->colors().gutter);
  QPainter painter(&image);
  painter.fillRect(QRect(0, 0, 1, viewport()->height()), theme_->colors().border);
  const double scale = static_cast<double>(viewport()->height()) / std::max(rows_.count(), visibleRows());
  // Of rows that share a pixel, one is enough; the left half of the strip is the left side's, as in the rows.
  EnumArray<Side, double, 2> drawn{-1, -1};
  for (auto begin : rows_.blocks()) {
    for (int visible = begin;
         visible < rows_.count() && rows_.folded(visible) == 1 && rows_.row(visible).kind != Kind::same; ++visible) {
      const auto& row = rows_.row(visible);
      const double y = std::floor(visible * scale), height = std::max(2.0, scale);
      for (auto side : bothSides) {
        if (!(side == Side::left ? row.showsLeft() : row.showsRight()) || y < drawn[side]) continue;
        drawn[side] = y + height;
        painter.fillRect(QRectF(side == Side::left ? 3 : 8, y, 4, height), markOf(own, row.kind));
      }
    }
  }
  return image;
}

void DiffView::paintOverview(QPainter& painter) const {
  if (overview_.isNull()) overview_ = makeOverview();
  const auto area = overviewRect();
  painter.drawImage(area.topLeft(), overview_);
  painter.setPen(QPen(theme_->colors().gutterText, 1));
  painter.setBrush(Qt::NoBrush);
  const double scale = static_cast<double>(area.height()) / std::max(rows_.count(), visibleRows());
  const double top = verticalScrollBar()->value() * scale,
               height = std::max(6.0, std::min(visibleRows(), rows_.count()) * scale);
  painter.drawRect(QRectF(area.left() + 1.5, top + 0.5, area.width() - 3, height - 1));
}

}  // namespace retrograd::views
