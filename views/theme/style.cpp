#include "views/theme/style.h"

#include <QAbstractItemView>
#include <QDockWidget>
#include <QMainWindow>
#include <QPainter>
#include <QStyleOption>
#include <algorithm>
#include <cmath>

#include "views/theme/tokens.h"

namespace retrograd::views {
namespace {

/// Relative luminance as WCAG 2.1 defines it.
double luminance(const QColor& color) {
  const auto linear = [](double part) {
    return part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

ControlColors colorsFor(const QPalette& palette) { return controlColorsOf(isDark(palette), isHighContrast(palette)); }

void drawRing(const QRect& rect, const QPen& pen, QPainter* painter) {
  const int inner = pen.width() / 2;
  painter->save();
  painter->setPen(pen);
  painter->setBrush(Qt::NoBrush);
  painter->drawRect(rect.adjusted(inner, inner, -inner - 1, -inner - 1));
  painter->restore();
}

/// Of a control on black and white: thick with the focus, dashed where it is disabled, so that neither is shown by a
/// shade.
void drawOutline(const QStyleOption* option, QPainter* painter) {
  const bool enabled = option->state & QStyle::State_Enabled;
  const auto color = option->palette.color(enabled ? QPalette::Active : QPalette::Disabled, QPalette::WindowText);
  const int width = option->state & QStyle::State_HasFocus ? tokens::focusRing : 1;
  if (!enabled) drawRing(option->rect, option->palette.color(QPalette::Window), painter);  // Fusion has a line there
  drawRing(option->rect, QPen(color, width, enabled ? Qt::SolidLine : Qt::DashLine), painter);
}

/// The outline of a check box or radio button.
void drawIndicator(QStyle::PrimitiveElement element, const QStyleOption* option, QPainter* painter) {
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(option->palette.color(QPalette::PlaceholderText));
  painter->setBrush(Qt::NoBrush);
  const auto box = QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5);
  if (element == QStyle::PE_IndicatorCheckBox) painter->drawRoundedRect(box, 2, 2);
  else painter->drawEllipse(box);
  painter->restore();
}

/// A tool button that is on: filled, outlined, and with a bar below, so that its shape shows it as well as its colour.
void drawChecked(const QStyleOption* option, QPainter* painter) {
  const auto colors = colorsFor(option->palette);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(colors.checkedLine);
  painter->setBrush(colors.checkedFill);
  painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
  painter->fillRect(QRectF(option->rect.left() + 3, option->rect.bottom() - 2, option->rect.width() - 6, 2),
                    colors.checkedLine);
  painter->restore();
}

/// Close or float, as lines in the text's colour.
void drawDockButton(const QStyleOptionComplex* option, QPainter* painter, bool closes) {
  const auto colors = colorsFor(option->palette);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  if (option->state & QStyle::State_MouseOver) painter->fillRect(option->rect, colors.checkedFill);
  painter->setPen(QPen(colors.glyph, 1.4, Qt::SolidLine, Qt::SquareCap));
  painter->setBrush(Qt::NoBrush);
  const qreal half = tokens::glyph / 2.0 - 0.5;
  const auto c = QRectF(option->rect).center();
  if (closes) {
    painter->drawLine(c + QPointF(-half, -half), c + QPointF(half, half));
    painter->drawLine(c + QPointF(half, -half), c + QPointF(-half, half));
  } else {
    painter->drawRect(QRectF(c.x() - half, c.y() - half + 2.5, 2 * half - 2.5, 2 * half - 2.5));
    painter->drawPolyline(
        QPolygonF{{c + QPointF(-half + 2.5, -half), c + QPointF(half, -half), c + QPointF(half, half - 2.5)}});
  }
  painter->restore();
}

void drawScrollBar(const QStyle& style, const QStyleOptionSlider& bar, QPainter* painter, const QWidget* widget) {
  const auto colors = colorsFor(bar.palette);
  painter->save();
  painter->fillRect(bar.rect, colors.scrollGroove);
  const bool vertical = bar.orientation == Qt::Vertical;
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(Qt::NoPen);
  const bool grabbed = bar.activeSubControls & QStyle::SC_ScrollBarSlider;
  painter->setBrush(grabbed ? colors.scrollHandleHover : colors.scrollHandle);
  if (bar.maximum > bar.minimum) {
    const auto handle = QRectF(style.subControlRect(QStyle::CC_ScrollBar, &bar, QStyle::SC_ScrollBarSlider, widget));
    painter->drawRoundedRect(vertical ? handle.adjusted(4, 1, -4, -1) : handle.adjusted(1, 4, -1, -4), 3, 3);
  }
  for (auto part : {QStyle::SC_ScrollBarAddLine, QStyle::SC_ScrollBarSubLine}) {
    const auto box = QRectF(style.subControlRect(QStyle::CC_ScrollBar, &bar, part, widget));
    if (box.isEmpty()) continue;
    const auto c = box.center();
    const qreal along = part == QStyle::SC_ScrollBarAddLine ? 2 : -2, across = 3.5;
    painter->drawPolygon(
        vertical ? QPolygonF{{c + QPointF(-across, -along), c + QPointF(across, -along), c + QPointF(0, along)}}
                 : QPolygonF{{c + QPointF(-along, -across), c + QPointF(-along, across), c + QPointF(along, 0)}});
  }
  painter->restore();
}

/// A button that is nothing but the name of a menu. Fusion draws its arrow over the lower corner, where it reads as a
/// comma.
bool isMenuName(const QStyleOptionToolButton& button) {
  return (button.features & QStyleOptionToolButton::HasMenu) &&
         !(button.features & QStyleOptionToolButton::MenuButtonPopup) &&
         button.toolButtonStyle == Qt::ToolButtonTextOnly;
}

/// The name, and an arrow after it.
void drawMenuName(const QStyle& style, const QStyleOptionToolButton& button, QPainter* painter, const QWidget* widget) {
  auto plain = button;
  plain.features &= ~QStyleOptionToolButton::HasMenu;
  plain.text.clear();
  style.drawComplexControl(QStyle::CC_ToolButton, &plain, painter, widget);
  const bool enabled = button.state & QStyle::State_Enabled;
  const auto inner = button.rect.adjusted(tokens::tight, 0, -tokens::tight, 0);
  style.drawItemText(painter, inner.adjusted(0, 0, -tokens::glyph - tokens::tight, 0),
                     Qt::AlignCenter | Qt::TextShowMnemonic, button.palette, enabled, button.text,
                     QPalette::ButtonText);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(Qt::NoPen);
  painter->setBrush(enabled ? colorsFor(button.palette).glyph
                            : button.palette.color(QPalette::Disabled, QPalette::ButtonText));
  const QPointF tip(inner.right() - tokens::glyph / 2.0 + 1, inner.center().y() + tokens::glyph / 4.0 + 0.5);
  painter->drawPolygon(QPolygonF{{tip, tip + QPointF(-tokens::glyph / 2.0, -tokens::glyph / 2.0),
                                  tip + QPointF(tokens::glyph / 2.0, -tokens::glyph / 2.0)}});
  painter->restore();
}

bool isIdleList(const QWidget* widget) {
  const auto* view = qobject_cast<const QAbstractItemView*>(widget);
  return view && !view->hasFocus() && !view->viewport()->hasFocus();
}

}  // namespace

bool isDark(const QPalette& palette) { return palette.color(QPalette::Window).lightness() < 128; }

bool isHighContrast(const QPalette& palette) {
  const auto [low, high] = std::minmax(
      {luminance(palette.color(QPalette::Window)), luminance(palette.color(QPalette::Active, QPalette::WindowText))});
  return (high + 0.05) / (low + 0.05) >= 19;
}

bool isNamedByTab(const QWidget* widget) {
  const auto* dock = qobject_cast<const QDockWidget*>(widget);
  const auto* window = dock && !dock->isFloating() ? qobject_cast<const QMainWindow*>(dock->parentWidget()) : nullptr;
  if (!window) return false;
  const auto others = window->tabifiedDockWidgets(const_cast<QDockWidget*>(dock));
  return std::ranges::any_of(others, [](const QDockWidget* other) { return !other->isHidden(); });
}

void Style::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                          const QWidget* widget) const {
  if (element == PE_PanelButtonTool && option->state & State_On) return drawChecked(option, painter);
  if ((element == PE_PanelItemViewRow || element == PE_PanelItemViewItem) && isIdleList(widget)) {
    if (const auto* item = qstyleoption_cast<const QStyleOptionViewItem*>(option)) {
      auto idle = *item;
      idle.state &= ~State_Active;
      return QProxyStyle::drawPrimitive(element, &idle, painter, widget);
    }
  }
  if (element == PE_FrameFocusRect && isHighContrast(option->palette) &&
      !qobject_cast<const QAbstractItemView*>(widget))
    return drawRing(option->rect, QPen(option->palette.color(QPalette::WindowText), tokens::focusRing), painter);
  QProxyStyle::drawPrimitive(element, option, painter, widget);
  // The shades that Fusion makes of the window's colour do not show on black and white.
  const bool framed = element == PE_PanelButtonCommand || element == PE_FrameLineEdit || element == PE_PanelLineEdit ||
                      element == PE_Frame;
  if (framed && isHighContrast(option->palette)) return drawOutline(option, painter);
  if (element == PE_IndicatorCheckBox || element == PE_IndicatorRadioButton) drawIndicator(element, option, painter);
}

void Style::drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                        const QWidget* widget) const {
  if (element == CE_DockWidgetTitle && isNamedByTab(widget)) {
    if (const auto* title = qstyleoption_cast<const QStyleOptionDockWidget*>(option)) {
      auto nameless = *title;
      nameless.title.clear();
      return QProxyStyle::drawControl(element, &nameless, painter, widget);
    }
  }
  if (element == CE_ItemViewItem && isIdleList(widget)) {
    if (const auto* item = qstyleoption_cast<const QStyleOptionViewItem*>(option)) {
      auto idle = *item;
      idle.state &= ~State_Active;
      return QProxyStyle::drawControl(element, &idle, painter, widget);
    }
  }
  QProxyStyle::drawControl(element, option, painter, widget);
  if (element != CE_TabBarTabShape || !(option->state & State_Selected)) return;
  const auto* tab = qstyleoption_cast<const QStyleOptionTab*>(option);
  if (!tab) return;
  const bool below = tab->shape == QTabBar::RoundedSouth || tab->shape == QTabBar::TriangularSouth;
  const auto& rect = tab->rect;
  painter->fillRect(QRect(rect.left() + 1, below ? rect.bottom() - 2 : rect.top(), rect.width() - 2, 3),
                    colorsFor(option->palette).tabAccent);
}

