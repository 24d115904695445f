#pragma once
#include <QAbstractScrollArea>
#include <QPainter>

#include "views/theme/theme.h"

namespace retrograd::views {

/// A painted area with scroll bars that takes the keyboard. Its viewport is painted again when the focus comes or goes.
class ScrolledCanvas : public QAbstractScrollArea {
 protected:
  ScrolledCanvas(Theme* theme, QWidget* parent) : QAbstractScrollArea(parent), theme_(theme) {
    setFocusPolicy(Qt::StrongFocus);
    setFrameShape(QFrame::NoFrame);
    connect(theme_, &Theme::changed, viewport(), qOverload<>(&QWidget::update));
  }
  /// Says why there is nothing to see.
  void paintHint(QPainter& painter, const QMargins& margins, const QString& hint) const {
    painter.setPen(theme_->colors().gutterText);
    painter.drawText(viewport()->rect() - margins, Qt::AlignCenter | Qt::TextWordWrap, hint);
  }
  /// A frame while the keyboard is here.
  void paintFocus(QPainter& painter) const {
    if (!hasFocus()) return;
    painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(viewport()->rect().adjusted(0, 0, -1, -1));
  }
  void focusInEvent(QFocusEvent* event) override {
    QAbstractScrollArea::focusInEvent(event);
    viewport()->update();
  }
  void focusOutEvent(QFocusEvent* event) override {
    QAbstractScrollArea::focusOutEvent(event);
    viewport()->update();
  }

  Theme* theme_;
};

}  // namespace retrograd::views
