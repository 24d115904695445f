// The text of a listing: the code, in several lines where one has no room for it, and next to it columns with shapes,
// origins and saved bytes.
#include <QPainter>
#include <cmath>

#include "views/canvases/listing_view.h"
#include "views/content/token_color.h"

namespace retrograd::views {
namespace {

constexpr qreal keptOpacity = 0.55;  ///< of lines that show though they do not pass the filter
// Characters. Code comes first: columns give way until four of five lines show whole calls, the ends of shapes first,
// then origins, then saved bytes, then shapes. Where that is not enough either, the code keeps at least `leastCode`
// next to shapes, and `easyCode` next to more.
constexpr int leastCode = 28, easyCode = 40;
constexpr int leastColumn = 8, briefShape = 10, oneShape = 16, widestColumn = 26, widestOrigin = 18, widestSaved = 10,
              between = 2;
constexpr int mostLines = 6;  ///< of a call; a longer one is cut in its middle

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

QString ListingView::wordAt(int visible, TextColumn column) const {
  if (visible < 0 || visible >= rows_.count()) return {};
  const auto& line = lineText(visible);
  return column == TextColumn::shape ? line.shape : column == TextColumn::origin ? line.origin : line.saved;
}

void ListingView::setColumnChoices(const ColumnChoices& choices) {
  choices_ = choices;
  viewport()->update();
}

void ListingView::measure(const LineText& line, int depth) const {
  widest_.shapes = std::max(widest_.shapes, static_cast<int>(line.shape.size()));
  widest_.firstShape = std::max(widest_.firstShape, leastShape(line));
  widest_.origin = std::max(widest_.origin, static_cast<int>(line.origin.size()));
  widest_.saved = std::max(widest_.saved, static_cast<int>(line.saved.size()));
  if (line.codeLength < 0) return;
  const int code = 2 * depth + line.codeLength;
  widest_.code = std::max(widest_.code, code);
  ++widest_.lines[code];
  int all = 0, below = 0;
  for (const auto& [length, lines] : widest_.lines) all += lines;
  for (const auto& [length, lines] : widest_.lines) {
    below += lines;
    if (below * 5 < all * 4) continue;
    widest_.usualCode = length;
    break;
  }
}

std::array<int, textColumnCount> ListingView::columnWidths(int room) const {
  enum { shape, origin, saved };
  const auto column = [](int wanted, int least, int most) {
    return wanted > 0 ? std::clamp(wanted, least, std::max(least, most)) + between : 0;
  };
  std::array<int, textColumnCount> full{column(widest_.firstShape, leastColumn, widestColumn),
                                        column(widest_.origin, leastColumn, widestOrigin),
                                        column(widest_.saved, 5, widestSaved)};
  std::array<bool, textColumnCount> isFixed{};
  for (std::size_t i = 0; i < textColumnCount; ++i) {
    const auto& choice = choices_.entries[i];
    isFixed[i] = !choice.isShown || choice.characters > 0;
    if (isFixed[i]) full[i] = choice.isShown ? choice.characters + between : 0;
  }
  const auto with = [&](int shapes, int origins, int bytes) {
    return std::array<int, textColumnCount>{isFixed[shape] ? full[shape] : std::min(shapes, full[shape]),
                                            isFixed[origin] ? full[origin] : std::min(origins, full[origin]),
                                            isFixed[saved] ? full[saved] : std::min(bytes, full[saved])};
  };
  const auto left = [&](const std::array<int, textColumnCount>& widths) {
    return room - between - widths[shape] - widths[origin] - widths[saved];
  };
  constexpr int brief = briefShape + between, all = widestColumn + between;
  for (const auto& widths :
       {with(all, all, all), with(all, 0, all), with(brief, 0, all), with(brief, 0, 0), with(0, 0, all), with(0, 0, 0)})
    if (left(widths) >= widest_.usualCode) return widths;
  // Code is cut whatever goes: what is next to it may not take much.
  constexpr int shapes = oneShape + between;
  for (const auto& widths : {with(shapes, all, all), with(shapes, 0, all)})
    if (left(widths) >= easyCode) return widths;
  auto widths = with(shapes, 0, 0);
  if (!isFixed[shape] && left(widths) + between < leastCode) widths[shape] = 0;
  return widths;
}

ListingView::Columns ListingView::columns() const {
  const int width = viewport()->width() - columnRect().width();  // left of the number column
  Columns columns;
  columns.code = gutterWidth() + rowHeight_;
  columns.codeEnd = columns.shape = columns.origin = columns.saved = columns.end = width;
  const int room = static_cast<int>((width - columns.code) / charWidth_);
  auto [shape, origin, saved] = columnWidths(room);
  if (shape + origin + saved == 0) return columns;
  int spare = std::max(0, room - between - shape - origin - saved - widest_.code);
  const auto widen = [&spare](int& column, int wanted, const ColumnChoice& choice) {
    if (column == 0 || choice.characters > 0) return;
    const int more = std::clamp(wanted + between - column, 0, spare);
    column += more;
    spare -= more;
  };
  widen(shape, widest_.shapes, choices_[TextColumn::shape]);
  widen(origin, widest_.origin, choices_[TextColumn::origin]);
  columns.saved = width - columnAt(saved);
  columns.origin = columns.saved - columnAt(origin);
  columns.shape = columns.origin - columnAt(shape);
  columns.codeEnd = columns.shape - columnAt(between);
  return columns;
}

int ListingView::codeRoom(int visible) const {
  // A header has no columns, but some air before the scroll bar.
  const int end =
      lineText(visible).codeLength < 0 ? viewport()->width() - columnRect().width() - tokens::gap : columns().codeEnd;
  return std::max(1, static_cast<int>((end - textLeft(visible)) / charWidth_));
}

LineText ListingView::shownCode(int visible) const {
  const auto& line = lineText(visible);
  const int room = codeRoom(visible);
  return line.codeLength < 0 ? headerWithin(line, room) : codeWithin(line, room, mostLines);
}

int ListingView::linesOf(int visible) const {
  if (!document() || visible < 0 || visible >= rows_.count()) return 1;
  const auto& line = lineText(visible);
  if (line.codeLength < 0 || line.codeLength <= codeRoom(visible)) return 1;
  return 1 + static_cast<int>(shownCode(visible).breaks.size());
}

ValueId ListingView::valueAt(const QPoint& point, int visible) const {
  const int x = static_cast<int>(std::floor((point.x() - textLeft(visible)) / charWidth_));
  const auto code = shownCode(visible);
  const int at = code.at((point.y() - rowTop(visible)) / rowHeight_, x);
  for (const auto& token : code.tokens)
    if (at >= token.begin && at < token.begin + token.length) return token.value;
  return {};
}

void ListingView::paintText(QPainter& painter, int visible, const QRect& rect) const {
  const auto& colors = context_.theme->colors();
  const auto line = shownCode(visible);
  const int left = textLeft(visible);
  const auto marked = context_.selection->value();
  const auto place = [&](const LineText::Part& part, int more) {
    return QRect(left + columnAt(part.column) - more, rect.top() + part.line * rowHeight_ + 1,
                 columnAt(part.length) + 2 * more, rowHeight_ - 2);
  };
  if (isLit(visible))
    for (const auto& part : line.parts(0, static_cast<int>(line.text.size())))
      painter.fillRect(place(part, 2), colors.valueMark);
  if (isKept(visible)) painter.setOpacity(keptOpacity);
  for (const auto& token : line.tokens) {
    const auto parts = line.parts(token.begin, token.length);
    if (marked && token.value == marked)
      for (const auto& part : parts) painter.fillRect(place(part, 1), colors.valueMark);
    auto font = painter.font();
    font.setBold(token.kind == TokenKind::header);
    font.setUnderline(token.kind == TokenKind::ownName);
    painter.setFont(font);
    painter.setPen(colorOf(colors, token.kind));
    for (const auto& part : parts)
      painter.drawText(QPointF(left + part.column * charWidth_, rect.top() + part.line * rowHeight_ + ascent_ + 1),
                       line.text.mid(part.begin, part.length));
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
  const auto within = [](const QString& text, int characters) {
    return text.size() <= characters ? text : text.left(characters - 1) + QChar(0x2026);
  };
  if (const int characters = charactersIn(places.shape, places.origin); characters > 1)
    draw(shapeWithin(line, characters), places.shape);
  if (const int characters = charactersIn(places.origin, places.saved); characters > 1)
    draw(within(line.origin, characters), places.origin);
  if (const int characters = charactersIn(places.saved, places.end); characters > 1)
    draw(within(line.saved, characters), places.saved);
  if (const auto op = opAt(visible); op && numbersWidth() > 0) {
    painter.setOpacity(1);
    painter.setClipping(false);
    painter.setPen(context_.theme->colors().gutterText);
    painter.drawText(QRect(gutterWidth() - numbersWidth(), rect.top(), numbersWidth() - tokens::tight, rect.height()),
                     Qt::AlignRight | Qt::AlignVCenter, QStringLiteral("#%1").arg(op.index));
  }
}

}  // namespace retrograd::views
