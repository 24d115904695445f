// The text of a listing: the code, cut in its middle where there is no room for it, and beside it columns with shapes and origins.
#include <QPainter>

#include "views/canvases/listing_view.h"
#include "views/content/token_color.h"

namespace retrograd::views {
namespace {

constexpr qreal keptOpacity = 0.55;  ///< of lines that show though they do not pass the filter
// Characters. A column comes when the code keeps at least this much; it is no wider than what it shows, and no wider than this. Shapes take a third of the
// room at most, as long as the one of a tensor of three dimensions fits: the second result of a call may be cut before the code is. Origins come with what
// half a window of 1280 pixels has.
constexpr int leastCode = 30, roomyCode = 34, leastColumn = 8, oneShape = 15, widestColumn = 26, widestOriginColumn = 14, between = 2;

}  // namespace

void ListingView::setNumbers(bool on) {
  numbers_ = on;
  viewport()->update();
}

int ListingView::numbersWidth() const {
  if (!numbers_ || !document()) return 0;
  return columnAt(static_cast<qreal>(QString::number(index().document().boundSymbolCount()).size()) + 1) + tokens::tight;
}

ListingView::Columns ListingView::columns() const {
  const int width = viewport()->width() - columnRect().width();  // left of the number column
  const int room = static_cast<int>((width - gutterWidth() - rowHeight_) / charWidth_);
  const int widestShape = std::clamp(room / 3, oneShape, widestColumn);
  const int shape = std::clamp(widestShape_, leastColumn, widestShape) + between, origin = std::clamp(widestOrigin_, leastColumn, widestOriginColumn) + between;
  Columns columns{width, width, width};
  if (room - shape < leastCode) return columns;
  if (widestOrigin_ > 0 && room - shape - origin >= roomyCode) columns.origin = width - columnAt(origin);
  columns.shape = columns.origin - columnAt(shape);
  columns.codeEnd = columns.shape - columnAt(between);
  return columns;
}

LineText ListingView::shownCode(int visible) const {
  const auto& line = lineText(visible);
  const int end = line.codeLength < 0 ? viewport()->width() - columnRect().width() : columns().codeEnd;  // a header has no columns
  return codeWithin(line, std::max(1, static_cast<int>((end - textLeft(visible)) / charWidth_)));
}

ValueId ListingView::valueAt(const QPoint& point, int visible) const {
  const int at = static_cast<int>((point.x() - textLeft(visible)) / charWidth_);
  if (point.x() < textLeft(visible)) return {};
  for (const auto& token : shownCode(visible).tokens)
    if (at >= token.begin && at < token.begin + token.length) return token.value;
  return {};
}

void ListingView::paintText(QPainter& painter, int visible, const QRect& rect) const {
  const auto& colors = context_.theme->colors();
  const auto line = shownCode(visible);
  const int left = textLeft(visible);
  const auto marked = context_.selection->value();
  if (isKept(visible)) painter.setOpacity(keptOpacity);
  for (const auto& token : line.tokens) {
    const int x = left + columnAt(token.begin);
    const int width = columnAt(token.length);
    if (marked && token.value == marked) painter.fillRect(QRect(x - 1, rect.top() + 1, width + 2, rowHeight_ - 2), colors.valueMark);
    auto font = painter.font();
    font.setBold(token.kind == TokenKind::header);
    font.setUnderline(token.kind == TokenKind::ownName);
    painter.setFont(font);
    painter.setPen(colorOf(colors, token.kind));
    painter.drawText(QPointF(left + token.begin * charWidth_, rect.top() + ascent_ + 1), line.text.mid(token.begin, token.length));
  }
  auto font = painter.font();
  font.setBold(false);
  font.setUnderline(false);
  painter.setFont(font);
}

void ListingView::paintColumns(QPainter& painter, int visible, const QRect& rect) const {
  const auto controls = controlColorsOf(context_.theme->dark(), context_.theme->highContrast());
  const auto& line = lineText(visible);
  const auto places = columns();
  const auto draw = [&](const QString& text, int left, int right) {
    const int characters = static_cast<int>((right - left) / charWidth_) - 1;
    if (text.isEmpty() || characters < 2) return;
    const auto shown = text.size() <= characters ? text : text.left(characters - 1) + QChar(0x2026);
    painter.drawText(QPointF(left, rect.top() + ascent_ + 1), shown);
  };
  painter.setPen(controls.columnText);
  draw(line.shape, places.shape, places.origin);
  draw(line.origin, places.origin, viewport()->width() - columnRect().width());
  if (const auto op = opAt(visible); op && numbersWidth() > 0) {
    painter.setOpacity(1);
    painter.setClipping(false);
    painter.setPen(context_.theme->colors().gutterText);
    painter.drawText(QRect(gutterWidth() - numbersWidth(), rect.top(), numbersWidth() - tokens::tight, rect.height()), Qt::AlignRight | Qt::AlignVCenter,
                     QStringLiteral("#%1").arg(op.index));
  }
}

}  // namespace retrograd::views
