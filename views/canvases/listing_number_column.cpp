// The column of numbers of a listing, and the marks in its scroll bar.
#include <QPainter>
#include <cmath>

#include "views/canvases/listing_view.h"
#include "views/text/format.h"
#include "views/widgets/marked_scroll_bar.h"

namespace retrograd::views {
namespace {

constexpr int columnCharacters = 11, briefCharacters = 9;
constexpr int codeNextToNumbers = 18, gapOfColumns = 2;  ///< next to numbers

/// Numbers that are no amounts: a few digits will do next to a line.
bool isBriefFigure(OpFigure kind) { return !figureColumns()[kind].ofRun && kind != OpFigure::bad; }
int charactersForFigure(OpFigure kind) { return isBriefFigure(kind) ? briefCharacters : columnCharacters; }
QString textForFigure(OpFigure kind, std::optional<double> number) {
  return number && isBriefFigure(kind) ? briefNumber(*number) : numberText(kind, number);
}

/// A norm of NaN says less than how many there are: "! 3 NaN", as far as there is room.
QString badText(const Document& document, const RunNumbers& numbers, BoundSymbolId op) {
  const auto outputs = document.outputs(op);
  const bool hasNaN = std::ranges::any_of(outputs, [&](ValueId value) {
    const auto* s = value ? numbers.statistics(value) : nullptr;
    return s && s->nan > 0;
  });
  const auto word = hasNaN ? QStringLiteral("NaN") : QStringLiteral("Inf");
  const auto count = numberText(OpFigure::bad, numbers.number(OpFigure::bad, op));
  const auto text = QStringLiteral("%1 %2").arg(count, word);
  return text.size() < briefCharacters ? text : QStringLiteral("! ") + word;
}

/// The trace's own first op with a NaN or Inf; where it has none, that of the run, from which an op of the computation
/// has its origin.
BoundSymbolId firstBadOf(const TraceIndex& trace, const RunNumbers& numbers) {
  BoundSymbolId first;
  for (auto op : numbers.badOps())
    if (const auto line = trace.line(op); line >= 0 && (!first || line < trace.line(first))) first = op;
  return first ? first : numbers.firstBad();
}

constexpr double softShare = 0.26,
                 strongShare = 0.4;  ///< of a bar's colour; the rest is the column's, so that text is read on both

}  // namespace

void ListingView::setColumn(OpFigure kind, bool isChosen) {
  isColumnChosen_ = isChosen;
  if (kind == OpFigure::gradientNorm && kind_ == TraceKind::backward)
    kind = OpFigure::none;  // gradients have none of their own
  column_ = kind;
  sums_ = {};
  updateScrollBars();
  viewport()->update();
  Q_EMIT columnsMoved();
}

bool ListingView::hasNumbers() const {
  return column_ != OpFigure::none && context_.controller->ahead().numbers().known() > 0;
}

bool ListingView::lacksRoomForNumbers() const {
  if (!hasNumbers()) return false;
  int left =
      static_cast<int>((viewport()->width() - gutterWidth() - rowHeight_) / charWidth_) - charactersForFigure(column_);
  for (const auto& of : listingColumns())
    if (of.isNumber && !isColumnChosen_ && choices_[of.column].isShown && widest_.whole[of.column] > 0)
      left -= std::clamp(widest_.least[of.column], of.least, of.most) + gapOfColumns;
  return left - gapOfColumns < codeNextToNumbers;
}

QRect ListingView::columnRect() const {
  if (!hasNumbers() || lacksRoomForNumbers()) return {};
  const int width = columnAt(charactersForFigure(column_));
  return {viewport()->width() - width, 0, width, viewport()->height()};
}

QString ListingView::numberAt(int visible) const {
  if (column_ == OpFigure::none) return {};
  if (const auto op = opAt(visible)) {
    const auto& numbers = context_.controller->ahead().numbers();
    if (op == numbers.failed()) return tr("! failed");
    if (column_ == OpFigure::norm && numbers.isBad(op)) return badText(index().document(), numbers, op);
    return textForFigure(column_, numbers.number(column_, op));
  }
  const auto row = rows_.rowAt(visible);
  if (!rows_.folded(row)) return {};
  const auto sum = below(row);
  return sum.known ? textForFigure(column_, sum.number) : QString();
}

bool ListingView::isOfLastRun(int visible) const {
  const auto& now = context_.execution->now();
  if (!now.available || column_ == OpFigure::none) return false;
  auto op = opAt(visible);
  const auto& lines = outline();
  for (auto row = lines.end[static_cast<std::size_t>(rows_.rowAt(visible))] - 1; !op && row >= 0; --row)
    if (const auto item = lines.item[static_cast<std::size_t>(row)]; item >= 0)
      op = index().lines[static_cast<std::size_t>(item)];  // the last one below
  const auto made = context_.controller->ahead().numbers().madeAt(column_, op);
  return made && *made >= now.position;
}

ListingView::Below ListingView::below(std::int32_t row) const {
  const auto& lines = outline();
  if (sums_.bad.empty()) {
    const auto& numbers = context_.controller->ahead().numbers();
    const bool adds = figureColumns()[column_].adds;
    const auto count = static_cast<std::size_t>(lines.rows());
    sums_.number.assign(count + 1, 0);
    sums_.known.assign(count + 1, 0);
    sums_.bad.assign(count + 1, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const auto op = lines.item[i] >= 0 ? index().lines[lines.item[i]] : BoundSymbolId();
      const auto number = adds && op ? numbers.number(column_, op) : std::nullopt;
      sums_.number[i + 1] = sums_.number[i] + number.value_or(0);
      sums_.known[i + 1] = sums_.known[i] + (number ? 1 : 0);
      sums_.bad[i + 1] = sums_.bad[i] + (op && numbers.isBad(op) ? 1 : 0);
    }
  }
  const auto begin = static_cast<std::size_t>(row), end = static_cast<std::size_t>(lines.end[begin]);
  return {sums_.number[end] - sums_.number[begin], sums_.known[end] > sums_.known[begin],
          sums_.bad[end] > sums_.bad[begin]};
}

QColor ListingView::barColor(const Colors& colors, bool isBad, bool isBeyond) {
  const auto full = isBad ? colors.bad : colors.op, ground = colors.gutter;
  const double share = isBeyond ? strongShare : softShare;
  const auto part = [share](int a, int b) { return static_cast<int>(a * share + b * (1 - share)); };
  return {part(full.red(), ground.red()), part(full.green(), ground.green()), part(full.blue(), ground.blue())};
}

void ListingView::paintColumn(QPainter& painter, int first, int last) const {
  const auto column = columnRect();
  if (column.isEmpty()) return;
  const auto& colors = context_.theme->colors();
  const auto& numbers = context_.controller->ahead().numbers();
  const double scale = numbers.scale(column_);
  const auto past = controlColorsOf(context_.theme->dark(), context_.theme->highContrast()).columnText;
  painter.fillRect(column, colors.gutter);
  painter.fillRect(QRect(column.left(), 0, 1, column.height()), colors.border);
  for (int visible = first, top = 0; visible < last; top += heightOf(visible++)) {
    top += roomAbove(visible);
    const auto op = opAt(visible);
    const QRect cell(column.left() + 4, top, column.width() - 8, rowHeight_);
    if (!op) {  // what is folded is summed, without a bar: it would be as long as the column
      painter.setPen(isOfLastRun(visible) ? past : colors.text);
      painter.drawText(cell, Qt::AlignRight | Qt::AlignVCenter, numberAt(visible));
      continue;
    }
    const auto number = numbers.number(column_, op);
    if (op == numbers.failed()) {
      painter.setPen(colors.bad);
      painter.drawText(cell, Qt::AlignRight | Qt::AlignVCenter, numberAt(visible));
    }
    if (!number) continue;
    const bool isBad = column_ == OpFigure::bad || !std::isfinite(*number) || numbers.isBad(op);
    const double share = !std::isfinite(*number) ? 1 : scale > 0 ? std::clamp(*number / scale, 0.0, 1.0) : 0;
    const QRectF bar(cell.left(), cell.top() + 2, cell.width() * share, cell.height() - 4);
    const bool isPast = isOfLastRun(visible);
    if (isPast && bar.width() >= 3) {  // an outline: shape shows it, too
      painter.setPen(barColor(colors, isBad, true));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(bar.adjusted(0, 0, -1, -1));
    } else {
      painter.fillRect(bar, barColor(colors, isBad, *number > scale));
    }
    painter.setPen(isPast ? past : colors.text);
    painter.drawText(cell, Qt::AlignRight | Qt::AlignVCenter, numberAt(visible));
  }
}

void ListingView::numbersChanged() {
  sums_ = {};
  updateMarks();
  viewport()->update();
}

void ListingView::updateMarks() {
  std::vector<MarkedScrollBar::Mark> marks;
  const auto& colors = context_.theme->colors();
  const auto mark = [&](BoundSymbolId op, const QColor& color, const QString& what) {
    int row = op && document() ? rowOf(op) : -1;
    if (row < 0 && op && document())
      row = rowOf(OriginLinks::origin(index().document(), op));  // of the computation: the op that it comes from
    if (row >= 0)
      marks.push_back({rows_.count() > 1 ? static_cast<double>(row) / (rows_.count() - 1) : 0.0, color, what});
  };
  const auto& numbers = context_.controller->ahead().numbers();
  const auto& now = context_.execution->now();
  const auto first = document() ? firstBadOf(index(), numbers) : BoundSymbolId();
  mark(first, colors.bad, tr("first NaN or Inf"));
  for (auto op : now.bad)
    if (op != first) mark(op, colors.bad, tr("NaN or Inf"));
  const auto failed = now.failed ? now.failed : numbers.failed();
  const auto& why = now.failed ? now.error : numbers.failure();
  mark(failed, colors.breakpoint, why.isEmpty() ? tr("error") : tr("error: %1").arg(why));
  marks_->setMarks(std::move(marks));
}

}  // namespace retrograd::views
