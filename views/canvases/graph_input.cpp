#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPainterPath>
#include <QPolygonF>
#include <QToolTip>
#include <cmath>

#include "core/trace/print/printer.h"
#include "views/canvases/graph_paint.h"
#include "views/canvases/graph_view.h"
#include "views/session/own_names.h"
#include "views/text/format.h"
#include "views/widgets/command_key.h"

namespace retrograd::views {
namespace {

constexpr double reach = 5;            // pixels from a line that still point at it
constexpr std::size_t mostNamed = 10;  // values of a line in its tooltip

double distance(const QLineF& line, const QPointF& point) {
  const auto way = line.p2() - line.p1(), off = point - line.p1();
  const double length = QPointF::dotProduct(way, way);
  const double along = length > 0 ? std::clamp(QPointF::dotProduct(off, way) / length, 0.0, 1.0) : 0;
  return QLineF(line.p1() + along * way, point).length();
}

double distance(const QPainterPath& path, const QPointF& point) {
  double least = 1e300;
  for (const auto& polygon : path.toSubpathPolygons())
    for (int i = 1; i < polygon.size(); ++i)
      least = std::min(least, distance(QLineF(polygon[i - 1], polygon[i]), point));
  return least;
}

}  // namespace

void GraphView::keyPressEvent(QKeyEvent* event) {
  if (event->modifiers() & (Qt::AltModifier | Qt::MetaModifier | Qt::ControlModifier))
    return QWidget::keyPressEvent(event);
  if (event->key() == Qt::Key_Escape && busy_) return cancelLayout();
  if (event->key() == Qt::Key_Escape && !ways_.boxes.empty()) return clearWays();
  if (event->key() == Qt::Key_Escape && finds_) return clearFind();
  if (!picture_)
    return event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter ? layOutAgain()
                                                                           : QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_Left:
    case Qt::Key_Right:
      if (const int next = neighbour(event->key()); next >= 0) {
        setCurrent(next);
        ensureVisible(next, false);
      }
      return;
    case Qt::Key_PageUp: return panBy({0, -0.8 * height()});
    case Qt::Key_PageDown: return panBy({0, 0.8 * height()});
    case Qt::Key_Home: return zoomToWidth();
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current_ < 0) return;
      if (scene().tree->canOpen(currentNode_)) return setOpen(currentNode_, !box(current_).open);
      if (const auto op = opOf(current_)) Q_EMIT jumpRequested(op);
      return;
    case Qt::Key_Plus:
    case Qt::Key_Equal: return current_ >= 0 ? setOpen(currentNode_, true) : void();
    case Qt::Key_Minus:
      if (current_ < 0) return;
      if (box(current_).open) return setOpen(currentNode_, false);
      // On something closed: what is around it is closed and takes its place.
      if (const auto parent = scene().tree->node(currentNode_).parent; parent > 0) {
        currentNode_ = parent;
        setOpen(parent, false);
      }
      return;
    case Qt::Key_Backspace:
      if (current_ >= 0)
        if (const auto around = scene().box(scene().tree->node(currentNode_).parent, currentLane_); around >= 0) {
          setCurrent(around);
          ensureVisible(around, false);
        }
      return;
    case Qt::Key_Asterisk: return setAllOpen(true);
    case Qt::Key_Slash: return setAllOpen(false);
    default: QWidget::keyPressEvent(event);
  }
}

