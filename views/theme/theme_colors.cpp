#include "views/theme/theme_colors.h"

#include <algorithm>

#include "views/theme/tokens.h"

namespace retrograd::views {
namespace {

struct Shades {
  QColor window, base, alternate, text, faint, button, highlight, highlightedText, link, tooltip, line, idle, disabled;
};

QPalette paletteFrom(const Shades& s) {
  QPalette p(s.text, s.button, s.button.lighter(120), s.line, s.line.lighter(110), s.text, s.text, s.base, s.window);
  p.setColor(QPalette::AlternateBase, s.alternate);
  p.setColor(QPalette::Highlight, s.highlight);
  p.setColor(QPalette::HighlightedText, s.highlightedText);
  p.setColor(QPalette::Link, s.link);
  p.setColor(QPalette::ToolTipBase, s.tooltip);
  p.setColor(QPalette::ToolTipText, s.text);
  p.setColor(QPalette::PlaceholderText, s.faint);
  p.setColor(QPalette::Shadow, s.line);
  for (auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, s.disabled);
  p.setColor(QPalette::Disabled, QPalette::HighlightedText, s.faint);
  p.setColor(QPalette::Disabled, QPalette::Highlight, s.line);
  // The selection of a view without the focus.
  p.setColor(QPalette::Inactive, QPalette::Highlight, s.idle);
  p.setColor(QPalette::Inactive, QPalette::HighlightedText, s.text);
  return p;
}

// With high contrast every line is as dark, or as light, as can be; the highlight of the dark one carries black text.
// What cannot be used is not as black, or as white, as the rest there: a contrast of 4.5 is enough for it.
const std::array<Shades, 4> shades{{
    {0xf3f4f6, 0xffffff, 0xf7f8fa, 0x1f2328, 0x656c76, 0xf3f4f6, 0x1f5fbf, 0xffffff, 0x1f5fbf, 0xffffff, 0xc6cbd2,
     0xdde1e6, 0x656c76},
    {0x23262b, 0x1b1d21, 0x202327, 0xdde1e6, 0x929aa5, 0x2c3036, 0x2a66c4, 0xffffff, 0x7ab0ff, 0x2c3036, 0x3c4149,
     0x3a4048, 0x929aa5},
    {0xffffff, 0xffffff, 0xf2f2f2, Qt::black, 0x474747, 0xffffff, 0x00328f, 0xffffff, 0x00328f, 0xffffff, Qt::black,
     0xd9d9d9, 0x757575},
    {Qt::black, Qt::black, 0x141414, 0xffffff, 0xc4c4c4, Qt::black, 0x1aebff, Qt::black, 0x8fc4ff, Qt::black, 0xffffff,
     0x3a3a3a, 0x808080},
}};

/// Which of the four looks: light, dark, light and dark with high contrast.
std::size_t lookOf(bool dark, bool highContrast) {
  return static_cast<std::size_t>(dark ? 1 : 0) + (highContrast ? 2 : 0);
}

/// A colour of a group of them in each look.
template <class Group>
struct ColorRow {
  QColor Group::* color;
  std::array<QRgb, 4> looks;
};

template <class Group, std::size_t count>
void fill(Group& group, const std::array<ColorRow<Group>, count>& rows, std::size_t look) {
  for (const auto& row : rows) group.*row.color = row.looks[look];
}

// Hues after Okabe and Ito: blue against orange stays apart for every kind of colour blindness.
constexpr auto colorRows = std::to_array<ColorRow<Colors>>({
    {&Colors::background, {0xffffff, 0x1b1d21, 0xffffff, 0x000000}},
    {&Colors::gutter, {0xf3f4f6, 0x212428, 0xffffff, 0x000000}},
    {&Colors::gutterText, {0x656c76, 0x8b939e, 0x202020, 0xe0e0e0}},
    {&Colors::text, {0x1f2328, 0xdde1e6, 0x000000, 0xffffff}},
    {&Colors::op, {0x0b4f9e, 0x7ab8ff, 0x00257a, 0x9fd0ff}},
    {&Colors::value, {0x1f2328, 0xdde1e6, 0x000000, 0xffffff}},
    {&Colors::literal, {0x8a4b00, 0xe8a75c, 0x5c2a00, 0xffc27a}},
    {&Colors::comment, {0x57606a, 0xaab3bd, 0x303030, 0xd0d0d0}},
    {&Colors::header, {0x1f2328, 0xf0f3f6, 0x000000, 0xffffff}},
    {&Colors::selected, {0xc9defa, 0x23456f, 0xcfe3ff, 0x00336e}},
    {&Colors::origin, {0xffe3b8, 0x5a3c10, 0xffe8c2, 0x4d3000}},
    {&Colors::derived, {0xd3efe4, 0x124a3a, 0xd2f5e6, 0x00402e}},
    {&Colors::sibling, {0xf0f2f5, 0x272b31, 0xeeeeee, 0x1c1c1c}},
    {&Colors::valueMark, {0xf6e36b, 0x4f460a, 0xffe94a, 0x453c00}},
    {&Colors::originMark, {0xb35c00, 0xf0a040, 0x7a3b00, 0xffb454}},
    {&Colors::derivedMark, {0x00734f, 0x35c598, 0x004d33, 0x5ef0c0}},
    {&Colors::execution, {0xb07d00, 0xf0c53a, 0x6b4a00, 0xffe14d}},
    {&Colors::executionLine, {0xb07d00, 0xc29a1c, 0x6b4a00, 0xffe14d}},
    {&Colors::breakpoint, {0xc4281b, 0xf0605a, 0xa30d00, 0xff8078}},
    {&Colors::bad, {0xa4307c, 0xe079bd, 0x7d0a58, 0xff9de0}},
    {&Colors::saved, {0x2a7ab8, 0x5fb3f0, 0x004a85, 0x8fd0ff}},
    {&Colors::ownWords, {0x6a3fb5, 0xc3a6ff, 0x3d1a80, 0xe6dcff}},
    {&Colors::plot, {0x2a6fbf, 0x5a9cf0, 0x00419e, 0x8fc4ff}},
    {&Colors::border, {0xc6cbd2, 0x3c4149, 0x000000, 0xffffff}},
    {&Colors::error, {0xfbdcd8, 0x5c2723, 0xffdcd8, 0x5c0f08}},
    {&Colors::warning, {0xfdeccb, 0x56401a, 0xffedc9, 0x4d3600}},
    {&Colors::note, {0xdcebfb, 0x203d60, 0xdcecff, 0x00346b}},
    {&Colors::pictureMark, {0xffffff, 0xffffff, 0xffffff, 0xffffff}},
    {&Colors::pictureEdge, {0x000000, 0x000000, 0x000000, 0x000000}},
    {&Colors::pictureFocus, {0xffd200, 0xffd200, 0xffd200, 0xffd200}},
});

// A bar, an outline or a handle has 3:1 against what is around it, with high contrast 4.5:1; text on a fill 4.5:1 and
// 7:1.
constexpr auto controlRows = std::to_array<ColorRow<ControlColors>>({
    {&ControlColors::scrollGroove, {0xeceef1, 0x212428, 0xffffff, 0x000000}},
    {&ControlColors::scrollHandle, {0x7d858f, 0x7f8894, 0x404040, 0xd0d0d0}},
    {&ControlColors::scrollHandleHover, {0x59616b, 0xaab3bd, 0x000000, 0xffffff}},
    {&ControlColors::tabAccent, {0x1f5fbf, 0x7ab0ff, 0x00328f, 0x1aebff}},
    {&ControlColors::checkedFill, {0xc9defa, 0x23456f, 0xcfe3ff, 0x00336e}},
    {&ControlColors::checkedLine, {0x1f5fbf, 0x7ab0ff, 0x00328f, 0x1aebff}},
    {&ControlColors::glyph, {0x3c434b, 0xc3cad2, 0x000000, 0xffffff}},
    {&ControlColors::idleSelection, {0xdde1e6, 0x343a42, 0xdedede, 0x303030}},
    {&ControlColors::idleBar, {0x6f7781, 0x8b939e, 0x404040, 0xd0d0d0}},
    {&ControlColors::columnText, {0x505860, 0xaab3bd, 0x303030, 0xd8d8d8}},
});

constexpr auto diffRows = std::to_array<ColorRow<DiffColors>>({
    {&DiffColors::onlyLeft, {0xfde5da, 0x3f2620, 0xffe9df, 0x3d1508}},
    {&DiffColors::onlyRight, {0xdcedfb, 0x163046, 0xe0f0ff, 0x002a4d}},
    {&DiffColors::changed, {0xfcf5d3, 0x37321c, 0xfff8d6, 0x332c00}},
    {&DiffColors::moved, {0xf3e8fa, 0x32263d, 0xf6ebff, 0x2b0f40}},
    {&DiffColors::gap, {0xf1f3f5, 0x17191d, 0xf2f2f2, 0x000000}},
    {&DiffColors::onlyLeftMark, {0xb8430f, 0xf08a5d, 0x7a2600, 0xffab85}},
    {&DiffColors::onlyRightMark, {0x0a62a8, 0x5fb3f0, 0x003d75, 0x8fd0ff}},
    {&DiffColors::changedMark, {0x8a6a00, 0xe6c34a, 0x544000, 0xffe14d}},
    {&DiffColors::movedMark, {0x7c3aa6, 0xc58ae6, 0x4d1a70, 0xe0b8ff}},
});

// Okabe and Ito's, as in the SVG.
constexpr auto scheduleRows = std::to_array<ColorRow<ScheduleColors>>({
    {&ScheduleColors::forward, {0x7fc4ee, 0x7fc4ee, 0x7fc4ee, 0x7fc4ee}},
    {&ScheduleColors::backwardInput, {0x5cc6a2, 0x5cc6a2, 0x5cc6a2, 0x5cc6a2}},
    {&ScheduleColors::backwardWeight, {0xe0a3c6, 0xe0a3c6, 0xe0a3c6, 0xe0a3c6}},
    {&ScheduleColors::backward, {0xefb445, 0xefb445, 0xefb445, 0xefb445}},
    {&ScheduleColors::text, {0x14171b, 0x14171b, 0x000000, 0x000000}},
});

/// Of the timeline, in each look.
constexpr std::array<std::array<QRgb, memoryUseCount>, 4> memoryColors{{
    {0x0072b2, 0x56b4e9, 0x009e73, 0xb9c0c9, 0xe69f00},
    {0x2f86d0, 0x8fd0f8, 0x2bb88a, 0x6b737d, 0xe0a030},
    {0x004a85, 0x2f86d0, 0x006b4d, 0x5a5a5a, 0x9c5a00},
    {0x4aa8ff, 0xa8dcff, 0x4ce0ae, 0xb0b0b0, 0xffc04d},
}};

}  // namespace

QPalette paletteOf(bool dark, bool highContrast) { return paletteFrom(shades[lookOf(dark, highContrast)]); }

ControlColors controlColorsOf(bool dark, bool highContrast) {
  ControlColors colors;
  fill(colors, controlRows, lookOf(dark, highContrast));
  return colors;
}

Colors colorsOf(bool dark, bool highContrast) {
  const auto look = lookOf(dark, highContrast);
  Colors colors;
  fill(colors, colorRows, look);
  fill(colors.diff, diffRows, look);
  fill(colors.schedule, scheduleRows, look);
  std::ranges::copy(memoryColors[look], colors.memory.begin());
  return colors;
}

}  // namespace retrograd::views
