#include "views/memory/address_map_view.h"

#include <QAccessible>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/memory/memory_history_view.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr double mostZoom = 4096;
constexpr int side = 6, markHeight = 4;

QString sizeText(std::uint64_t bytes) { return bytesText(static_cast<std::int64_t>(bytes)); }

}  // namespace

AddressMapView::AddressMapView(Theme* theme, QWidget* parent) : ScrolledCanvas(theme, parent) {
  setObjectName(QStringLiteral("memory-addresses"));
  setAccessibleName(tr("Recorded memory by address"));
  setMinimumHeight(60);
}

void AddressMapView::set(AddressPicture picture, Words words) {
  picture_ = std::move(picture);
  words_ = std::move(words);
  current_ = none;
  placeBars();
  viewport()->update();
}

void AddressMapView::setHint(const QString& hint) {
  hint_ = hint;
  viewport()->update();
}

void AddressMapView::setMarked(std::set<std::int32_t> allocations) {
  if (marked_ == allocations) return;
  marked_ = std::move(allocations);
  viewport()->update();
}

void AddressMapView::setCurrent(int piece) {
  if (piece >= static_cast<int>(picture_.layout.pieces.size())) piece = none;
  if (piece == current_) return;
  current_ = piece;
  const auto text = piece == none ? QString() : words_(static_cast<std::size_t>(piece));
  setAccessibleDescription(text);
  if (piece != none) reveal(piece);
  if (QAccessible::isActive()) {
    QAccessibleEvent event(this, QAccessible::DescriptionChanged);
    QAccessible::updateAccessibility(&event);
  }
  viewport()->update();
}

void AddressMapView::pick(int piece) {
  if (piece == none) return;
  setCurrent(piece);
  Q_EMIT chosen(piece);
}

int AddressMapView::pieceOf(std::int32_t allocation) const {
  const auto found = std::ranges::find(picture_.layout.pieces, allocation, &LaidOutPiece::allocation);
  return found == picture_.layout.pieces.end() ? none : static_cast<int>(found - picture_.layout.pieces.begin());
}

int AddressMapView::labelWidth() const {
  int wide = 0;
  for (const auto& segment : picture_.layout.segments)
    wide = std::max(wide, fontMetrics().horizontalAdvance(sizeText(segment.size)));
  return side + wide + side;
}

int AddressMapView::freeWidth() const {
  return side + fontMetrics().horizontalAdvance(tr("%1 free").arg(sizeText(1000 * 1024)));
}

double AddressMapView::plotWidth() const {
  return zoom_ * std::max(1, viewport()->width() - labelWidth() - freeWidth() - side);
}

int AddressMapView::rowOf(int piece) const {
  const auto behind = std::ranges::upper_bound(picture_.layout.segments, static_cast<std::size_t>(piece), {},
                                               &LaidOutSegment::firstPiece);
  return static_cast<int>(behind - picture_.layout.segments.begin()) - 1;
}

int AddressMapView::y(int row) const { return 2 + row * rowStep() - verticalScrollBar()->value(); }

double AddressMapView::x(const LaidOutSegment& segment, std::uint64_t address) const {
  const auto share = static_cast<double>(address - segment.address) / static_cast<double>(segment.size);
  return labelWidth() - horizontalScrollBar()->value() + share * plotWidth();
}

QRectF AddressMapView::pieceRect(int piece) const {
  const int row = rowOf(piece);
  const auto& segment = picture_.layout.segments[row];
  const auto& what = picture_.layout.pieces[piece];
  const double left = x(segment, what.address), right = x(segment, what.address + what.size);
  return {left, static_cast<double>(y(row)), std::max(1.0, right - left), static_cast<double>(rowHeight())};
}

int AddressMapView::pieceAt(const QPointF& point) const {
  const auto& layout = picture_.layout;
  const int within = static_cast<int>(std::floor(point.y())) - y(0), row = within / rowStep();
  if (within < 0 || row >= static_cast<int>(layout.segments.size()) || within % rowStep() >= rowHeight()) return none;
  const auto& segment = layout.segments[row];
  const double share = (point.x() - x(segment, segment.address)) / plotWidth();
  if (share < 0 || share >= 1 || point.x() < labelWidth()) return none;
  const auto address = segment.address + static_cast<std::uint64_t>(share * static_cast<double>(segment.size));
  const auto pieces = std::span(layout.pieces).subspan(segment.firstPiece, segment.pieceCount);
  const auto behind = std::ranges::upper_bound(pieces, address, {}, &LaidOutPiece::address);
  return behind == pieces.begin()
             ? none
             : static_cast<int>(segment.firstPiece) + static_cast<int>(behind - pieces.begin()) - 1;
}