/// Up and down go along edges, where there are some in that direction; to the side to the next box, or across the
/// ladder to the other lane.
int GraphView::neighbour(int key) const {
  if (current_ < 0) return scene().boxes.empty() ? -1 : 0;
  const auto here = toQt(box(current_).rect);
  const bool vertical = key == Qt::Key_Up || key == Qt::Key_Down;
  const double sign = key == Qt::Key_Up || key == Qt::Key_Left ? -1 : 1;
  int best = -1;
  double least = 1e300;
  const auto consider = [&](int i) {
    if (i == current_) return;
    const auto rect = toQt(box(i).rect);
    const auto way = rect.center() - here.center();
    const double ahead = sign * (vertical ? way.y() : way.x()), aside = std::abs(vertical ? way.x() : way.y());
    if (ahead < (vertical ? 4 : 12)) return;
    if (!vertical && (rect.bottom() < here.top() || rect.top() > here.bottom())) return;
    if (const double cost = ahead + 2 * aside; cost < least) {
      least = cost;
      best = i;
    }
  };
  if (vertical) {
    if (box(current_).open) {
      // Into the frame, from above or below.
      for (int i = 0; i < static_cast<int>(scene().boxes.size()); ++i)
        if (scene().tree->node(box(i).node).parent == currentNode_ && box(i).lane == currentLane_) {
          const double cost = sign * box(i).rect.y;
          if (cost < least) {
            least = cost;
            best = i;
          }
        }
      if (best >= 0) return best;
    }
    for (auto i : layout::reachOf(scene(), current_).boxes)
      if (box(i).lane == currentLane_) consider(i);
    if (best >= 0) return best;
  }
  for (int i = 0; i < static_cast<int>(scene().boxes.size()); ++i)
    if (!box(i).open && (!vertical || box(i).lane == currentLane_)) consider(i);
  return best;
}

bool GraphView::isToggleAt(int i, const QPointF& position) const {
  if (i < 0 || !scene().tree->canOpen(box(i).node)) return false;
  const auto rect = boxRect(i);
  const double size = std::max(14.0, 22 * scale_);
  return QRectF(rect.right() - size - 2, rect.top(), size + 2, size + 4).contains(position);
}

bool GraphView::isGround(int i, const QPointF& position) const {
  return i < 0 || (box(i).open && position.y() >= boxRect(i).top() + layout::frame::header * scale_);
}

int GraphView::lineAt(const QPointF& position) const {
  if (!picture_ || detail() != Detail::full || !isGround(boxAt(position), position)) return -1;
  std::vector<std::int32_t> near;
  constexpr double bow = 24;  // in the scene: a curve across the ladder is so far beyond its ends at most
  const double margin = reach / scale_ + bow;
  const auto at = toScene(position);
  picture_->grid.edgesIn(QRectF(at, at).adjusted(-margin, -margin, margin, margin), near);
  const auto lens = this->lens();
  const GraphPainter paint(scene(), look_, lens, texts_);
  int best = -1;
  double least = reach;
  for (auto line : near) {
    const auto& edge = scene().edges[line];
    if (!edgesShown(edge.kind)) continue;
    // The long ones are in every answer of the grid, and the pointer asks with each move.
    if (!edgeArea(scene(), edge).adjusted(-margin, -margin, margin, margin).contains(at)) continue;
    if (const double away = distance(paint.path(edge), position); away <= least) {
      least = away;
      best = line;
    }
  }
  return best;
}

BoundSymbolId GraphView::opAlong(int box, ValueId value, bool makes) const {
  if (const auto op = opOf(box); op || !value) return op;
  const auto& document = *document_->analysis->document;
  const auto holds = [&](const auto& values) { return std::ranges::find(values, value) != values.end(); };
  for (auto op : document_->trace(kind_).lines)
    if ((makes ? holds(document.outputs(op)) : holds(document.operands(op))) && boxOf(op) == box) return op;
  return {};
}

void GraphView::followLine(int line) {
  const auto& edge = scene().edges[line];
  const auto values = picture_->lines.of(line);
  const auto value = values.empty() ? ValueId() : values.front();
  const auto maker = value ? document_->analysis->document->value(value).producer : BoundSymbolId();
  const int begin = maker ? boxOf(maker) : edge.from;
  const bool isBack = begin >= 0 && begin != current_;
  const int end = isBack ? begin : edge.to;
  if (end < 0) return;
  const auto op = opAlong(end, value, isBack);
  setCurrent(end, false);
  if (op) context_.selection->select(op, value);
  ensureVisible(end, false);
}

