#pragma once
#include <QScreen>
#include <QWidget>

#include "views/theme/tokens.h"

namespace retrograd::views {

/// The first size of a window: this one, but no more of the screen than the main window takes at its first start.
inline void resizeWithinScreen(QWidget& window, const QSize& wanted) {
  window.resize(wanted.boundedTo(window.screen()->availableGeometry().size() * tokens::firstShare));
}

}  // namespace retrograd::views
