#include "views/theme.h"

#include <QApplication>
#include <QEvent>
#include <QFile>
#include <QFontDatabase>
#include <QPainter>
#include <QProxyStyle>
#include <QStyle>
#include <QStyleFactory>
#include <QStyleOption>
#include <QSvgRenderer>
#include <memory>

namespace retrograd::views {
namespace {

bool isDark(const QPalette& palette) { return palette.color(QPalette::Window).lightness() < 128; }

/// What the platform wants now. Fusion's own palette follows the platform theme even while ours is in place.
bool systemIsDark() {
  const std::unique_ptr<QStyle> fusion(QStyleFactory::create(QStringLiteral("Fusion")));
  return fusion && isDark(fusion->standardPalette());
}

/// Fusion, with outlines of check boxes and radio buttons that show on dark windows too.
class Style : public QProxyStyle {
 public:
  Style() : QProxyStyle(QStringLiteral("Fusion")) {}

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter, const QWidget* widget) const override {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    if (element != PE_IndicatorCheckBox && element != PE_IndicatorRadioButton) return;
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(option->palette.color(QPalette::PlaceholderText));
    painter->setBrush(Qt::NoBrush);
    const auto box = QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5);
    if (element == PE_IndicatorCheckBox)
      painter->drawRoundedRect(box, 2, 2);
    else
      painter->drawEllipse(box);
    painter->restore();
  }
};

struct Shades {
  QColor window, base, alternate, text, faint, button, highlight, highlightedText, link, tooltip, line;
};

QPalette paletteOf(const Shades& s) {
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
  return paletteOf({0xf3f4f6, 0xffffff, 0xf7f8fa, 0x1f2328, 0x8a919b, 0xf3f4f6, 0x1f5fbf, 0xffffff, 0x1f5fbf, 0xffffff, 0xc6cbd2});
}

QPalette darkPalette() {
  return paletteOf({0x23262b, 0x1b1d21, 0x202327, 0xdde1e6, 0x767d87, 0x2c3036, 0x2f6fd0, 0xffffff, 0x7ab0ff, 0x2c3036, 0x3c4149});
}

// Hues after Okabe and Ito: blue against orange stays apart for every kind of colour blindness.
Colors lightColors() {
  Colors c;
  c.background = 0xffffff;
  c.gutter = 0xf3f4f6;
  c.gutterText = 0x8a919b;
  c.text = 0x1f2328;
  c.op = 0x0b4f9e;
  c.value = 0x1f2328;
  c.literal = 0x8a4b00;
  c.comment = 0x6a737d;
  c.header = 0x1f2328;
  c.selected = 0xc9defa;
  c.origin = 0xffe3b8;
  c.derived = 0xd3efe4;
  c.sibling = 0xf0f2f5;
  c.valueMark = 0xf6e36b;
  c.originMark = 0xb35c00;
  c.derivedMark = 0x00734f;
  c.execution = 0xb88700;
  c.executionLine = 0xe0b000;
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
  c.gutterText = 0x767d87;
  c.text = 0xdde1e6;
  c.op = 0x7ab8ff;
  c.value = 0xdde1e6;
  c.literal = 0xe8a75c;
  c.comment = 0x8b949e;
  c.header = 0xf0f3f6;
  c.selected = 0x23456f;
  c.origin = 0x5a3c10;
  c.derived = 0x124a3a;
  c.sibling = 0x272b31;
  c.valueMark = 0x6b5f10;
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

QPixmap renderIcon(const QByteArray& source, const QColor& color, int size, qreal ratio) {
  auto tinted = source;
  tinted.replace("currentColor", color.name().toLatin1());
  QSvgRenderer renderer(tinted);
  QPixmap pixmap(QSize(size, size) * ratio);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  renderer.render(&painter);
  painter.end();
  pixmap.setDevicePixelRatio(ratio);
  return pixmap;
}

}  // namespace

Theme::Theme(QApplication& application, QObject* parent) : QObject(parent), application_(application) {
  systemDark_ = systemIsDark() || isDark(QApplication::palette());
  QApplication::setStyle(new Style);
  application_.installEventFilter(this);
  apply();
}

void Theme::choose(Choice choice) {
  choice_ = choice;
  apply();
}

bool Theme::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::ThemeChange && watched->isWindowType()) {
    if (const bool dark = systemIsDark(); dark != systemDark_) {
      systemDark_ = dark;
      if (choice_ == Choice::system) apply();
    }
  }
  return QObject::eventFilter(watched, event);
}

void Theme::apply() {
  dark_ = choice_ == Choice::dark || (choice_ == Choice::system && systemDark_);
  colors_ = dark_ ? darkColors() : lightColors();
  QApplication::setPalette(dark_ ? darkPalette() : lightPalette());
  Q_EMIT changed();
}

QIcon Theme::icon(const QString& name) const {
  QFile file(QStringLiteral(":/retrograd/icons/%1.svg").arg(name));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const auto source = file.readAll();
  const auto palette = QApplication::palette();
  QIcon icon;
  for (int size : {16, 20, 32}) {
    for (qreal ratio : {1.0, 2.0}) {
      icon.addPixmap(renderIcon(source, palette.color(QPalette::Active, QPalette::ButtonText), size, ratio), QIcon::Normal);
      icon.addPixmap(renderIcon(source, palette.color(QPalette::Disabled, QPalette::ButtonText), size, ratio), QIcon::Disabled);
    }
  }
  return icon;
}

QIcon Theme::appIcon() {
  QFile file(QStringLiteral(":/retrograd/desktop/icons/org.retrograd.retrograd.svg"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const auto source = file.readAll();
  QIcon icon;
  for (int size : {16, 24, 32, 48, 64, 128}) icon.addPixmap(renderIcon(source, {}, size, 1));
  return icon;
}

QFont Theme::codeFont() {
  auto font = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  if (QFontDatabase::hasFamily(QStringLiteral("DejaVu Sans Mono"))) font.setFamily(QStringLiteral("DejaVu Sans Mono"));
  font.setStyleHint(QFont::Monospace);
  font.setFixedPitch(true);
  font.setPointSizeF(QApplication::font().pointSizeF() > 0 ? QApplication::font().pointSizeF() : 9);
  return font;
}

}  // namespace retrograd::views