QString GraphView::lineText(int line) const {
  const auto& document = *document_->analysis->document;
  const auto values = picture_->lines.of(line);
  if (values.empty()) return tr("to the op that it comes from");
  QStringList text;
  for (auto value : values.first(std::min(values.size(), mostNamed))) {
    auto row = nameOf(document, value, context_.notes);
    if (document.isTensor(value)) row += QStringLiteral("  ") + typeText(document.meta(value));
    text << row;
  }
  if (values.size() > mostNamed) text << tr("and %1 more").arg(values.size() - mostNamed);
  if (const auto bytes = picture_->lines.bytes(line); bytes > 0) text << bytesText(bytes);
  return text.join(QLatin1Char('\n'));
}

void GraphView::mousePressEvent(QMouseEvent* event) {
  if (!picture_) return layOutAgain();
  const auto at = event->position();
  pressedLine_ = event->button() == Qt::LeftButton && !minimapRect().contains(at) ? lineAt(at) : -1;
  if (event->button() == Qt::LeftButton && minimapRect().contains(at)) {
    onMinimap_ = true;
    return centreOnMinimap(at);
  }
  const int i = boxAt(at);
  pressed_ = at;
  pressedOrigin_ = origin_;
  panning_ = false;
  if (event->button() == Qt::LeftButton && isToggleAt(i, at)) {
    setCurrent(i);
    return setOpen(box(i).node, !box(i).open);
  }
  if (i >= 0 && (event->button() == Qt::LeftButton || event->button() == Qt::RightButton) && !box(i).open)
    setCurrent(i);
  // On a frame only its title is the frame; the rest is ground to hold on to.
  if (i >= 0 && box(i).open && event->button() == Qt::LeftButton && !isGround(i, at)) setCurrent(i);
}

void GraphView::mouseMoveEvent(QMouseEvent* event) {
  if (!picture_) return;
  const auto at = event->position();
  if (onMinimap_) return centreOnMinimap(at);
  if (event->buttons() & (Qt::LeftButton | Qt::MiddleButton)) {
    if (!panning_ && (at - pressed_).manhattanLength() > 6) {
      panning_ = true;
      setCursor(Qt::ClosedHandCursor);
    }
    if (panning_) {
      origin_ = pressedOrigin_ - (at - pressed_) / scale_;
      keepInSight();
      moved();
    }
    return;
  }
  if (const bool onMap = minimapRect().contains(at); onMap != pointsAtMinimap_) {
    pointsAtMinimap_ = onMap;
    update();
  }
  const int i = boxAt(at);
  setHovered(i >= 0 && !box(i).open ? i : -1);
  setCursor(isToggleAt(i, at) || lineAt(at) >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
}

void GraphView::mouseReleaseEvent(QMouseEvent* event) {
  // What was pressed counts: a layout that came meanwhile may have put a line below the pointer.
  const int line = std::exchange(pressedLine_, -1);
  if (line >= 0 && !panning_ && lineAt(event->position()) == line) followLine(line);
  onMinimap_ = panning_ = false;
  setCursor(Qt::ArrowCursor);
}

void GraphView::mouseDoubleClickEvent(QMouseEvent* event) {
  const int i = boxAt(event->position());
  if (i < 0 || event->button() != Qt::LeftButton) return;
  if (isToggleAt(i, event->position())) return mousePressEvent(event);
  setCurrent(i);
  if (scene().tree->canOpen(box(i).node)) return setOpen(box(i).node, !box(i).open);
  if (const auto op = opOf(i)) Q_EMIT jumpRequested(op);
}

void GraphView::wheelEvent(QWheelEvent* event) {
  if (!picture_) return;
  const auto pixels =
      event->pixelDelta().isNull() ? QPointF(event->angleDelta()) / 120.0 * 90 : QPointF(event->pixelDelta());
  if (event->modifiers() & Qt::ControlModifier)
    zoomBy(std::pow(1.25, event->angleDelta().y() / 120.0), event->position());
  else if (event->modifiers() & Qt::ShiftModifier) panBy({-(pixels.y() + pixels.x()), 0});
  else panBy(-pixels);
  event->accept();
}

void GraphView::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  pointsAtMinimap_ = false;
  if (picture_) setHovered(-1);
}

