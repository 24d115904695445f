#pragma once
#include <QPalette>
#include <QProxyStyle>

namespace retrograd::views {

bool isDark(const QPalette& palette);
/// Black on white or the other way round, or nearly. Usual palettes stay below 18.3:1, which is black on Fusion's grey.
bool isHighContrast(const QPalette& palette);
/// For a dock behind another's tab, or in front of one: the tab bar has its name, its title bar none.
bool isNamedByTab(const QWidget* widget);

/// Fusion, with what shows in dark windows and with high contrast too: outlines, scroll bars, the chosen tab, buttons
/// of docks, buttons that are on. The selection of a list without the focus is grey. A dock behind tabs is named by its
/// tab alone.
class Style : public QProxyStyle {
 public:
  Style() : QProxyStyle(QStringLiteral("Fusion")) {}

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                   const QWidget* widget) const override;
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override;
  QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                         const QWidget* widget) const override;
};

}  // namespace retrograd::views
