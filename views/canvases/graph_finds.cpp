// What a person looks for in the graph, marked in place: ops whose line has a text, and the ways of values between ops.
#include <QPainter>
#include <algorithm>

#include "core/layout/ways.h"
#include "views/canvases/graph_paint.h"
#include "views/canvases/graph_view.h"
#include "views/engine/worker.h"
#include "views/text/line_text.h"

namespace retrograd::views {
namespace {

const QString waysTag = QStringLiteral("ways");

}  // namespace
namespace {

const QString findTag = QStringLiteral("find");

std::shared_ptr<const GraphFinds> findIn(const layout::GraphTree& tree, const LinePattern& pattern,
                                         const Progress& progress) {
  auto finds = std::make_shared<GraphFinds>();
  finds->below.resize(static_cast<std::size_t>(tree.size()));
  for (auto& each : finds->below) each.fill(0);
  for (std::int32_t i = 0; i < tree.size(); ++i) {
    if (i % 1024 == 0) progress.check();
    const auto& node = tree.node(i);
    if (node.kind != layout::TreeNode::Kind::op ||
        !pattern.matches(lineOf(tree.document(), node.op, nullptr, true).text))
      continue;
    finds->ops.push_back(i);
    for (auto at = i; at >= 0; at = tree.node(at).parent) ++finds->below[at][node.lane];
  }
  return finds;
}

}  // namespace

void GraphView::find(const QString& key, const LinePattern& pattern, bool forward) {
  if (!picture_) return Q_EMIT findDone(0, 0);
  if (key == findKey_ && finds_) return goToFind(forward);
  findKey_ = key;
  finds_.reset();
  const auto search = [self = this, tree = scene().tree, document = document_, kind = kind_, key, pattern,
                       forward](const Progress& progress) {
    auto finds = findIn(*tree, pattern, progress);
    return Worker::Deliver([self, document, kind, key, forward, finds] {
      if (self->document_ != document || self->kind_ != kind || self->findKey_ != key) return;
      self->finds_ = finds;
      self->goToFind(forward);
    });
  };
  worker_->post(this, {.tag = findTag, .title = tr("Searching the graph"), .replaceRunning = true, .work = search});
}

void GraphView::clearFind() {
  worker_->cancel(this, findTag);
  findKey_.clear();
  finds_.reset();
  update();
}

void GraphView::goToFind(bool forward) {
  update();
  const auto& ops = finds_->ops;
  if (ops.empty()) return Q_EMIT findDone(0, 0);
  // From the current box on: what comes after it in the tree, or before it.
  const auto at = forward ? std::ranges::upper_bound(ops, currentNode_) : std::ranges::lower_bound(ops, currentNode_);
  const auto next = forward ? (at == ops.end() ? ops.begin() : at) : (at == ops.begin() ? ops.end() - 1 : at - 1);
  const auto op = scene().tree->node(*next).op;
  Q_EMIT findDone(static_cast<int>(ops.size()), static_cast<int>(next - ops.begin()) + 1);
  selecting_ = true;
  context_.selection->select(op);
  selecting_ = false;
  reveal(op);
}

int GraphView::foundIn(int i) const {
  if (!finds_ || !picture_ || i < 0) return 0;
  return finds_->below[box(i).node][box(i).lane];
}

void GraphView::lightWays(std::vector<BoundSymbolId> from, std::vector<BoundSymbolId> to) {
  waysFrom_ = std::move(from);
  waysTo_ = std::move(to);
  requestWays();
}

void GraphView::clearWays() {
  waysFrom_.clear();
  waysTo_.clear();
  worker_->cancel(this, waysTag);
  ways_ = {};
  update();
}

layout::Reach GraphView::waysIn(const layout::Scene& scene, const std::vector<BoundSymbolId>& from,
                                const std::vector<BoundSymbolId>& to) {
  const auto nodes = [&](const std::vector<BoundSymbolId>& ops) {
    std::vector<std::int32_t> found;
    for (auto op : ops)
      if (const auto node = scene.tree->nodeOf(op); node >= 0) found.push_back(node);
    return found;
  };
  return from.empty() || to.empty() ? layout::Reach() : layout::waysBetween(scene, nodes(from), nodes(to));
}

void GraphView::requestWays() {
  if (!picture_) return;  // they come with the layout
  const auto look = [self = this, picture = picture_, from = waysFrom_, to = waysTo_](const Progress&) {
    auto ways = std::make_shared<layout::Reach>(waysIn(picture->scene, from, to));
    return Worker::Deliver([self, picture, from, to, ways] {
      if (self->picture_ != picture || self->waysFrom_ != from || self->waysTo_ != to) return;
      self->ways_ = std::move(*ways);
      self->update();
      Q_EMIT self->waysLit(static_cast<int>(self->ways_.boxes.size()));
    });
  };
  worker_->post(this, {.tag = waysTag, .title = tr("Looking for the ways"), .replaceRunning = true, .work = look});
}

void GraphView::paintFinds(QPainter& painter) const {
  const auto& theme = context_.theme->colors();
  const auto around = [&](int i) { return toScreen(toQt(box(i).rect)).adjusted(-3, -3, 3, 3); };
  painter.setBrush(Qt::NoBrush);
  if (detail() == Detail::pixels) return;  // there, boxes are filled instead
  // Many are in sight: in one batch, without corners.
  const bool rounded = detail() == Detail::full;
  if (!ways_.boxes.empty()) {
    painter.setRenderHint(QPainter::Antialiasing, rounded);
    painter.setPen(QPen(look_.colors.lit, 2));
    QVector<QRectF> outlines;
    for (auto i : boxesHere_) {
      if (!std::ranges::binary_search(ways_.boxes, i)) continue;
      rounded ? painter.drawRoundedRect(around(i), corner + 2, corner + 2) : outlines.append(around(i));
    }
    painter.drawRects(outlines);
    painter.setRenderHint(QPainter::Antialiasing, true);
  }
  if (!finds_) return;
  auto font = look_.plain;
  font.setPixelSize(10);
  font.setBold(true);
  painter.setFont(font);
  const QFontMetricsF metrics(font);
  if (!rounded) {
    QVector<QRectF> outlines;
    for (auto i : boxesHere_)
      if (!box(i).open && foundIn(i) > 0) outlines.append(around(i));
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setPen(QPen(theme.originMark, 2));
    painter.drawRects(outlines);
    painter.setRenderHint(QPainter::Antialiasing, true);
  }
  for (auto i : boxesHere_) {
    const auto rect = around(i);
    if (!rounded && rect.height() < 2 * metrics.height()) continue;  // a tag would hide its box
    const int found = foundIn(i);
    if (found == 0 || box(i).open) continue;
    if (rounded) {
      painter.setPen(QPen(theme.originMark, 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRoundedRect(rect, corner + 2, corner + 2);
    }
    // A tag at the upper edge: how many, or a dot for one.
    const auto text = found > 1 ? QString::number(found) : QStringLiteral("\u2022");
    const QRectF tag(rect.left() + 4, rect.top() - metrics.height() / 2, metrics.horizontalAdvance(text) + 8,
                     metrics.height());
    painter.setBrush(theme.valueMark);
    painter.setPen(QPen(theme.originMark, 1));
    painter.drawRoundedRect(tag, 3, 3);
    painter.setPen(theme.text);
    painter.drawText(tag, Qt::AlignCenter, text);
  }
}

}  // namespace retrograd::views
