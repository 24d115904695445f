#include "views/canvases/first_lines_view.h"

#include <QPainter>
#include <QScrollBar>

#include "views/content/token_color.h"

namespace retrograd::views {

FirstLinesView::FirstLinesView(Theme* theme, QWidget* parent) : CodeView(theme, parent) {
  setObjectName(QStringLiteral("first-lines"));
  setAccessibleName(tr("The computation's first lines"));
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
}

void FirstLinesView::show(FirstLines first) {
  first_ = std::move(first);
  cursor_ = rowCount() > 0 ? 0 : -1;
  verticalScrollBar()->setRange(0, lastTop());
  verticalScrollBar()->setValue(0);
  viewport()->update();
}

QString FirstLinesView::spokenAt(int visible) const {
  return visible >= 0 && visible < rowCount() ? first_.lines[static_cast<std::size_t>(visible)].text : QString();
}

void FirstLinesView::resizeEvent(QResizeEvent* event) {
  CodeView::resizeEvent(event);
  verticalScrollBar()->setPageStep(visibleRows());
  verticalScrollBar()->setRange(0, lastTop());
}

void FirstLinesView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  const auto& colors = theme_->colors();
  painter.fillRect(viewport()->rect(), colors.background);
  painter.setFont(viewport()->font());
  const int first = verticalScrollBar()->value();
  const int last = std::min(rowCount(), first + visibleRows() + 1);
  for (int row = first; row < last; ++row) {
    const auto& line = first_.lines[static_cast<std::size_t>(row)];
    for (const auto& token : line.tokens) {
      painter.setPen(colorOf(colors, token.kind));
      painter.drawText(QPointF(charWidth_ * (1 + token.begin), rowTop(row) + ascent_ + 1), line.text.mid(token.begin, token.length));
    }
  }
}

}  // namespace retrograd::views
