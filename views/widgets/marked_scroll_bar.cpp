#include "views/widgets/marked_scroll_bar.h"

#include <QMouseEvent>
#include <QPainter>
#include <QStyleOptionSlider>

namespace retrograd::views {

MarkedScrollBar::MarkedScrollBar(QWidget* parent) : QScrollBar(Qt::Vertical, parent) {
  setObjectName(QStringLiteral("marked-scroll-bar"));
}

void MarkedScrollBar::setMarks(std::vector<Mark> marks) {
  if (marks == marks_) return;
  marks_ = std::move(marks);
  QStringList words;
  for (const auto& mark : marks_) words << mark.what;
  setToolTip(words.join(QStringLiteral(", ")));
  setAccessibleDescription(toolTip());
  update();
}

QRect MarkedScrollBar::markRect(const Mark& mark) const {
  QStyleOptionSlider option;
  initStyleOption(&option);
  const auto groove = style()->subControlRect(QStyle::CC_ScrollBar, &option, QStyle::SC_ScrollBarGroove, this);
  constexpr int height = 4;
  const int y = groove.top() + static_cast<int>(mark.place * (groove.height() - height));
  return {groove.left() + 2, y, groove.width() - 4, height};
}

void MarkedScrollBar::mousePressEvent(QMouseEvent* event) {
  constexpr int near = 2;  // a mark is thinner than a hand is steady
  const auto at = event->position().toPoint();
  for (const auto& mark : marks_)
    if (event->button() == Qt::LeftButton && markRect(mark).adjusted(-near, -near, near, near).contains(at)) {
      setValue(static_cast<int>(mark.place * (maximum() + pageStep())) - pageStep() / 2);
      return event->accept();
    }
  QScrollBar::mousePressEvent(event);
}

void MarkedScrollBar::paintEvent(QPaintEvent* event) {
  QScrollBar::paintEvent(event);
  QPainter painter(this);
  for (const auto& mark : marks_) painter.fillRect(markRect(mark), mark.color);
}

}  // namespace retrograd::views
