#include "views/widgets/sentence_button.h"

#include <QEnterEvent>
#include <QPainter>
#include <QStyleOption>

#include "views/theme/tokens.h"

namespace retrograd::views {
namespace {

/// A line of code is whole in a narrow panel: it may go on in the next line behind a bracket, a comma or a dot.
QString breakable(const QString& text) {
  QString parts;
  for (const auto c : text) {
    parts += c;
    if (QStringLiteral("([,.=").contains(c)) parts += QChar(0x200b);
  }
  return parts;
}

}  // namespace

SentenceButton::SentenceButton(QWidget* parent) : QAbstractButton(parent) {
  setFocusPolicy(Qt::TabFocus);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void SentenceButton::setSentence(const QString& text, bool leads) {
  setText(text);
  setToolTip(text);
  if (!text.isEmpty()) setAccessibleName(text);
  setEnabled(leads);
  setCursor(leads ? Qt::PointingHandCursor : Qt::ArrowCursor);
  updateGeometry();
  update();
}

void SentenceButton::setWraps() {
  wraps_ = true;
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Minimum);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

int SentenceButton::heightForWidth(int width) const {
  const QRect room(0, 0, std::max(width - 2 * tokens::tight, 1), 100'000);
  return fontMetrics().boundingRect(room, Qt::TextWordWrap, breakable(text())).height() + 2 * tokens::tight;
}

QSize SentenceButton::sizeHint() const {
  if (wraps_) return {leastWidth, heightForWidth(std::max(width(), leastWidth))};
  // A pixel more than the letters: what is as wide as its room by the whole pixel is elided.
  return {fontMetrics().horizontalAdvance(text()) + 1 + 2 * tokens::tight, fontMetrics().height() + 2 * tokens::tight};
}

void SentenceButton::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  auto letters = font();
  letters.setUnderline(isEnabled() && (underMouse() || hasFocus()));
  painter.setFont(letters);
  painter.setPen(palette().color(QPalette::Active, QPalette::WindowText));
  const auto area = rect().adjusted(tokens::tight, 0, -tokens::tight, 0);
  const int align = Qt::AlignLeft | Qt::AlignVCenter;
  if (wraps_) painter.drawText(area, align | Qt::TextWordWrap, breakable(text()));
  else painter.drawText(area, align, QFontMetrics(letters).elidedText(text(), Qt::ElideRight, area.width()));
  if (!hasFocus()) return;
  QStyleOptionFocusRect ring;
  ring.initFrom(this);
  style()->drawPrimitive(QStyle::PE_FrameFocusRect, &ring, &painter, this);
}

void SentenceButton::enterEvent(QEnterEvent* event) {
  update();
  QAbstractButton::enterEvent(event);
}

void SentenceButton::leaveEvent(QEvent* event) {
  update();
  QAbstractButton::leaveEvent(event);
}

}  // namespace retrograd::views
