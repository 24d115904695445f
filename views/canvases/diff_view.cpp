#include "views/canvases/diff_view.h"

#include <QApplication>
#include <QClipboard>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <cmath>

namespace retrograd::views {

DiffView::DiffView(Theme* theme, QWidget* parent) : CodeView(theme, parent) {
  setObjectName(QStringLiteral("diff"));
  setAccessibleName(tr("Two traces side by side"));
  for (auto& cache : texts_) cache.setMaxCost(2000);
}

void DiffView::rowsChanged() {
  for (auto& cache : texts_) cache.clear();
  overview_ = {};
  updateScrollBars();
  viewport()->update();
}

void DiffView::show(DiffRows rows) {
  rows_ = std::move(rows);
  widestText_ = 0;
  cursor_ = rows_.count() > 0 ? 0 : -1;
  rowsChanged();
  horizontalScrollBar()->setValue(0);
  verticalScrollBar()->setValue(0);
  // Where two traces are long and differ late, nobody looks for it by hand.
  if (!rows_.blocks().empty()) {
    setCursor(rows_.blocks().front(), side_);
    ensureVisible(cursor_, true);
  }
}

void DiffView::setMessage(const QString& message) {
  message_ = message;
  viewport()->update();
}

void DiffView::showOnlyDifferences(bool on) {
  if (!rows_.comparison()) return;
  const auto [side, op] = opUnderCursor();
  rows_.showOnlyDifferences(on);
  rowsChanged();
  const auto row = rows_.rowOf(side, op);
  setCursor(row >= 0 ? row : std::min(cursor_, rows_.count() - 1), side_);
  ensureVisible(cursor_, true);
  viewport()->update();
}

QString DiffView::gutterText(int visible, Side side) const {
  const auto op = rows_.opAt(visible, side);
  return op ? QStringLiteral("#%1").arg(op.index) : QString();
}

/// Id, sign.
int DiffView::gutterWidth() const {
  std::size_t most = 1;
  if (const auto* comparison = rows_.comparison())
    for (auto side : bothSides) most = std::max(most, comparison->of(side).analysis->document->boundSymbolCount());
  const auto digits = static_cast<int>(std::to_string(most).size());
  return static_cast<int>(std::ceil((digits + 5) * charWidth_));
}

void DiffView::updateScrollBars() {
  auto* vertical = verticalScrollBar();
  vertical->setPageStep(visibleRows());
  vertical->setSingleStep(1);
  vertical->setRange(0, std::max(0, rows_.count() - visibleRows()));
  auto* horizontal = horizontalScrollBar();
  const int room = halfWidth() - gutterWidth();
  horizontal->setPageStep(room);
  horizontal->setSingleStep(static_cast<int>(4 * charWidth_));
  horizontal->setRange(0, std::max(0, static_cast<int>((widestText_ + 2) * charWidth_) - room));
}

QRect DiffView::overviewRect() const {
  return {viewport()->width() - overviewWidth, 0, overviewWidth, viewport()->height()};
}

const DiffView::Prepared& DiffView::prepared(int visible, Side side) const {
  auto& cache = texts_[side];
  if (const auto* known = cache.object(visible)) return *known;
  auto* made = new Prepared{rows_.line(visible, side),
                            rows_.folded(visible) > 1 ? std::vector<bool>() : rows_.changedTokens(visible, side)};
  widestText_ = std::max(widestText_, static_cast<int>(made->line.text.size()) +
                                          2 * (rows_.folded(visible) > 1 ? 0 : rows_.depth(visible, side)));
  cache.insert(visible, made);
  return *made;
}

QString DiffView::textAt(int visible, Side side) const {
  return visible >= 0 && visible < rows_.count() ? prepared(visible, side).line.text : QString();
}

QString DiffView::cursorText() const {
  if (cursor_ < 0 || !rows_.comparison()) return {};
  const auto left = textAt(cursor_, Side::left), right = textAt(cursor_, Side::right);
  QStringList lines;
  if (!left.isEmpty() && left == right) {
    lines << QStringLiteral("=  ") + left;
  } else {
    if (!left.isEmpty()) lines << QStringLiteral("\u25c0  ") + left;
    if (!right.isEmpty()) lines << QStringLiteral("\u25b6  ") + right;
  }
  if (const auto what = rows_.explanation(cursor_); !what.isEmpty()) lines << what;
  return lines.join(QLatin1Char('\n'));
}

std::pair<Side, BoundSymbolId> DiffView::opUnderCursor() const {
  const auto other = side_ == Side::left ? Side::right : Side::left;
  if (const auto op = rows_.opAt(cursor_, side_)) return {side_, op};
  return {other, rows_.opAt(cursor_, other)};
}

void DiffView::setCursor(int visible, Side side) {
  if (rows_.count() == 0) return;
  cursor_ = std::clamp(visible, 0, rows_.count() - 1);
  side_ = side;
  ensureVisible(cursor_, false);
  announce();
  viewport()->update();
}

void DiffView::activateRow(int visible) {
  moveTo(visible);
  if (const auto [side, op] = opUnderCursor(); op) Q_EMIT activated(side, op);
}

void DiffView::moveTo(int visible) {
  if (rows_.count() == 0) return;
  setCursor(visible, side_);
  Q_EMIT cursorMoved();
}

void DiffView::reveal(Side side, BoundSymbolId op) {
  auto row = rows_.rowOf(side, op);
  if (row < 0) return;
  if (rows_.folded(row) > 1) {
    rows_.unfold(row);
    rowsChanged();
    row = rows_.rowOf(side, op);
  }
  const bool inSight = rowRect(row).top() >= 0 && rowRect(row).bottom() <= viewport()->height();
  setCursor(row, side);
  if (!inSight) ensureVisible(row, true);
}

bool DiffView::step(bool forward) {
  const auto row = rows_.nextBlock(cursor_, forward);
  if (row < 0) return false;
  setCursor(row, side_);
  ensureVisible(row, true);
  Q_EMIT cursorMoved();
  return true;
}

void DiffView::ensureVisible(int visible, bool centre) {
  const int first = verticalScrollBar()->value(), rows = visibleRows();
  if (centre && (visible < first + 2 || visible > first + rows - 3)) verticalScrollBar()->setValue(visible - rows / 3);
  else if (visible < first) verticalScrollBar()->setValue(visible);
  else if (visible >= first + rows) verticalScrollBar()->setValue(visible - rows + 1);
}

void DiffView::resizeEvent(QResizeEvent* event) {
  CodeView::resizeEvent(event);
  overview_ = {};
  updateScrollBars();
}

void DiffView::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy)) return QApplication::clipboard()->setText(copyText());
  if (event->modifiers() & (Qt::AltModifier | Qt::MetaModifier | Qt::ControlModifier))
    return CodeView::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Up: return moveTo(cursor_ - 1);
    case Qt::Key_Down: return moveTo(cursor_ + 1);
    case Qt::Key_PageUp: return moveTo(cursor_ - visibleRows() + 1);
    case Qt::Key_PageDown: return moveTo(cursor_ + visibleRows() - 1);
    case Qt::Key_Home: return moveTo(0);
    case Qt::Key_End: return moveTo(rows_.count() - 1);
    case Qt::Key_Left:
    case Qt::Key_Right: side_ = event->key() == Qt::Key_Left ? Side::left : Side::right; return moveTo(cursor_);
    case Qt::Key_Plus:
    case Qt::Key_Return:
    case Qt::Key_Enter: {
      if (cursor_ < 0) return;
      if (rows_.folded(cursor_) > 1) {
        rows_.unfold(cursor_);
        rowsChanged();
        return moveTo(cursor_);
      }
      if (event->key() == Qt::Key_Plus) return;
      const auto [side, op] = opUnderCursor();
      if (op) Q_EMIT activated(side, op);
      return;
    }
    case Qt::Key_Escape: return Q_EMIT cancelled();
    default: break;
  }
  CodeView::keyPressEvent(event);
}

