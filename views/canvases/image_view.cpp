#include "views/canvases/image_view.h"

#include <QKeyEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr int scaleWidth = 96, barWidth = 14, margin = 4;
constexpr double greatestCell = 64;

}  // namespace

ImageView::ImageView(Theme* theme, SliceModel* slice, QWidget* parent)
    : QAbstractScrollArea(parent), theme_(theme), slice_(slice) {
  setObjectName(QStringLiteral("image"));
  setAccessibleName(tr("The slice as a picture"));
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::StrongFocus);
  viewport()->setAutoFillBackground(false);
  setToolTip(tr("Arrows move over the elements, + and - zoom, 0 fits"));
  const auto repaint = [this] { viewport()->update(); };
  connect(theme_, &Theme::changed, this, repaint);
  connect(slice_, &SliceModel::modelReset, this, &ImageView::reset);
  connect(slice_, &SliceModel::dataChanged, this, [this] { setCursorAt(row_, column_); });
}

void ImageView::setScale(const ColorScale& scale) {
  scale_ = scale;
  viewport()->update();
}

void ImageView::reset() {
  row_ = column_ = 0;
  zoom_ = 0;
  layOut();
}

QRect ImageView::area() const {
  return viewport()->rect().adjusted(margin, margin, -scaleWidth, -fontMetrics().height() - 2 * margin);
}

double ImageView::fitting() const {
  const auto room = area();
  const double across = static_cast<double>(room.width()) / std::max(1, slice_->columnCount());
  const double down = static_cast<double>(room.height()) / std::max(1, slice_->rowCount());
  return std::clamp(std::min(across, down), 1e-3, greatestCell);
}

void ImageView::layOut() {
  const auto range = [&](QScrollBar* bar, int count, int room) {
    bar->setRange(0, std::max(0, static_cast<int>(std::ceil(count * cell())) - room));
    bar->setPageStep(std::max(1, room));
    bar->setSingleStep(std::max(1, static_cast<int>(cell())));
  };
  range(horizontalScrollBar(), slice_->columnCount(), area().width());
  range(verticalScrollBar(), slice_->rowCount(), area().height());
  viewport()->update();
}

void ImageView::zoomTo(double cell) {
  zoom_ = std::clamp(cell, std::min(1.0, fitting()), greatestCell);
  layOut();
  setCursorAt(row_, column_);
}

QString ImageView::cursorText() const {
  if (slice_->rowCount() == 0) return {};
  return QStringLiteral("[%1, %2] = %3").arg(row_).arg(column_).arg(slice_->index(row_, column_).data().toString());
}

void ImageView::setCursorAt(int row, int column) {
  row_ = std::clamp(row, 0, std::max(0, slice_->rowCount() - 1));
  column_ = std::clamp(column, 0, std::max(0, slice_->columnCount() - 1));
  const auto show = [&](QScrollBar* bar, int at, int room) {
    const auto begin = static_cast<int>(at * cell()), end = static_cast<int>((at + 1) * cell());
    if (begin < bar->value()) bar->setValue(begin);
    if (end > bar->value() + room) bar->setValue(end - room);
  };
  show(horizontalScrollBar(), column_, area().width());
  show(verticalScrollBar(), row_, area().height());
  setAccessibleDescription(cursorText());
  viewport()->update();
}

void ImageView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.fillRect(viewport()->rect(), theme_->colors().background);
  if (slice_->rowCount() == 0 || area().width() < 8 || area().height() < 8) return;
  paintCells(painter);
  paintMarks(painter);
  paintScale(painter);
  painter.setPen(theme_->colors().text);
  const QRect line(margin, viewport()->height() - fontMetrics().height() - margin, viewport()->width() - 2 * margin,
                   fontMetrics().height());
  auto text = cursorText();
  if (cell() < 1) text += tr("   (every %1th element shows)").arg(static_cast<int>(std::ceil(1 / cell())));
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, text);
}

/// One colour a pixel of the picture, whatever the slice's size: no more is computed than is seen.
void ImageView::paintCells(QPainter& painter) {
  const auto room = area();
  const double size = cell();
  const int width = std::min(
      room.width(), static_cast<int>(std::ceil(slice_->columnCount() * size)) - horizontalScrollBar()->value());
  const int height =
      std::min(room.height(), static_cast<int>(std::ceil(slice_->rowCount() * size)) - verticalScrollBar()->value());
  if (width <= 0 || height <= 0) return;
  QImage image(width, height, QImage::Format_RGB32);
  int lastRow = -1;
  for (int y = 0; y < height; ++y) {
    auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
    const int row = std::min(static_cast<int>((y + verticalScrollBar()->value()) / size), slice_->rowCount() - 1);
    if (row == lastRow) {
      std::copy_n(reinterpret_cast<const QRgb*>(image.constScanLine(y - 1)), width, line);
      continue;
    }
    lastRow = row;
    int lastColumn = -1;
    for (int x = 0; x < width; ++x) {
      const int column =
          std::min(static_cast<int>((x + horizontalScrollBar()->value()) / size), slice_->columnCount() - 1);
      line[x] = column == lastColumn ? line[x - 1] : scale_.color(slice_->number(row, column));
      lastColumn = column;
    }
  }
  painter.drawImage(room.topLeft(), image);
}

