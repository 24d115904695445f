#include <QPainter>
#include <algorithm>

#include "core/layout/labels.h"
#include "views/canvases/graph_paint.h"
#include "views/canvases/graph_view.h"
#include "views/text/format.h"

namespace retrograd::views {
void GraphView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), look_.colors.canvas);
  if (!picture_) {
    painter.setPen(look_.colors.faint);
    const auto text = busy_                 ? tr("Laying out ...")
                      : !problem_.isEmpty() ? problem_
                      : document_           ? tr("No ops")
                                            : QString();
    painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, text);
    return;
  }
  const auto area = visibleArea();
  const auto lens = this->lens();
  const GraphPainter paint(scene(), look_, lens, texts_);
  picture_->grid.boxesIn(area, boxesHere_);
  switch (detail()) {
    case Detail::full:
      picture_->grid.edgesIn(area, edgesHere_);
      painter.setRenderHint(QPainter::Antialiasing, still_);
      paint.all(painter, boxesHere_, edgesHere_);
      break;
    case Detail::batched:
      picture_->grid.edgesIn(area, edgesHere_);
      paintBatched(painter, paint);
      break;
    case Detail::pixels: paintPixels(painter, paint); break;
  }
  painter.setRenderHint(QPainter::Antialiasing, true);
  paintHighlights(painter);
  paintFinds(painter);
  paint.lanes(painter);
  paintLegend(painter, paint);
  paintMinimap(painter, paint);
  if (hasFocus()) {
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

GraphView::LinesByKind GraphView::linesOf(const std::function<bool(std::int32_t)>& isWanted) const {
  LinesByKind lines;
  for (auto i : edgesHere_) {
    if (!isWanted(i)) continue;
    const auto& edge = scene().edges[i];
    const auto path = scene().path(edge);
    for (std::size_t k = 1; k < path.size(); ++k)
      lines[edge.kind].append(QLineF(toScreen(toQt(path[k - 1])), toScreen(toQt(path[k]))));
  }
  return lines;
}

/// Boxes of one colour at once.
void GraphView::paintFills(QPainter& painter, const GraphPainter& paint) const {
  struct Batch {
    GraphColors::Fill fill;
    QVector<QRectF> rects, bars;
  };
  std::map<std::pair<QRgb, QRgb>, Batch> batches;
  for (auto i : boxesHere_) {
    const auto& b = box(i);
    if (b.open) continue;
    const auto fill = paint.fillFor(b);
    auto& batch = batches[{fill.fill.rgb(), fill.accent.rgb()}];
    batch.fill = fill;
    const auto r = toScreen(toQt(b.rect));
    batch.rects.append(r);
    batch.bars.append({b.lane == layout::Lane::forward ? r.left() : r.right() - 2, r.top(), 2, r.height()});
  }
  for (const auto& [key, batch] : batches) {
    painter.setPen(QPen(batch.fill.line, 0));
    painter.setBrush(batch.fill.fill);
    painter.drawRects(batch.rects);
    painter.setPen(Qt::NoPen);
    painter.setBrush(batch.fill.accent);
    painter.drawRects(batch.bars);
  }
}

/// Titles of small boxes: in full, or else the module alone, or as much as is more than a letter or two.
void GraphView::paintSmallTitles(QPainter& painter) const {
  auto font = look_.detail;
  font.setPixelSize(scale_ < 0.3 ? 8 : 9);
  painter.setFont(font);
  const QFontMetricsF metrics(font);
  const double least = 4 * metrics.averageCharWidth();
  for (auto i : boxesHere_) {
    const auto rect = toScreen(toQt(box(i).rect)).adjusted(4, 0, -3, 0);
    if (box(i).open || rect.height() < metrics.xHeight() + 3 || rect.width() < 4) continue;
    const auto text = layout::boxText(*scene().tree, box(i).node, box(i).lane);
    auto title = toQt(text.title);
    if (metrics.horizontalAdvance(title) > rect.width()) {
      const auto node = box(i).node;
      const bool isRun = scene().tree->node(node).kind == layout::TreeNode::Kind::run;
      const auto module =
          isRun ? briefWithin(toQt(text.brief), metrics, rect.width()) : toQt(scene().tree->label(node));
      if (!module.isEmpty()) title = module;
    }
    if (rect.width() < least && metrics.horizontalAdvance(title) > rect.width() + 1) continue;
    painter.setPen(isDimmed(i) ? look_.colors.faint : look_.colors.text);
    painter.drawText(rect, Qt::AlignVCenter | Qt::AlignLeft, metrics.elidedText(title, Qt::ElideRight, rect.width()));
  }
}

void GraphView::paintBatched(QPainter& painter, const GraphPainter& paint) {
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setPen(QPen(look_.colors.frameLine, 1));
  painter.setBrush(look_.colors.frame);
  QVector<QRectF> frames;
  for (auto i : boxesHere_)
    if (box(i).open) frames.append(toScreen(toQt(box(i).rect)));
  painter.drawRects(frames);
  const auto lines = linesOf([&](std::int32_t edge) { return edgesShown(scene().edges[edge].kind); });
  for (auto kind : layout::edgeKinds) {
    painter.setPen(QPen(faded(look_.colors.edge[kind], 0.7), 0));  // without dashes: they cost more than all the rest
    painter.drawLines(lines[kind]);
  }
  paintFills(painter, paint);
  paintSmallTitles(painter);
  // Lit lines are few in sight, or all of them: one batch for each kind.
  const auto& lit = paint.lens().reach->edges;
  const auto litLines = linesOf([&](std::int32_t edge) { return std::ranges::binary_search(lit, edge); });
  for (auto kind : layout::edgeKinds) {
    painter.setPen(QPen(look_.colors.edge[kind], 2));
    painter.drawLines(litLines[kind]);
  }
  paint.frameTitles(painter, boxesHere_);
  paint.stuckTitles(painter, boxesHere_);
}

void GraphView::paintPixels(QPainter& painter, const GraphPainter& paint) {
  const auto ratio = devicePixelRatioF();
  const auto wanted = size() * ratio;
  if (pixels_.size() != wanted) {
    pixels_ = QImage(wanted, QImage::Format_RGB32);
    pixels_.setDevicePixelRatio(ratio);
  }
  pixels_.fill(look_.colors.canvas);
  const auto place = [&](const layout::SceneBox& b) {
    const auto r = toScreen(toQt(b.rect));
    return QRectF(r.topLeft() * ratio, r.size() * ratio);
  };
  const auto litColor = look_.colors.lit.rgb(), foundColor = context_.theme->colors().originMark.rgb();
  auto nextLit = ways_.boxes.begin();  // both are in ascending order
  for (auto i : boxesHere_) {
    const auto& b = box(i);
    const auto r = place(b);
    if (b.open) {
      if (r.width() < 6) continue;
      const auto line = look_.colors.frameLine.rgb();
      fillPixels(pixels_, {r.left(), r.top(), r.width(), 1}, line);
      fillPixels(pixels_, {r.left(), r.bottom(), r.width(), 1}, line);
      fillPixels(pixels_, {r.left(), r.top(), 1, r.height()}, line);
      fillPixels(pixels_, {r.right(), r.top(), 1, r.height()}, line);
    } else {
      while (nextLit != ways_.boxes.end() && *nextLit < i) ++nextLit;
      const bool lit = nextLit != ways_.boxes.end() && *nextLit == i;
      fillPixels(pixels_, r, lit ? litColor : foundIn(i) > 0 ? foundColor : paint.pixelFor(b));
    }
  }
  painter.drawImage(QPointF(0, 0), pixels_);
  paint.frameTitles(painter, boxesHere_);
}

void GraphView::paintHighlights(QPainter& painter) const {
  const auto outline = [&](int i, const QColor& color, double width, bool dashed) {
    auto rect = toScreen(toQt(box(i).rect)).adjusted(-2, -2, 2, 2);
    if (rect.width() < 7) rect.adjust(-4, -4, 4, 4);
    // Qt strokes, and dashes, what is out of sight too: a group of 100,000 ops is a million pixels high.
    rect = rect.intersected(QRectF(this->rect()).adjusted(-50, -50, 50, 50));
    if (rect.isEmpty()) return;
    painter.setPen(QPen(color, width, dashed ? Qt::DashLine : Qt::SolidLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(rect, corner + 1, corner + 1);
  };
  const auto selected = boxOf(context_.selection->op());
  if (selected >= 0) outline(selected, look_.colors.selected, 2.4, false);
  if (current_ >= 0 && current_ != selected) outline(current_, look_.colors.selected, 1.6, true);
  if (detail() != Detail::full)
    if (const auto now = boxOf(context_.execution->now().current); now >= 0)
      outline(now, context_.theme->colors().executionLine, 2, false);
}

}  // namespace retrograd::views