void AddressMapView::placeBars() {
  const int room = std::max(1, viewport()->height());
  const int rows = static_cast<int>(picture_.layout.segments.size()) * rowStep() + 4;
  verticalScrollBar()->setRange(0, std::max(0, rows - room));
  verticalScrollBar()->setPageStep(room);
  verticalScrollBar()->setSingleStep(rowStep());
  const int wide = static_cast<int>(plotWidth() / zoom_);
  horizontalScrollBar()->setRange(0, std::max(0, static_cast<int>(plotWidth()) - wide));
  horizontalScrollBar()->setPageStep(wide);
  horizontalScrollBar()->setSingleStep(40);
}

void AddressMapView::zoomBy(double factor, double at) {
  const double zoom = std::clamp(zoom_ * factor, 1.0, mostZoom);
  const double place = (at - labelWidth() + horizontalScrollBar()->value()) / plotWidth();
  zoom_ = zoom;
  placeBars();
  horizontalScrollBar()->setValue(static_cast<int>(std::lround(place * plotWidth() - at + labelWidth())));
  viewport()->update();
}

void AddressMapView::reveal(int piece) {
  const auto rect = pieceRect(piece);
  const int top = static_cast<int>(rect.top()), bottom = static_cast<int>(rect.bottom());
  auto* up = verticalScrollBar();
  if (top < 0) up->setValue(up->value() + top - 2);
  else if (bottom > viewport()->height()) up->setValue(up->value() + bottom - viewport()->height() + 2);
  auto* along = horizontalScrollBar();
  const double right = labelWidth() + plotWidth() / zoom_;
  if (rect.left() < labelWidth() || rect.left() >= right)
    along->setValue(along->value() + static_cast<int>(rect.left() - labelWidth() - 20));
}

void AddressMapView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.fillRect(viewport()->rect(), theme_->colors().background);
  const int rows = static_cast<int>(picture_.layout.segments.size());
  if (rows == 0) paintHint(painter, {12, 0, 12, 0}, hint_);
  for (int row = std::max(0, -y(0) / rowStep()); row < rows && y(row) < viewport()->height(); ++row)
    paintRow(painter, row);
  paintFocus(painter);
}

void AddressMapView::paintRow(QPainter& painter, int row) const {
  const auto& colors = theme_->colors();
  const auto& segment = picture_.layout.segments[row];
  painter.setPen(colors.text);
  painter.drawText(QRect(0, y(row), labelWidth() - side, rowHeight()), Qt::AlignVCenter | Qt::AlignRight,
                   sizeText(segment.size));
  painter.setPen(colors.gutterText);
  if (const auto free = segment.size - segment.held; free > 0)
    painter.drawText(QRect(viewport()->width() - freeWidth(), y(row), freeWidth() - side, rowHeight()),
                     Qt::AlignVCenter | Qt::AlignRight, tr("%1 free").arg(sizeText(free)));
  const QRectF plot(labelWidth(), y(row), plotWidth() / zoom_, rowHeight());
  painter.save();
  painter.setClipRect(plot.adjusted(-1, -1, 1, 1));
  painter.fillRect(plot, colors.gutter);
  const auto first = static_cast<int>(segment.firstPiece), end = first + static_cast<int>(segment.pieceCount);
  int next = pieceAt({plot.left(), plot.top()});
  for (next = next == none ? first : next; next < end; ++next) {
    if (x(segment, picture_.layout.pieces[next].address) > plot.right()) break;
    paintPiece(painter, next);
  }
  painter.restore();
}