/// The cursor, and signs for NaN and Inf where cells are large enough for one.
void ImageView::paintMarks(QPainter& painter) {
  const auto& colors = theme_->colors();
  const auto room = area();
  const double size = cell();
  const auto cellRect = [&](int row, int column) {
    return QRectF(room.left() + column * size - horizontalScrollBar()->value(),
                  room.top() + row * size - verticalScrollBar()->value(), size, size);
  };
  painter.save();
  painter.setClipRect(room);
  if (size >= 4) {
    const int firstRow = static_cast<int>(verticalScrollBar()->value() / size),
              firstColumn = static_cast<int>(horizontalScrollBar()->value() / size);
    const int rows = std::min(slice_->rowCount(), firstRow + static_cast<int>(room.height() / size) + 2);
    const int columns = std::min(slice_->columnCount(), firstColumn + static_cast<int>(room.width() / size) + 2);
    painter.setPen(QPen(colors.pictureMark, 1));
    for (int row = firstRow; row < rows; ++row)
      for (int column = firstColumn; column < columns; ++column) {
        const double number = slice_->number(row, column);
        if (std::isfinite(number)) continue;
        const auto rect = cellRect(row, column).adjusted(1, 1, -1, -1);
        if (std::isnan(number)) {
          painter.drawLine(rect.topLeft(), rect.bottomRight());
          painter.drawLine(rect.topRight(), rect.bottomLeft());
        } else {
          painter.setBrush(colors.pictureEdge);
          painter.drawEllipse(rect.center(), size / 5, size / 5);
        }
      }
  }
  const auto cursor = cellRect(row_, column_);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(colors.pictureEdge, 3));
  painter.drawRect(cursor.adjusted(-1, -1, 1, 1));
  painter.setPen(QPen(hasFocus() ? colors.pictureFocus : colors.pictureMark, 1));
  painter.drawRect(cursor.adjusted(-1, -1, 1, 1));
  painter.restore();
}

void ImageView::paintScale(QPainter& painter) {
  const auto room = area();
  const QRect bar(room.right() + 10, room.top() + fontMetrics().height() / 2, barWidth,
                  std::max(8, room.height() - fontMetrics().height()));
  const double span = scale_.greatest() - scale_.least();
  for (int y = 0; y < bar.height(); ++y)
    painter.fillRect(bar.left(), bar.top() + y, bar.width(), 1,
                     QColor(scale_.color(scale_.greatest() - span * y / std::max(1, bar.height() - 1))));
  painter.setPen(theme_->colors().comment);
  const auto label = [&](double number, int y) {
    painter.drawText(
        QRect(bar.right() + 5, y - fontMetrics().height() / 2, scaleWidth - barWidth - 14, fontMetrics().height()),
        Qt::AlignLeft | Qt::AlignVCenter, numberText(number));
  };
  label(scale_.greatest(), bar.top());
  label(scale_.least(), bar.bottom());
  const int zero = span > 0 ? bar.top() + static_cast<int>(bar.height() * scale_.greatest() / span) : bar.top();
  const bool isClear = zero - bar.top() > fontMetrics().height() && bar.bottom() - zero > fontMetrics().height();
  if (scale_.hasZero() && isClear) label(0, zero);
}

void ImageView::keyPressEvent(QKeyEvent* event) {
  const int page = std::max(1, static_cast<int>(area().height() / cell()));
  switch (event->key()) {
    case Qt::Key_Left: return setCursorAt(row_, column_ - 1);
    case Qt::Key_Right: return setCursorAt(row_, column_ + 1);
    case Qt::Key_Up: return setCursorAt(row_ - 1, column_);
    case Qt::Key_Down: return setCursorAt(row_ + 1, column_);
    case Qt::Key_PageUp: return setCursorAt(row_ - page, column_);
    case Qt::Key_PageDown: return setCursorAt(row_ + page, column_);
    case Qt::Key_Home: return setCursorAt(0, 0);
    case Qt::Key_End: return setCursorAt(slice_->rowCount() - 1, slice_->columnCount() - 1);
    case Qt::Key_Plus: return zoomTo(cell() * 1.5);
    case Qt::Key_Minus: return zoomTo(cell() / 1.5);
    case Qt::Key_0: zoom_ = 0; return layOut();
    default: return QAbstractScrollArea::keyPressEvent(event);
  }
}

void ImageView::pick(const QPoint& point) {
  const auto room = area();
  if (!room.contains(point)) return;
  setCursorAt(static_cast<int>((point.y() - room.top() + verticalScrollBar()->value()) / cell()),
              static_cast<int>((point.x() - room.left() + horizontalScrollBar()->value()) / cell()));
}

void ImageView::mousePressEvent(QMouseEvent* event) { pick(event->position().toPoint()); }
void ImageView::mouseMoveEvent(QMouseEvent* event) { pick(event->position().toPoint()); }

void ImageView::wheelEvent(QWheelEvent* event) {
  if (!(event->modifiers() & Qt::ControlModifier)) return QAbstractScrollArea::wheelEvent(event);
  zoomTo(event->angleDelta().y() > 0 ? cell() * 1.25 : cell() / 1.25);
}

void ImageView::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  layOut();
}

}  // namespace retrograd::views
