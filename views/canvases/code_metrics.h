#pragma once
#include <QWidget>
#include <cmath>
#include <tuple>

#include "views/theme/theme.h"

namespace retrograd::views {

/// Gives a viewport the code font. Returns the height of a line, where in it the letters are, and the width of a
/// character, in pixels.
inline std::tuple<int, int, qreal> useCodeFont(QWidget& viewport) {
  const auto font = Theme::codeFont();
  viewport.setFont(font);
  const QFontMetricsF metrics(font);
  return {static_cast<int>(std::ceil(metrics.height())) + 3, static_cast<int>(std::ceil(metrics.ascent())) + 1,
          std::max(1.0, metrics.horizontalAdvance(QLatin1Char('m')))};
}

}  // namespace retrograd::views