void AddressMapView::paintPiece(QPainter& painter, int piece) const {
  const auto& colors = theme_->colors();
  const auto& what = picture_.layout.pieces[piece];
  const auto rect = pieceRect(piece);
  painter.setBrush(Qt::NoBrush);
  if (what.allocation == LaidOutPiece::free) {
    const bool isLargest = picture_.wanted > 0 && picture_.largest == static_cast<std::size_t>(piece);
    painter.fillRect(rect, QBrush(isLargest ? colors.bad : colors.gutterText, Qt::BDiagPattern));
  } else {
    const auto color = MemoryHistoryView::colorOf(*theme_, *picture_.stack, picture_.bands[piece]);
    painter.fillRect(rect, ZoomedPlot::softer(color, colors.background));
    painter.fillRect(QRectF(rect.left(), rect.top(), 1, rect.height()), color);
    if (marked_.contains(what.allocation))
      painter.fillRect(QRectF(rect.left(), rect.bottom() - markHeight, rect.width(), markHeight), colors.text);
  }
  if (piece != current_) return;
  painter.setPen(QPen(palette().color(QPalette::Active, QPalette::Highlight), 2));
  painter.drawRect(rect.adjusted(1, 1, -1, -1));
}

void AddressMapView::resizeEvent(QResizeEvent* event) {
  ScrolledCanvas::resizeEvent(event);
  placeBars();
}

void AddressMapView::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) pick(pieceAt(event->position()));
}

void AddressMapView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int piece = pieceAt(event->position()); piece != none) Q_EMIT activated(piece);
}

void AddressMapView::wheelEvent(QWheelEvent* event) {
  if (!(event->modifiers() & Qt::ControlModifier)) return ScrolledCanvas::wheelEvent(event);
  zoomBy(std::pow(1.2, event->angleDelta().y() / 120.0), event->position().x());
  event->accept();
}

int AddressMapView::pieceInRow(int row) const {
  const auto& segments = picture_.layout.segments;
  if (row < 0 || row >= static_cast<int>(segments.size())) return current_;
  const double at = std::max(pieceRect(current_).center().x(), labelWidth() + 0.5);
  const auto& segment = segments[row];
  const int found = pieceAt({std::min(at, labelWidth() + plotWidth() / zoom_ - 1), y(row) + 1.0});
  return found == none ? static_cast<int>(segment.firstPiece) : found;
}

void AddressMapView::keyPressEvent(QKeyEvent* event) {
  const auto count = static_cast<int>(picture_.layout.pieces.size());
  if (count == 0) return ScrolledCanvas::keyPressEvent(event);
  const double middle = labelWidth() + plotWidth() / zoom_ / 2;
  switch (event->key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(1.5, middle);
    case Qt::Key_Minus: return zoomBy(1 / 1.5, middle);
    case Qt::Key_0: return zoomBy(0, middle);
    case Qt::Key_L:
      if (picture_.largest) pick(static_cast<int>(*picture_.largest));
      return;
    default: break;
  }
  if (current_ == none) {
    const bool moves = event->key() >= Qt::Key_Home && event->key() <= Qt::Key_PageDown;
    return moves ? pick(0) : ScrolledCanvas::keyPressEvent(event);
  }
  const int row = rowOf(current_), page = std::max(1, viewport()->height() / rowStep() - 1);
  const int last = static_cast<int>(picture_.layout.segments.size()) - 1;
  const auto& segment = picture_.layout.segments[row];
  switch (event->key()) {
    case Qt::Key_Left: return pick(std::max(current_ - 1, 0));
    case Qt::Key_Right: return pick(std::min(current_ + 1, count - 1));
    case Qt::Key_Up: return pick(pieceInRow(row - 1));
    case Qt::Key_Down: return pick(pieceInRow(row + 1));
    case Qt::Key_PageUp: return pick(pieceInRow(std::max(row - page, 0)));
    case Qt::Key_PageDown: return pick(pieceInRow(std::min(row + page, last)));
    case Qt::Key_Home: return pick(static_cast<int>(segment.firstPiece));
    case Qt::Key_End: return pick(static_cast<int>(segment.firstPiece + segment.pieceCount) - 1);
    case Qt::Key_Return:
    case Qt::Key_Enter: Q_EMIT activated(current_); return;
    default: ScrolledCanvas::keyPressEvent(event);
  }
}

bool AddressMapView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const int piece = pieceAt(help->pos());
    if (piece == none) QToolTip::hideText();
    else
      QToolTip::showText(help->globalPos(), words_(static_cast<std::size_t>(piece)), viewport(),
                         pieceRect(piece).toRect());
    return true;
  }
  return ScrolledCanvas::viewportEvent(event);
}

}  // namespace retrograd::views
