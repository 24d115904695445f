#include "views/theme_colors.h"

namespace retrograd::views {
namespace {

struct Shades {
  QColor window, base, alternate, text, faint, button, highlight, highlightedText, link, tooltip, line;
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
  for (auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText, QPalette::HighlightedText})
    p.setColor(QPalette::Disabled, role, s.faint);
  p.setColor(QPalette::Disabled, QPalette::Highlight, s.line);
  return p;
}

QPalette lightPalette() {
  return paletteFrom({0xf3f4f6, 0xffffff, 0xf7f8fa, 0x1f2328, 0x656c76, 0xf3f4f6, 0x1f5fbf, 0xffffff, 0x1f5fbf, 0xffffff, 0xc6cbd2});
}

QPalette darkPalette() {
  return paletteFrom({0x23262b, 0x1b1d21, 0x202327, 0xdde1e6, 0x929aa5, 0x2c3036, 0x2a66c4, 0xffffff, 0x7ab0ff, 0x2c3036, 0x3c4149});
}

// Every line of these is as dark, or as light, as can be; the highlight of the dark one carries black text.
QPalette lightContrastPalette() {
  return paletteFrom({0xffffff, 0xffffff, 0xf2f2f2, Qt::black, 0x474747, 0xffffff, 0x00328f, 0xffffff, 0x00328f, 0xffffff, Qt::black});
}

QPalette darkContrastPalette() {
  return paletteFrom({Qt::black, Qt::black, 0x141414, 0xffffff, 0xc4c4c4, Qt::black, 0x1aebff, Qt::black, 0x8fc4ff, Qt::black, 0xffffff});
}

// Hues after Okabe and Ito: blue against orange stays apart for every kind of colour blindness.
Colors lightColors() {
  Colors c;
  c.background = 0xffffff;
  c.gutter = 0xf3f4f6;
  c.gutterText = 0x656c76;
  c.text = 0x1f2328;
  c.op = 0x0b4f9e;
  c.value = 0x1f2328;
  c.literal = 0x8a4b00;
  c.comment = 0x57606a;
  c.header = 0x1f2328;
  c.selected = 0xc9defa;
  c.origin = 0xffe3b8;
  c.derived = 0xd3efe4;
  c.sibling = 0xf0f2f5;
  c.valueMark = 0xf6e36b;
  c.originMark = 0xb35c00;
  c.derivedMark = 0x00734f;
  c.execution = 0xb07d00;
  c.executionLine = 0xb07d00;
  c.breakpoint = 0xc4281b;
  c.bad = 0xa4307c;
  c.saved = 0x2a7ab8;
  c.ownWords = 0x6a3fb5;
  c.plot = 0x2a6fbf;
  c.border = 0xc6cbd2;
  c.memory = {QColor(0x0072b2), QColor(0x56b4e9), QColor(0x009e73), QColor(0xb9c0c9), QColor(0xe69f00)};
  c.error = 0xfbdcd8;
  c.warning = 0xfdeccb;
  c.note = 0xdcebfb;
  return c;
}

Colors darkColors() {
  Colors c;
  c.background = 0x1b1d21;
  c.gutter = 0x212428;
  c.gutterText = 0x8b939e;
  c.text = 0xdde1e6;
  c.op = 0x7ab8ff;
  c.value = 0xdde1e6;
  c.literal = 0xe8a75c;
  c.comment = 0xaab3bd;
  c.header = 0xf0f3f6;
  c.selected = 0x23456f;
  c.origin = 0x5a3c10;
  c.derived = 0x124a3a;
  c.sibling = 0x272b31;
  c.valueMark = 0x4f460a;
  c.originMark = 0xf0a040;
  c.derivedMark = 0x35c598;
  c.execution = 0xf0c53a;
  c.executionLine = 0xc29a1c;
  c.breakpoint = 0xf0605a;
  c.bad = 0xe079bd;
  c.saved = 0x5fb3f0;
  c.ownWords = 0xc3a6ff;
  c.plot = 0x5a9cf0;
  c.border = 0x3c4149;
  c.memory = {QColor(0x2f86d0), QColor(0x8fd0f8), QColor(0x2bb88a), QColor(0x6b737d), QColor(0xe0a030)};
  c.error = 0x5c2723;
  c.warning = 0x56401a;
  c.note = 0x203d60;
  return c;
}

Colors lightContrastColors() {
  Colors c;
  c.background = 0xffffff;
  c.gutter = 0xffffff;
  c.gutterText = 0x202020;
  c.text = Qt::black;
  c.op = 0x00257a;
  c.value = Qt::black;
  c.literal = 0x5c2a00;
  c.comment = 0x303030;
  c.header = Qt::black;
  c.selected = 0xcfe3ff;
  c.origin = 0xffe8c2;
  c.derived = 0xd2f5e6;
  c.sibling = 0xeeeeee;
  c.valueMark = 0xffe94a;
  c.originMark = 0x7a3b00;
  c.derivedMark = 0x004d33;
  c.execution = 0x6b4a00;
  c.executionLine = 0x6b4a00;
  c.breakpoint = 0xa30d00;
  c.bad = 0x7d0a58;
  c.saved = 0x004a85;
  c.ownWords = 0x3d1a80;
  c.plot = 0x00419e;
  c.error = 0xffdcd8;
  c.warning = 0xffedc9;
  c.note = 0xdcecff;
  c.border = Qt::black;
  c.memory = {QColor(0x004a85), QColor(0x2f86d0), QColor(0x006b4d), QColor(0x5a5a5a), QColor(0x9c5a00)};
  return c;
}

Colors darkContrastColors() {
  Colors c;
  c.background = Qt::black;
  c.gutter = Qt::black;
  c.gutterText = 0xe0e0e0;
  c.text = 0xffffff;
  c.op = 0x9fd0ff;
  c.value = 0xffffff;
  c.literal = 0xffc27a;
  c.comment = 0xd0d0d0;
  c.header = 0xffffff;
  c.selected = 0x00336e;
  c.origin = 0x4d3000;
  c.derived = 0x00402e;
  c.sibling = 0x1c1c1c;
  c.valueMark = 0x453c00;
  c.originMark = 0xffb454;
  c.derivedMark = 0x5ef0c0;
  c.execution = 0xffe14d;
  c.executionLine = 0xffe14d;
  c.breakpoint = 0xff8078;
  c.bad = 0xff9de0;
  c.saved = 0x8fd0ff;
  c.ownWords = 0xe6dcff;
  c.plot = 0x8fc4ff;
  c.error = 0x5c0f08;
  c.warning = 0x4d3600;
  c.note = 0x00346b;
  c.border = 0xffffff;
  c.memory = {QColor(0x4aa8ff), QColor(0xa8dcff), QColor(0x4ce0ae), QColor(0xb0b0b0), QColor(0xffc04d)};
  return c;
}

}  // namespace

QPalette paletteOf(bool dark, bool highContrast) {
  if (highContrast) return dark ? darkContrastPalette() : lightContrastPalette();
  return dark ? darkPalette() : lightPalette();
}

Colors colorsOf(bool dark, bool highContrast) {
  if (highContrast) return dark ? darkContrastColors() : lightContrastColors();
  return dark ? darkColors() : lightColors();
}

}  // namespace retrograd::views
