#include "views/theme/theme.h"

#include <QApplication>
#include <QEvent>
#include <QFile>
#include <QFontDatabase>
#include <QIconEngine>
#include <QPainter>
#include <QPixmapCache>
#include <QStyle>
#include <QStyleFactory>
#include <QSvgRenderer>
#include <memory>

#include "views/theme/style.h"
#include "views/theme/theme_colors.h"

namespace retrograd::views {
namespace {

/// What the platform wants now. Fusion's own palette follows the platform theme even while ours is in place.
bool systemIsDark() {
  const std::unique_ptr<QStyle> fusion(QStyleFactory::create(QStringLiteral("Fusion")));
  return fusion && isDark(fusion->standardPalette());
}

QByteArray tinted(QByteArray source, const QColor& color) {
  return source.replace("currentColor", color.name().toLatin1());
}

/// Draws the SVG at the size that is asked for, so that an icon is sharp at any scale.
class SvgIcon : public QIconEngine {
 public:
  SvgIcon(QByteArray normal, QByteArray disabled) : normal_(std::move(normal)), disabled_(std::move(disabled)) {}

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
    QSvgRenderer(mode == QIcon::Disabled ? disabled_ : normal_).render(painter, rect);
  }
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    const auto key = QStringLiteral("retrograd-icon-%1-%2-%3")
                         .arg(qHash(mode == QIcon::Disabled ? disabled_ : normal_))
                         .arg(size.width())
                         .arg(size.height());
    QPixmap pixmap;
    if (QPixmapCache::find(key, &pixmap)) return pixmap;
    pixmap = QPixmap(size);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    paint(&painter, QRect({0, 0}, size), mode, state);
    painter.end();
    QPixmapCache::insert(key, pixmap);
    return pixmap;
  }
  QIconEngine* clone() const override { return new SvgIcon(normal_, disabled_); }

 private:
  QByteArray normal_, disabled_;
};

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
  return QIcon(new SvgIcon(tinted(source, palette.color(QPalette::Active, QPalette::ButtonText)),
                           tinted(source, palette.color(QPalette::Disabled, QPalette::ButtonText))));
}

QIcon Theme::appIcon() {
  QFile file(QStringLiteral(":/retrograd/desktop/icons/org.retrograd.retrograd.svg"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const auto source = file.readAll();
  QIcon icon;
  for (int size : {16, 24, 32, 48, 64, 128})
    icon.addPixmap(SvgIcon(source, source).pixmap({size, size}, QIcon::Normal, QIcon::Off));
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
