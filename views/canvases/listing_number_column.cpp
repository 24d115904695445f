// The column of numbers of a listing, and the marks in its scroll bar.
#include <QPainter>

#include "views/canvases/listing_view.h"
#include "views/widgets/marked_scroll_bar.h"

namespace retrograd::views {
namespace {

constexpr int columnCharacters = 11;

}  // namespace

void ListingView::setColumn(LineNumber kind) {
  if (kind == column_) return;
  column_ = kind;
  updateScrollBars();
  viewport()->update();
}

QRect ListingView::columnRect() const {
  if (column_ == LineNumber::none) return {};
  const int width = columnAt(columnCharacters);
  return {viewport()->width() - width, 0, width, viewport()->height()};
}

QString ListingView::numberAt(int visible) const {
  const auto op = opAt(visible);
  if (!op || column_ == LineNumber::none) return {};
  return numberText(column_, context_.controller->ahead().numbers().number(column_, op));
}

void ListingView::paintColumn(QPainter& painter, int first, int last) const {
  const auto column = columnRect();
  if (column.isEmpty()) return;
  const auto& colors = context_.theme->colors();
  const auto& numbers = context_.controller->ahead().numbers();
  const double scale = numbers.scale(column_);
  painter.fillRect(column, colors.gutter);
  painter.fillRect(QRect(column.left(), 0, 1, column.height()), colors.border);
  auto bar = colors.op;
  bar.setAlphaF(0.28F);
  for (int visible = first, top = 0; visible < last; ++visible, top += rowHeight_) {
    top += roomAbove(visible);
    const auto op = opAt(visible);
    const auto number = op ? numbers.number(column_, op) : std::nullopt;
    if (!number) continue;
    const QRect cell(column.left() + 4, top, column.width() - 8, rowHeight_);
    const double share = scale > 0 ? std::clamp(*number / scale, 0.0, 1.0) : 0;
    painter.fillRect(QRectF(cell.left(), cell.top() + 2, cell.width() * share, cell.height() - 4), column_ == LineNumber::bad ? colors.bad : bar);
    painter.setPen(colors.text);
    painter.drawText(cell, Qt::AlignRight | Qt::AlignVCenter, numberText(column_, number));
  }
}

void ListingView::numbersChanged() {
  updateMarks();
  viewport()->update();
}

void ListingView::updateMarks() {
  std::vector<MarkedScrollBar::Mark> marks;
  const auto& colors = context_.theme->colors();
  const auto mark = [&](BoundSymbolId op, const QColor& color, const QString& what) {
    const int row = op && document() ? rowOf(op) : -1;
    if (row >= 0) marks.push_back({rows_.count() > 1 ? static_cast<double>(row) / (rows_.count() - 1) : 0.0, color, what});
  };
  const auto& numbers = context_.controller->ahead().numbers();
  const auto& now = context_.execution->now();
  mark(numbers.firstBad(), colors.bad, tr("first NaN or Inf"));
  for (auto op : now.bad)
    if (op != numbers.firstBad()) mark(op, colors.bad, tr("NaN or Inf"));
  const auto failed = now.failed ? now.failed : numbers.failed();
  mark(failed, colors.breakpoint, tr("error"));
  marks_->setMarks(std::move(marks));
}

}  // namespace retrograd::views
