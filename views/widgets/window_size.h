#pragma once
#include <QScreen>
#include <QStyle>
#include <QWidget>
#include <algorithm>

#include "views/theme/tokens.h"

namespace retrograd::views {

/// The first size of a window: this one, but no more of the screen than the main window takes at its first start.
inline void resizeWithinScreen(QWidget& window, const QSize& wanted) {
  window.resize(wanted.boundedTo(window.screen()->availableGeometry().size() * tokens::firstShare));
}

/// A window whose geometry was kept on a larger screen, or on one that is gone, is made to fit into this one, frame
/// included.
inline void keepWithinScreen(QWidget& window) {
  if (window.isMaximized() || window.isFullScreen()) return;
  const auto room = window.screen()->availableGeometry();
  const auto frame = window.frameGeometry().size() - window.size();
  const QSize edges(frame.width(),
                    frame.height() > 0 ? frame.height() : window.style()->pixelMetric(QStyle::PM_TitleBarHeight));
  window.resize(window.size().boundedTo(room.size() - edges));
  const auto left =
      std::clamp(window.x(), room.left(), std::max(room.left(), room.right() + 1 - window.width() - edges.width()));
  const auto top =
      std::clamp(window.y(), room.top(), std::max(room.top(), room.bottom() + 1 - window.height() - edges.height()));
  if (QPoint(left, top) != window.pos()) window.move(left, top);
}

}  // namespace retrograd::views
