#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>

#include "core/trace/print/printer.h"
#include "views/canvases/listing_view.h"
#include "views/text/format.h"
#include "views/widgets/command_key.h"

namespace retrograd::views {

void ListingView::keyPressEvent(QKeyEvent* event) {
  const bool extend = event->modifiers() & Qt::ShiftModifier;
  if (event->matches(QKeySequence::Copy)) return QApplication::clipboard()->setText(copyText());
  // Other chords are the window's: Ctrl+G or Alt+Left never mean a plain key here.
  if (event->modifiers() & (Qt::AltModifier | Qt::MetaModifier)) return CodeView::keyPressEvent(event);
  const bool control = event->modifiers() & Qt::ControlModifier;
  switch (event->key()) {
    case Qt::Key_Up: return moveCursor(cursor_ - 1, extend);
    case Qt::Key_Down: return moveCursor(cursor_ + 1, extend);
    case Qt::Key_PageUp: return moveCursor(cursor_ - std::max(1, rowsThatFit(cursor_, -1) - 1), extend);
    case Qt::Key_PageDown: return moveCursor(cursor_ + std::max(1, rowsThatFit(cursor_, 1) - 1), extend);
    case Qt::Key_Home: return moveCursor(0, extend);
    case Qt::Key_End: return moveCursor(rows_.count() - 1, extend);
    case Qt::Key_Plus: return foldAtCursor(false);
    case Qt::Key_Minus: return foldAtCursor(true);
    case Qt::Key_Left:
      if (control) break;
      return foldAtCursor(true);
    case Qt::Key_Right:
      if (control) break;
      return foldAtCursor(false);
    case Qt::Key_Escape:
      if (drag_.stage < 0) break;
      return letGoOfBorder(false);
    case Qt::Key_Asterisk: return setAllFolded(false);
    case Qt::Key_Slash: return setAllFolded(true);
    case Qt::Key_Return:
    case Qt::Key_Enter: {
      if (isHeader(cursor_)) return toggleFold(cursor_);
      if (const auto op = opAt(cursor_)) Q_EMIT jumpRequested(op);
      return;
    }
    default: break;
  }
  CodeView::keyPressEvent(event);
}

BoundSymbolId ListingView::startOfJump(BoundSymbolId op) const {
  if (!isHeader(cursor_) || opForKey(cursor_) != op) return op;
  const auto row = rows_.rowAt(cursor_);
  return outline().header(row).backward ? firstOpFrom(row) : op;
}

void ListingView::activateRow(int visible) {
  moveCursor(visible);
  if (isHeader(visible)) return toggleFold(visible);
  if (const auto op = opAt(visible)) Q_EMIT jumpRequested(op);
}

void ListingView::mousePressEvent(QMouseEvent* event) {
  const auto visible = rowAtY(static_cast<int>(event->position().y()));
  if (visible < 0 || (event->button() != Qt::LeftButton && event->button() != Qt::RightButton)) return;
  const auto point = event->position().toPoint();
  if (event->button() == Qt::LeftButton && takeBorder(point)) return;
  const int foldLeft = textLeft(visible) - rowHeight_;
  if (event->button() == Qt::LeftButton && togglesBreakpoint(point)) {
    setCursor(visible, false);
    selectCursorOp();
    Q_EMIT breakpointRequested(opForKey(visible));
    return;
  }
  if (event->button() == Qt::LeftButton && point.x() >= foldLeft && point.x() < foldLeft + rowHeight_ &&
      outline().foldable(rows_.rowAt(visible)))
    return toggleFold(visible);
  // The menu of several selected lines is for all of them: a right click on one selects its op and leaves the lines
  // selected.
  const bool keepsLines = event->button() == Qt::RightButton && isMarked(visible);
  if (!keepsLines) setCursor(visible, event->modifiers() & Qt::ShiftModifier);
  selectOpOf(visible, valueAt(point, visible));
  announce();
}

void ListingView::mouseMoveEvent(QMouseEvent* event) {
  if (drag_.stage >= 0) return dragBorder(static_cast<int>(event->position().y()));
  viewport()->setCursor(borderAt(event->position().toPoint()) >= 0 ? Qt::SplitVCursor : Qt::ArrowCursor);
  if (!(event->buttons() & Qt::LeftButton) || cursor_ < 0) return;
  const int y = static_cast<int>(event->position().y());
  const int last = std::max(0, rows_.count() - 1), at = rowAtY(y);
  const auto visible = y < 0 ? std::max(0, verticalScrollBar()->value() - 1) : at < 0 ? last : at;
  if (visible != cursor_) moveCursor(visible, true);
}

void ListingView::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton && drag_.stage >= 0) letGoOfBorder(true);
}

void ListingView::mouseDoubleClickEvent(QMouseEvent* event) {
  const auto visible = rowAtY(static_cast<int>(event->position().y()));
  if (visible < 0 || event->position().x() < gutterWidth()) return mousePressEvent(event);
  if (isHeader(visible)) return toggleFold(visible);
  // On a value the double click leads to the op that makes it, elsewhere to the origin.
  const auto value = valueAt(event->position().toPoint(), visible);
  const auto producer = value ? index().document().value(value).producer : BoundSymbolId();
  const auto op = opAt(visible);
  if (producer && producer != op) {
    context_.history->jumped(op, producer);
    return context_.selection->select(producer, value);
  }
  Q_EMIT jumpRequested(op);
}

