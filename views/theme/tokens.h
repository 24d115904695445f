#pragma once
#include <QColor>

/// The measures of the window, and the colours of its controls, that widgets and painters share. Colours of code, graph
/// and plots are `Colors`; both are tables of views/theme/theme_colors.cpp.
namespace retrograd::views::tokens {

// Spacing, in pixels at scale 1.
inline constexpr int hair = 2, tight = 4, gap = 8, wide = 14;
inline constexpr int gutterWidth = 28;  ///< of a listing: two marks side by side
inline constexpr int selectionBar = 3;  ///< the bar before a selected row
inline constexpr int splitterWidth = 5;
inline constexpr int focusRing = 3;  ///< on black and white
inline constexpr int toolIcon = 18, glyph = 9;

// Sizes of type, as parts of the application's font.
inline constexpr double smallType = 0.85;

/// The window's share of the screen at its first start.
inline constexpr double firstShare = 0.85;

}  // namespace retrograd::views::tokens

namespace retrograd::views {

/// Colours of controls that Fusion would derive from the palette so faintly that they are not seen in dark windows.
struct ControlColors {
  QColor scrollGroove, scrollHandle, scrollHandleHover;
  QColor tabAccent;                 ///< the bar on the chosen tab
  QColor checkedFill, checkedLine;  ///< a tool button that is on
  QColor glyph;                     ///< close and float of a dock
  QColor idleSelection, idleBar;    ///< of a view without the focus
  QColor columnText;                ///< shapes and origins next to the code
};
ControlColors controlColorsOf(bool dark, bool highContrast);

}  // namespace retrograd::views
