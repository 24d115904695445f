#pragma once
#include <QWidget>
#include <span>
#include <vector>

#include "views/theme/theme.h"

namespace retrograd::views {

/// Norms of parameters or layers in the order of the model, as bars on a logarithmic scale: of the value, of the
/// gradient, and their ratio as a mark. Bars that would be too narrow to be seen share a place, which shows the
/// greatest of each number, and the least ratio as well.
class GradientFlowChart : public QWidget {
  Q_OBJECT

 public:
  struct Bar {
    QString name;
    double value = 0, gradient = 0;
    bool isKnown = false;
    bool hasGradient = true;
    double ratio() const { return value > 0 ? gradient / value : 0; }
  };

  explicit GradientFlowChart(Theme* theme, QWidget* parent = nullptr);
  /// `reason` says why none of the bars is known, where that is so.
  void show(std::vector<Bar> bars, const QString& reason = {});
  void setCurrent(int bar);
  const std::vector<Bar>& bars() const { return bars_; }
  /// The room of a bar's two columns; where it shares a place, of that.
  QRectF barRect(std::size_t bar) const;
  /// The bar at this point; -1 where there is none. Of those that share a place, the one with the greatest gradient.
  int barAt(const QPoint& at) const;

 Q_SIGNALS:
  void chosen(int bar);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRect plot() const;
  std::size_t barsInAPlace() const;
  /// All bars in the place of this one.
  std::span<const Bar> inPlaceOf(std::size_t bar) const;
  QString tipOf(std::size_t bar) const;
  static QString legendText(int part);
  double shareOf(double number) const;  ///< from 0 to 1 on the scale

  Theme* theme_;
  std::vector<Bar> bars_;
  QString reason_;  ///< shown instead of bars
  int current_ = -1;
  double least_ = -3, most_ = 3;  ///< powers of ten
};

}  // namespace retrograd::views