void ListingView::contextMenuEvent(QContextMenuEvent* event) {
  if (!document() || cursor_ < 0) return;
  const bool byMouse = event->reason() == QContextMenuEvent::Mouse;
  const int pointed = byMouse ? rowAtY(event->pos().y()) : -1;
  const auto op = opForKey(isMarked(pointed) ? pointed : cursor_);
  auto* menu = contextMenu(this);
  const auto noOp = op ? QString() : tr("There is no op in this line");
  disableBecause(menu->addAction(withKey(tr("Go to Origin or Back"), *this, "origin"), this,
                                 [this, op] { Q_EMIT jumpRequested(op); }),
                 noOp);
  disableBecause(menu->addAction(withKey(tr("Toggle Breakpoint"), *this, "breakpoint"), this,
                                 [this, op] { Q_EMIT breakpointRequested(op); }),
                 noOp);
  menu->addSeparator();
  menu->addAction(withFixedKey(tr("Copy"), QKeySequence::Copy), this,
                  [this] { QApplication::clipboard()->setText(copyText()); });
  menu->addAction(withFixedKey(tr("Fold All"), Qt::Key_Slash), this, [this] { setAllFolded(true); });
  menu->addAction(withFixedKey(tr("Unfold All"), Qt::Key_Asterisk), this, [this] { setAllFolded(false); });
  Q_EMIT menuAboutToShow(menu);
  menu->exec(byMouse ? event->globalPos()
                     : viewport()->mapToGlobal(rowRect(cursor_).bottomLeft() + QPoint(gutterWidth(), 0)));
}

/// While a border is dragged, Esc lets it where it was and does not lead back.
bool ListingView::event(QEvent* event) {
  const bool escapes = event->type() == QEvent::ShortcutOverride && drag_.stage >= 0 &&
                       static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape;
  if (!escapes) return CodeView::event(event);
  event->accept();
  return true;
}

void ListingView::focusInEvent(QFocusEvent* event) {
  CodeView::focusInEvent(event);
  Q_EMIT activated();
}

QString ListingView::toolTipAt(const QPoint& point) const {
  const auto visible = rowAtY(point.y());
  if (visible < 0) return {};
  const auto op = opAt(visible);
  if (columnRect().contains(point) && isOfLastRun(visible) && !numberAt(visible).isEmpty())
    return op ? tr("Of the last run: up to the present position the op has not run")
              : tr("Of the last run: up to the present position not all of these ops have run");
  if (!op) return textAt(visible);
  const auto& document = index().document();
  if (point.x() < gutterWidth()) {
    QStringList marks;
    const auto& now = context_.execution->now();
    switch (context_.execution->mark(op)) {
      case BreakpointMark::always: marks << tr("Breakpoint"); break;
      case BreakpointMark::conditional: marks << tr("Breakpoint with a condition"); break;
      case BreakpointMark::disabled: marks << tr("Breakpoint, disabled"); break;
      case BreakpointMark::none: break;
    }
    if (now.current == op) marks << tr("Runs next");
    if (now.failed == op) marks << tr("Failed: %1").arg(now.error);
    const auto& numbers = context_.controller->ahead().numbers();
    if (numbers.failed() == op && now.failed != op)
      marks << tr("Failed when it was run ahead: %1").arg(numbers.failure());
    if (isBad(op)) marks << (takesBad(op) ? tr("Has NaN or Inf") : tr("Made NaN or Inf"));
    if (const auto* finding = board_.at(op)) marks << toQt(finding->sentence);
    if (const auto* note = context_.notes->at(op); note && note->bookmark) marks << tr("Bookmark");
    if (isKept(visible))
      marks << tr(
          "Does not pass the filter: visible because it is selected, is the counterpart of the selected op, or runs "
          "next");
    for (auto value : document.outputs(op))
      if (this->document()->saved.contains(value))
        marks << tr("%1 is saved for the backward").arg(toQt(document.displayName(value)));
    if (point.x() >= marksWidth() && stageAt(visible) >= 0) marks << tr("Pipeline stage %1").arg(stageAt(visible));
    if (marks.isEmpty() && togglesBreakpoint(point) && this->document()->program.executed(op))
      marks << tr("Click to set a breakpoint");
    return marks.join(QLatin1Char('\n'));
  }
  if (const auto value = valueAt(point, visible)) {
    auto text = toQt(document.displayName(value));
    if (const auto own = context_.notes->nameOf(value); !own.isEmpty()) text = QStringLiteral("%1 (%2)").arg(own, text);
    const auto& entry = document.value(value);
    if (entry.meta) text += QStringLiteral(": ") + toQt(typeComment(document.meta(entry.meta)));
    text += QStringLiteral("\n") + toQt(name(entry.kind));
    if (this->document()->saved.contains(value)) text += tr(", saved for the backward");
    return text;
  }
  auto text = toQt(printCall(document, op));
  const auto comment = toQt(printComment(document, op));
  if (!comment.isEmpty()) text += QStringLiteral("\n# ") + comment;
  if (const auto* note = context_.notes->at(op); note && !note->comment.empty())
    text += QStringLiteral("\n; ") + toQt(note->comment);
  return text;
}

bool ListingView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip && document()) {
    auto* help = static_cast<QHelpEvent*>(event);
    const auto text = toolTipAt(help->pos());
    // Plain text: names of a file must not be read as markup.
    if (text.isEmpty()) QToolTip::hideText();
    else
      QToolTip::showText(help->globalPos(),
                         QStringLiteral("<pre style='white-space:pre-wrap'>%1</pre>").arg(text.toHtmlEscaped()),
                         viewport());
    return true;
  }
  return CodeView::viewportEvent(event);
}

void ListingView::resizeEvent(QResizeEvent* event) {
  CodeView::resizeEvent(event);
  updateScrollBars();
}

}  // namespace retrograd::views
