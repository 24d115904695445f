#include "views/widgets/elided_label.h"

#include <QHelpEvent>
#include <QPainter>
#include <QTextLayout>
#include <QToolTip>

namespace retrograd::views {

WrappedLabel::WrappedLabel(QWidget* parent) : QLabel(parent) {
  setTextFormat(Qt::PlainText);
  setWordWrap(true);
}

QStringList WrappedLabel::shownLines() const {
  const auto room = this->room();
  const int most = isCut() ? std::max(1, room.height() / fontMetrics().lineSpacing()) : std::numeric_limits<int>::max();
  auto whole = text();
  whole.replace(QLatin1Char('\n'), QChar::LineSeparator);
  QTextLayout layout(whole, font());
  QStringList lines;
  layout.beginLayout();
  for (auto line = layout.createLine(); line.isValid(); line = layout.createLine()) {
    line.setLineWidth(room.width());
    const bool isLast = lines.size() + 1 == most;
    const int end = line.textStart() + line.textLength();
    auto part =
        isLast && end < whole.size() ? whole.mid(line.textStart()) : whole.mid(line.textStart(), line.textLength());
    part.replace(QChar::LineSeparator, QLatin1Char(' '));
    lines << fontMetrics().elidedText(part.trimmed(), Qt::ElideRight, room.width());
    if (isLast) break;
  }
  layout.endLayout();
  return lines;
}

bool WrappedLabel::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && toolTip().isEmpty() && isCut()) {
    QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), text(), this);
    return true;
  }
  return QLabel::event(event);
}

void WrappedLabel::paintEvent(QPaintEvent* event) {
  if (!isCut()) return QLabel::paintEvent(event);
  QPainter painter(this);
  painter.setPen(palette().color(foregroundRole()));
  painter.drawText(room(), static_cast<int>((alignment() & Qt::AlignHorizontal_Mask) | Qt::AlignTop),
                   shownLines().join(QLatin1Char('\n')));
}

}  // namespace retrograd::views