void Style::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                               const QWidget* widget) const {
  if (control == CC_ScrollBar)
    if (const auto* bar = qstyleoption_cast<const QStyleOptionSlider*>(option))
      return drawScrollBar(*proxy(), *bar, painter, widget);
  if (control == CC_ToolButton && widget) {
    const auto name = widget->objectName();
    if (name == QLatin1String("qt_dockwidget_closebutton")) return drawDockButton(option, painter, true);
    if (name == QLatin1String("qt_dockwidget_floatbutton")) return drawDockButton(option, painter, false);
  }
  if (const auto* button = qstyleoption_cast<const QStyleOptionToolButton*>(option);
      control == CC_ToolButton && button && isMenuName(*button))
    return drawMenuName(*this, *button, painter, widget);
  QProxyStyle::drawComplexControl(control, option, painter, widget);
  if ((control == CC_ComboBox || control == CC_SpinBox) && isHighContrast(option->palette))
    drawOutline(option, painter);
}

QSize Style::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                              const QWidget* widget) const {
  const auto whole = QProxyStyle::sizeFromContents(type, option, size, widget);
  const auto* button = qstyleoption_cast<const QStyleOptionToolButton*>(option);
  return type == CT_ToolButton && button && isMenuName(*button) ? whole + QSize(tokens::glyph + 2 * tokens::tight, 0)
                                                                : whole;
}

}  // namespace retrograd::views