void DiffView::mousePressEvent(QMouseEvent* event) {
  const auto point = event->position().toPoint();
  if (event->button() != Qt::LeftButton) return;
  if (overviewRect().contains(point)) return scrollToOverview(point.y());
  const auto visible = rowAtY(point.y());
  if (visible < 0) return;
  side_ = sideAtX(point.x());
  moveTo(visible);
}

void DiffView::mouseMoveEvent(QMouseEvent* event) {
  const auto point = event->position().toPoint();
  if ((event->buttons() & Qt::LeftButton) && point.x() >= overviewRect().left()) scrollToOverview(point.y());
}

void DiffView::scrollToOverview(int y) {
  if (rows_.count() == 0) return;
  const auto row = static_cast<int>(static_cast<qint64>(std::clamp(y, 0, viewport()->height() - 1)) * rows_.count() /
                                    std::max(1, viewport()->height()));
  verticalScrollBar()->setValue(row - visibleRows() / 2);
}

void DiffView::mouseDoubleClickEvent(QMouseEvent* event) {
  const auto point = event->position().toPoint();
  if (overviewRect().contains(point) || rowAtY(point.y()) < 0)
    return;  // in the overview, each press has scrolled already
  QKeyEvent enter(QEvent::KeyPress, Qt::Key_Return, Qt::NoModifier);
  keyPressEvent(&enter);
}

bool DiffView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto visible = overviewRect().contains(help->pos()) ? -1 : rowAtY(help->pos().y());
    const auto text = visible < 0 ? QString() : rows_.explanation(visible);
    text.isEmpty() ? QToolTip::hideText() : QToolTip::showText(help->globalPos(), text, viewport());
    return true;
  }
  return CodeView::viewportEvent(event);
}

QString DiffView::copyText() const {
  if (cursor_ < 0) return {};
  const auto text = textAt(cursor_, side_);
  return text.isEmpty() ? textAt(cursor_, side_ == Side::left ? Side::right : Side::left) : text;
}

}  // namespace retrograd::views
