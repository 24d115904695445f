#pragma once
#include <QPalette>

#include "views/theme/theme.h"

namespace retrograd::views {

/// All colours of a theme: of Qt's widgets, and of our own views. Text has a contrast of 4.5:1 or better with what is
/// behind it, marks of 3:1 (WCAG 2.1, AA); with high contrast of 7:1 and 4.5:1.
QPalette paletteOf(bool dark, bool highContrast);
Colors colorsOf(bool dark, bool highContrast);

}  // namespace retrograd::views
