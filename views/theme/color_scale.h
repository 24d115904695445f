#pragma once
#include <QColor>

namespace retrograd::views {

/// Numbers as colours: from dark to light where all have one sign, else from blue over white to red with white at zero.
/// Both are distinguished by lightness too.
class ColorScale {
 public:
  ColorScale() = default;
  /// Of what lies between `least` and `greatest`, both finite.
  ColorScale(double least, double greatest);

  double least() const { return least_; }
  double greatest() const { return greatest_; }
  bool hasZero() const { return least_ < 0 && greatest_ > 0; }
  /// Numbers outside are drawn as the ends; NaN has no colour of its own and is black.
  QRgb color(double number) const;

 private:
  double least_ = 0, greatest_ = 0;
};

}  // namespace retrograd::views
