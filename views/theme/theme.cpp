#include "views/theme/theme.h"

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
#include <cmath>
#include <memory>

#include "views/theme/theme_colors.h"

namespace retrograd::views {
namespace {

bool isDark(const QPalette& palette) { return palette.color(QPalette::Window).lightness() < 128; }

/// What the platform wants now. Fusion's own palette follows the platform theme even while ours is in place.
bool systemIsDark() {
  const std::unique_ptr<QStyle> fusion(QStyleFactory::create(QStringLiteral("Fusion")));
  return fusion && isDark(fusion->standardPalette());
}

/// Relative luminance as WCAG 2.1 defines it.
double luminance(const QColor& color) {
  const auto linear = [](double part) { return part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

/// Black on white or the other way round, or nearly: usual palettes stay below 18.3:1, which is black on Fusion's grey. There the shades of
/// outlines that Fusion makes of the window's colour do not show.
bool isHighContrast(const QPalette& palette) {
  const auto [low, high] = std::minmax({luminance(palette.color(QPalette::Window)), luminance(palette.color(QPalette::Active, QPalette::WindowText))});
  return (high + 0.05) / (low + 0.05) >= 19;
}

void drawOutline(const QStyleOption* option, QPainter* painter) {
  painter->save();
  painter->setPen(option->palette.color(option->state & QStyle::State_HasFocus ? QPalette::Highlight : QPalette::WindowText));
  painter->setBrush(Qt::NoBrush);
  painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
  painter->restore();
}

/// Fusion, with outlines of check boxes and radio buttons that show on dark windows too, and with high contrast those of buttons and fields.
class Style : public QProxyStyle {
 public:
  Style() : QProxyStyle(QStringLiteral("Fusion")) {}

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter, const QWidget* widget) const override {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    const bool framed = element == PE_PanelButtonCommand || element == PE_FrameLineEdit || element == PE_PanelLineEdit || element == PE_Frame;
    if (framed && isHighContrast(option->palette)) return drawOutline(option, painter);
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

  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter, const QWidget* widget) const override {
    QProxyStyle::drawComplexControl(control, option, painter, widget);
    if ((control == CC_ComboBox || control == CC_SpinBox) && isHighContrast(option->palette)) drawOutline(option, painter);
  }
};

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

Theme::Theme(QApplication& application, QObject* parent, std::function<bool()> isSystemDark)
    : QObject(parent), application_(application), isSystemDark_(isSystemDark ? isSystemDark : systemIsDark) {
  systemDark_ = isSystemDark_() || (!isSystemDark && isDark(QApplication::palette()));
  systemContrast_ = !isSystemDark && isHighContrast(QApplication::palette());
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
    if (const bool dark = isSystemDark_(); dark != systemDark_) {
      systemDark_ = dark;
      if (choice_ == Choice::system || choice_ == Choice::highContrast) apply();
    }
  }
  return QObject::eventFilter(watched, event);
}

void Theme::apply() {
  const bool asSystem = choice_ == Choice::system || choice_ == Choice::highContrast;
  dark_ = asSystem ? systemDark_ : choice_ == Choice::dark;
  colors_ = colorsOf(dark_, highContrast());
  QApplication::setPalette(paletteOf(dark_, highContrast()));
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
