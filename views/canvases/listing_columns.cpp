// The text of a listing: the code, cut in its middle where there is no room for it, and next to it columns with shapes
// and origins.
#include <QPainter>

#include "views/canvases/listing_view.h"
#include "views/content/token_color.h"

namespace retrograd::views {
namespace {

constexpr qreal keptOpacity = 0.55;  ///< of lines that show though they do not pass the filter
// Characters. A column comes when the code keeps at least this much; it is no wider than what it shows, and no wider
// than this while code is cut. Shapes then take a third of the room at most, as long as the one of a tensor of three
// dimensions fits: a call's other results are a number before its code is cut. Origins come while the code keeps enough
// to be read, with the bytes that are saved while it keeps more. What room all code leaves is the columns'.
constexpr int leastCode = 28, roomyCode = 34, easyCode = 40;
constexpr int leastColumn = 8, oneShape = 16, widestColumn = 26, widestOriginColumn = 14, widestBriefOrigin = 22,
              between = 2;

}  // namespace

void ListingView::setNumbers(bool on) {
  numbers_ = on;
  viewport()->update();
}

int ListingView::numbersWidth() const {
  if (!numbers_ || !document()) return 0;
  return columnAt(static_cast<qreal>(QString::number(index().document().boundSymbolCount()).size()) + 1) +
         tokens::tight;
}

ListingView::Columns ListingView::columns() const {
  const int width = viewport()->width() - columnRect().width();  // left of the number column
  const int room = static_cast<int>((width - gutterWidth() - rowHeight_) / charWidth_);
  int shape = std::clamp(widest_.firstShape, leastColumn, std::clamp(room / 3, oneShape, widestColumn)) + between;
  int origin = widest_.origin > 0 ? std::clamp(widest_.origin, leastColumn, widestOriginColumn) + between : 0;
  Columns columns{width, width, width};
  if (room - shape < leastCode) return columns;
  if (room - shape - origin < roomyCode) origin = 0;
  if (const int brief = std::min(widest_.briefOrigin, widestBriefOrigin) + between;
      origin > 0 && room - shape - brief >= easyCode)
    origin = std::max(origin, brief);
  int spare = std::max(0, room - shape - origin - between - widest_.code);
  const auto widen = [&spare](int& column, int wanted) {
    const int more = std::clamp(wanted + between - column, 0, spare);
    column += more;
    spare -= more;
  };
  widen(shape, widest_.shapes);
  if (origin > 0) widen(origin, widest_.origin);
  columns.origin = width - columnAt(origin);
  columns.shape = columns.origin - columnAt(shape);
  columns.codeEnd = columns.shape - columnAt(between);
  return columns;
}

LineText ListingView::shownCode(int visible) const {
  const auto& line = lineText(visible);
  // A header has no columns, but some air before the scroll bar.
  const int end = line.codeLength < 0 ? viewport()->width() - columnRect().width() - tokens::gap : columns().codeEnd;
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
    if (marked && token.value == marked)
      painter.fillRect(QRect(x - 1, rect.top() + 1, width + 2, rowHeight_ - 2), colors.valueMark);
    auto font = painter.font();
    font.setBold(token.kind == TokenKind::header);
    font.setUnderline(token.kind == TokenKind::ownName);
    painter.setFont(font);
    painter.setPen(colorOf(colors, token.kind));
    painter.drawText(QPointF(left + token.begin * charWidth_, rect.top() + ascent_ + 1),
                     line.text.mid(token.begin, token.length));
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
  const auto charactersIn = [this](int left, int right) { return static_cast<int>((right - left) / charWidth_) - 1; };
  const auto draw = [&](const QString& text, int left) {
    painter.drawText(QPointF(left, rect.top() + ascent_ + 1), text);
  };
  painter.setPen(controls.columnText);
  if (const int characters = charactersIn(places.shape, places.origin); characters > 1)
    draw(shapeWithin(line, characters), places.shape);
  if (const int characters = charactersIn(places.origin, viewport()->width() - columnRect().width()); characters > 1)
    draw(originWithin(line, characters), places.origin);
  if (const auto op = opAt(visible); op && numbersWidth() > 0) {
    painter.setOpacity(1);
    painter.setClipping(false);
    painter.setPen(context_.theme->colors().gutterText);
    painter.drawText(QRect(gutterWidth() - numbersWidth(), rect.top(), numbersWidth() - tokens::tight, rect.height()),
                     Qt::AlignRight | Qt::AlignVCenter, QStringLiteral("#%1").arg(op.index));
  }
}

}  // namespace retrograd::views
