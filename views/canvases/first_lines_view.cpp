#include "views/canvases/first_lines_view.h"

#include <QPainter>
#include <QScrollBar>

#include "views/content/token_color.h"
#include "views/text/trace_index.h"
#include "views/theme/tokens.h"

namespace retrograd::views {

FirstLinesView::FirstLinesView(Theme* theme, QWidget* parent) : CodeView(theme, parent), title_(new ElidedLabel(this)) {
  setObjectName(QStringLiteral("first-lines"));
  setAccessibleName(tr("The computation's first lines"));
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  title_->setObjectName(QStringLiteral("first-lines-title"));
  title_->setContentsMargins(tokens::gap, tokens::tight, tokens::gap, tokens::tight);
  placeTitle();
}

void FirstLinesView::placeTitle() {
  const int height = title_->sizeHint().height();
  setViewportMargins(0, height, 0, 0);
  title_->setGeometry(0, 0, width(), height);
}

void FirstLinesView::show(FirstLines first) {
  first_ = std::move(first);
  cursor_ = rowCount() > 0 ? 0 : -1;
  title_->setText(tr("%1  \u00b7  first %2 of %3 ops, until forward and backward are derived")
                      .arg(titleText(TraceKind::computation))
                      .arg(rowCount())
                      .arg(first_.ops));
  verticalScrollBar()->setRange(0, lastTop());
  verticalScrollBar()->setValue(0);
  viewport()->update();
}

QString FirstLinesView::spokenAt(int visible) const {
  return visible >= 0 && visible < rowCount() ? first_.lines[visible].text : QString();
}

void FirstLinesView::resizeEvent(QResizeEvent* event) {
  CodeView::resizeEvent(event);
  placeTitle();
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
    const auto& line = first_.lines[row];
    for (const auto& token : line.tokens) {
      painter.setPen(colorOf(colors, token.kind));
      painter.drawText(QPointF(charWidth_ * (1 + token.begin), rowTop(row) + ascent_ + 1),
                       line.text.mid(token.begin, token.length));
    }
  }
}

}  // namespace retrograd::views