void GraphView::contextMenuEvent(QContextMenuEvent* event) {
  if (!picture_) return;
  auto* menu = contextMenu(this);
  const auto op = opOf(current_);
  if (current_ >= 0 && scene().tree->canOpen(currentNode_)) {
    const bool open = box(current_).open;
    menu->addAction(withFixedKey(open ? tr("Close") : tr("Open"), Qt::Key_Enter), this,
                    [this, open, node = currentNode_] { setOpen(node, !open); });
  }
  const auto noOp = op ? QString() : tr("This box is not an op");
  disableBecause(menu->addAction(withKey(tr("Go to Origin or Back"), *this, "origin"), this,
                                 [this, op] { Q_EMIT jumpRequested(op); }),
                 noOp);
  disableBecause(menu->addAction(withKey(tr("Toggle Breakpoint"), *this, "breakpoint"), this,
                                 [this, op] { Q_EMIT breakpointRequested(op); }),
                 noOp);
  menu->addSeparator();
  menu->addAction(withFixedKey(tr("Open All"), Qt::Key_Asterisk), this, [this] { setAllOpen(true); });
  menu->addAction(withFixedKey(tr("Close All"), Qt::Key_Slash), this, [this] { setAllOpen(false); });
  menu->addSeparator();
  menu->addAction(withKey(tr("Zoom to Fit"), *this, "graph-fit"), this, [this] { zoomToFit(); });
  menu->addAction(withFixedKey(tr("Zoom to Width"), Qt::Key_Home), this, [this] { zoomToWidth(); });
  const auto noBox = current_ >= 0 ? QString() : tr("No box is selected");
  disableBecause(
      menu->addAction(withKey(tr("Zoom to Selection"), *this, "graph-selection"), this, [this] { zoomToSelection(); }),
      noBox);
  disableBecause(
      menu->addAction(withKey(tr("Zoom to Module"), *this, "graph-module"), this, [this] { zoomToModule(); }), noBox);
  Q_EMIT menuAboutToShow(menu);
  menu->exec(event->reason() == QContextMenuEvent::Mouse || current_ < 0
                 ? event->globalPos()
                 : mapToGlobal(boxRect(current_).bottomLeft().toPoint()));
}

void GraphView::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  Q_EMIT activated();
}

void GraphView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  keepInSight();
}

bool GraphView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || !picture_) return QWidget::event(event);
  auto* help = static_cast<QHelpEvent*>(event);
  const int i = boxAt(help->pos());
  QString text;
  if (const auto op = opOf(i)) {
    const auto& document = *document_->analysis->document;
    text = toQt(printCall(document, op));
    if (const auto comment = toQt(printComment(document, op)); !comment.isEmpty())
      text += QStringLiteral("\n# ") + comment;
  } else if (i >= 0 && !box(i).open) {
    const auto& node = scene().tree->node(box(i).node);
    text = textOf(i);
    if (node.savedBytes > 0)
      text += QLatin1Char('\n') + tr("keeps %1 for the backward").arg(bytesText(node.savedBytes));
  } else if (const int line = lineAt(help->pos()); line >= 0) {
    text = lineText(line);
  }
  // Plain text: names of a file must not be read as markup.
  if (text.isEmpty()) QToolTip::hideText();
  else
    QToolTip::showText(help->globalPos(),
                       QStringLiteral("<pre style='white-space:pre-wrap'>%1</pre>").arg(text.toHtmlEscaped()), this);
  return true;
}

}  // namespace retrograd::views
