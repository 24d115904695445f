#pragma once
#include <QImage>
#include <QWidget>
#include <algorithm>
#include <cmath>

namespace retrograd::views {

inline QImage imageOf(QWidget& widget) { return widget.grab().toImage(); }

inline bool hasColor(const QImage& image, const QColor& color) {
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      if (image.pixelColor(x, y).rgb() == color.rgb()) return true;
  return false;
}

/// Relative luminance as WCAG 2.1 defines it.
inline double luminance(const QColor& color) {
  const auto linear = [](double part) {
    return part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

/// Contrast as WCAG 2.1 defines it.
inline double contrast(const QColor& a, const QColor& b) {
  const auto [low, high] = std::minmax({luminance(a), luminance(b)});
  return (high + 0.05) / (low + 0.05);
}

}  // namespace retrograd::views
