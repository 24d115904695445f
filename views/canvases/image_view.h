#pragma once
#include <QAbstractScrollArea>

#include "views/models/slice_model.h"
#include "views/theme/color_scale.h"
#include "views/theme/theme.h"

namespace retrograd::views {

/// A slice as a picture, an element a cell, with its colour scale beneath. A cursor goes over the elements by arrows or
/// mouse and shows index and number;
/// + and - zoom, 0 fits the slice into the view. Cells with NaN are crossed, those with an infinity bear a dot.
class ImageView : public QAbstractScrollArea {
  Q_OBJECT

 public:
  ImageView(Theme* theme, SliceModel* slice, QWidget* parent = nullptr);

  /// The numbers that the scale ranges over: least and greatest of the whole tensor, so that slices can be compared.
  void setScale(const ColorScale& scale);
  /// "[3, 7] = 0.25": what is under the cursor; empty where nothing is shown.
  QString cursorText() const;
  void setCursorAt(int row, int column);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  QRect area() const;  ///< of the picture within the viewport
  double fitting() const;
  double cell() const { return zoom_ > 0 ? zoom_ : fitting(); }
  void zoomTo(double cell);
  void layOut();
  void reset();
  void paintCells(QPainter& painter);
  void paintMarks(QPainter& painter);
  void paintScale(QPainter& painter);
  void pick(const QPoint& point);

  Theme* theme_;
  SliceModel* slice_;
  ColorScale scale_;
  double zoom_ = 0;  ///< pixels an element; 0: as fits
  int row_ = 0, column_ = 0;
};

}  // namespace retrograd::views
