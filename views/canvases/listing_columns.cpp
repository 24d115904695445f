// The text of a listing: the code, in several lines where one has no room for it, and next to it columns with shapes,
// origins and saved bytes.
#include <QPainter>
#include <cmath>
#include <utility>

#include "views/canvases/listing_view.h"
#include "views/content/token_color.h"

namespace retrograd::views {
namespace {

constexpr qreal keptOpacity = 0.55;  ///< of lines that show though they do not pass the filter
// Characters. Words give way to the code before a line of it goes on in the next; numbers, the last first, where not
// even `leastCode` would be left.
constexpr int leastCode = 18, between = 2;
constexpr int mostLines = 10;  ///< of a call; a longer one is cut in its middle

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
  return lineText(visible).words[column];
}

void ListingView::setColumnChoices(const ColumnChoices& choices) {
  choices_ = choices;
  viewport()->update();
}

void ListingView::measure(const LineText& line, int depth) const {
  for (const auto& [column, id, title, tip, least, most, isNumber, text] : listingColumns()) {
    auto& whole = widest_.whole[column];
    whole = std::max(whole, static_cast<int>(line.words[column].size()));
    if (const int word = leastWord(line, column); word <= most || !isNumber)
      widest_.least[column] = std::max(widest_.least[column], word);
  }
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

ListingView::ColumnWidths ListingView::columnWidths(int room) const {
  ColumnWidths widths{};
  int left = room - between;
  for (const auto& [column, id, title, tip, least, most, isNumber, text] : listingColumns()) {
    const auto& choice = choices_[column];
    if (!choice.isShown || widest_.whole[column] == 0) continue;
    const int usual = std::clamp(widest_.least[column], least, most);
    const int wanted = choice.characters == 0 ? usual
                       : isNumber             ? std::max(choice.characters, usual)
                                              : choice.characters;
    widths[column] = wanted + between;
    left -= widths[column];
  }
  const auto give = [&](bool numbers, int code) {
    for (auto column = textColumnCount; column-- > 0;) {
      const auto& of = listingColumns().entries[column];
      auto& width = widths.entries[column];
      if (left >= code || of.isNumber != numbers || choices_.entries[column].characters > 0) continue;
      left += std::exchange(width, 0);
    }
  };
  give(false, widest_.usualCode);
  give(true, std::min(leastCode, widest_.usualCode));
  return widths;
}

ListingView::Columns ListingView::columns() const {
  const int width = viewport()->width() - columnRect().width();  // left of the number column
  Columns columns;
  columns.code = gutterWidth() + rowHeight_;
  columns.end = width;
  const int room = static_cast<int>((width - columns.code) / charWidth_);
  auto widths = columnWidths(room);
  int spare = room - between - widest_.code;
  for (const int each : widths) spare -= each;
  for (const auto& of : listingColumns()) {
    auto& column = widths[of.column];
    if (column == 0 && choices_[of.column].isShown && widest_.whole[of.column] > 0)
      columns.without.push_back(of.column);
    if (column == 0 || choices_[of.column].characters > 0) continue;
    const int more = std::clamp(widest_.whole[of.column] + between - column, 0, std::max(0, spare));
    column += more;
    spare -= more;
  }
  int right = width;
  for (auto at = textColumnCount; at-- > 0;) {
    columns.right.entries[at] = right;
    columns.left.entries[at] = right -= columnAt(widths.entries[at]);
  }
  columns.codeEnd = right == width ? width : right - columnAt(between);
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
  painter.setPen(controls.columnText);
  for (const auto& of : listingColumns()) {
    const int left = places.left[of.column],
              characters = static_cast<int>((places.right[of.column] - left) / charWidth_);
    if (characters > 2)
      painter.drawText(QPointF(left, rect.top() + ascent_ + 1), wordWithin(line, of.column, characters - 1));
  }
  if (const auto op = opAt(visible); op && numbersWidth() > 0) {
    painter.setOpacity(1);
    painter.setClipping(false);
    painter.setPen(context_.theme->colors().gutterText);
    painter.drawText(QRect(gutterWidth() - numbersWidth(), rect.top(), numbersWidth() - tokens::tight, rect.height()),
                     Qt::AlignRight | Qt::AlignVCenter, QStringLiteral("#%1").arg(op.index));
  }
}

}  // namespace retrograd::views
