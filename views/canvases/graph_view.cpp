#include "views/canvases/graph_view.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <algorithm>
#include <atomic>

#include "core/layout/dot_client.h"
#include "core/layout/labels.h"
#include "core/layout/ways.h"
#include "views/stages/stage_plan.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr double leastToRead = 0.6;
constexpr int stillAfter = 150;  // ms without movement before edges are smoothed
const QString layoutTag = QStringLiteral("layout");

}  // namespace

/// Tree, layouts found so far and the graph they are of: kept between requests, touched on the layout worker alone.
struct GraphView::LayoutBench {
  std::shared_ptr<const OpenDocument> document;
  TraceKind kind = TraceKind::joint;
  std::unique_ptr<layout::Shaper> shaper;
  layout::DotClient dot;

  // Known to both threads.
  std::atomic<bool> asking = false;   ///< dot is being waited for
  std::atomic<bool> hurried = false;  ///< its user did not want to wait: from now on dot is asked for small groups only

  explicit LayoutBench(const std::string& program) : dot(program) {}

  std::optional<layout::Layering> layering(const layout::LayerGraph& graph, const Progress& progress) {
    const auto effort = layout::dotEffort(graph.nodes);
    if (effort == layout::DotEffort::none || (hurried && effort != layout::DotEffort::full)) return {};
    asking = true;
    auto made = layout::bestLayering(dot, graph, progress);
    asking = false;
    return made;
  }
};

GraphView::GraphView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      worker_(std::make_unique<Worker>()),
      bench_(std::make_shared<LayoutBench>(layout::layoutHelper())) {
  setObjectName(QStringLiteral("graph"));
  setAccessibleName(tr("Graph"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  stillTimer_.setSingleShot(true);
  stillTimer_.setInterval(stillAfter);
  connect(&stillTimer_, &QTimer::timeout, this, [this] {
    still_ = true;
    placeMinimap();
    update();
  });
  connect(context_.controller, &DocumentController::documentChanged, this, &GraphView::documentChanged);
  connect(context_.selection, &Selection::changed, this, &GraphView::selectionChanged);
  connect(context_.execution, &ExecutionState::changed, this, &GraphView::executionChanged);
  connect(context_.execution, &ExecutionState::breakpointsChanged, this, qOverload<>(&QWidget::update));
  connect(context_.execution, &ExecutionState::badValuesChanged, this, &GraphView::makeOverlay);
  constexpr int overlayAfter = 200;  // ms: a run changes its numbers more often than one can read
  overlayTimer_.setSingleShot(true);
  overlayTimer_.setInterval(overlayAfter);
  connect(&overlayTimer_, &QTimer::timeout, this, [this] {
    if (followsTheRun(overlayKind_) && isVisible()) makeOverlay();
  });
  connect(context_.filter, &OpFilter::changed, this, &GraphView::updateFilter);
  connect(context_.theme, &Theme::changed, this, &GraphView::updateStyle);
  connect(&context_.controller->ahead().numbers(), &RunNumbers::changed, this, [this] {
    if (label_ == LineLabel::norms) update();
    if (followsTheRun(overlayKind_) && !overlayTimer_.isActive()) overlayTimer_.start();
  });
  if (context_.stages)
    connect(context_.stages, &StagePlan::changed, this, [this] {
      if (overlayKind_ == Overlay::stage) makeOverlay();
    });
  connect(
      worker_.get(), &Worker::progressed, this,
      [this](QObject*, const QString&, const QString& stage, double fraction) { busyPanel_->tell(stage, fraction); });
  busyPanel_ = new GraphBusy(this);
  connect(busyPanel_, &GraphBusy::cancelled, this, &GraphView::cancelLayout);
  updateStyle();
  documentChanged();
}

GraphView::~GraphView() { worker_->cancelAll(this); }

void GraphView::updateStyle() {
  auto look = graphLook(context_.theme->dark(), context_.theme->highContrast());
  look.filter = look_.filter;
  look.shown = look_.shown;
  look.plain = font();
  look_ = std::move(look);
  texts_.clear();
  minimap_ = {};
  makeOverlay();
  update();
}

void GraphView::updateFilter() {
  if (!isVisible()) return;
  const auto& ops = context_.filter->ops();
  look_.filter =
      picture_ && ops && ops->document == document_ ? std::make_shared<const BoxFilter>(*scene().tree, *ops) : nullptr;
  minimap_ = {};
  update();
}

void GraphView::setOverlay(Overlay overlay) {
  overlayKind_ = overlay;
  makeOverlay();
  Q_EMIT overlayChanged();
}

void GraphView::setLineLabel(LineLabel label) {
  label_ = label;
  update();
  Q_EMIT lineLabelChanged();
}

QString GraphView::labelOf(std::int32_t edge) const {
  if (!picture_) return {};
  const auto lens = this->lens();
  const bool lit = std::ranges::binary_search(lens.reach->edges, edge);
  return GraphPainter(scene(), look_, lens, texts_).lineLabel(edge, lit);
}

void GraphView::makeOverlay() {
  update();
  if (!picture_ || !document_) return;
  look_.overlay = look(context_.theme->dark()).overlay;
  texts_.clear();
  minimap_ = {};
  update();
}

GraphLook GraphView::look(bool dark) const {
  auto look = graphLook(dark);
  look.shown = look_.shown;
  look.plain = look_.plain;
  if (picture_ && overlayKind_ != Overlay::role)
    look.overlay = std::make_shared<const GraphOverlay>(overlayKind_, scene().tree, document_, *context_.execution,
                                                        context_.controller->ahead().numbers(),
                                                        context_.stages ? context_.stages->cut() : nullptr, dark);
  return look;
}

GraphLens GraphView::lens() const {
  const auto* lines = picture_ ? &picture_->lines : nullptr;
  const auto* lit = ways_.boxes.empty() || hovered_ >= 0 ? &reach_ : &ways_;
  return {origin_,
          scale_,
          QSizeF(size()),
          context_.selection,
          context_.execution,
          lit,
          current_,
          hovered_ >= 0,
          lines,
          &context_.controller->ahead().numbers(),
          label_,
          true};
}

void GraphView::documentChanged() {
  worker_->cancelAll(this);
  document_ = context_.controller->document();
  picture_.reset();
  look_.overlay.reset();
  look_.filter.reset();
  wanted_.clear();
  texts_.clear();
  minimap_ = {};
  current_ = hovered_ = currentNode_ = -1;
  reach_ = ways_ = {};
  waysFrom_.clear();
  waysTo_.clear();
  finds_.reset();
  findKey_.clear();
  placed_ = cancelling_ = false;
  setBusy(false);
  bench_->hurried = false;
  problem_.clear();
  shownExecution_ = {};
  stale_ = true;
  if (document_ && traceOf(*document_->analysis, kind_).ops.empty() && kind_ != TraceKind::computation)
    kind_ = document_->analysis->derived() ? kind_ : TraceKind::computation;
  // A hidden view does no work: it is laid out when it shows.
  if (isVisible()) requestLayout({});
  update();
  Q_EMIT layoutChanged();
}

void GraphView::setKind(TraceKind kind) {
  if (kind == kind_) return;
  kind_ = kind;
  documentChanged();
}

void GraphView::showEdges(layout::EdgeKind kind, bool on) {
  look_.shown[kind] = on;
  update();
}

void GraphView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) requestLayout({});
  updateFilter();
}

void GraphView::requestLayout(layout::Folds open, std::int32_t anchor, BoundSymbolId reveal) {
  if (!document_) return;
  stale_ = cancelling_ = false;
  setBusy(true);
  problem_.clear();
  wanted_ = open;
  const auto layOut = [self = this, bench = bench_, document = document_, kind = kind_, open = std::move(open), anchor,
                       reveal, from = waysFrom_, to = waysTo_](const Progress& progress) mutable {
    bench->asking = false;
    if (bench->document != document || bench->kind != kind || !bench->shaper) {
      bench->shaper.reset();
      progress.at("boxes and what flows between them", 0);
      const auto& analysis = *document->analysis;
      auto tree = std::make_shared<layout::GraphTree>(
          layout::buildTree(*analysis.document, traceOf(analysis, kind), &analysis.computation(), progress));
      bench->shaper = std::make_unique<layout::Shaper>(
          std::move(tree),
          [raw = bench.get()](const layout::LayerGraph& graph, const Progress& p) { return raw->layering(graph, p); });
      bench->document = document;
      bench->kind = kind;
    }
    const auto& tree = *bench->shaper->tree();
    if (open.empty()) open = layout::openingFolds(tree);
    if (const auto node = tree.nodeOf(reveal); node >= 0) layout::reveal(tree, open, node);
    auto picture = std::make_shared<GraphPicture>();
    picture->scene = layout::makeScene(*bench->shaper, open, progress);
    progress.at("what is where", 0.95);
    picture->grid = GraphGrid(picture->scene);
    picture->lines = EdgeValues(picture->scene, progress);
    const auto ways = std::make_shared<layout::Reach>(waysIn(picture->scene, from, to));
    return Worker::Deliver([self, document, kind, picture, ways, from, to, anchor, reveal] {
      // It may have been on its way when another trace was chosen, whose nodes are others.
      if (self->document_ != document || self->kind_ != kind) return;
      self->layoutDone(picture, std::move(*ways), anchor, reveal);
      if (self->waysFrom_ != from || self->waysTo_ != to) self->requestWays();
    });
  };
  const auto giveUp = [this, anchor, reveal](const Error& error) {
    if (cancelling_ && bench_->asking) {
      bench_->hurried = true;
      return requestLayout(layout::Folds(wanted_), anchor, reveal);
    }
    setBusy(worker_->busy(this, layoutTag));
    if (error.code() != ErrorCode::cancelled) problem_ = toQt(error.message());
    if (picture_) wanted_ = scene().open;
    update();
    Q_EMIT layoutChanged();
  };
  worker_->post(this, {.tag = layoutTag,
                       .title = tr("Laying out the graph"),
                       .replaceRunning = true,
                       .work = layOut,
                       .failed = giveUp});
  update();
}

void GraphView::cancelLayout() {
  if (!busy_) return;
  cancelling_ = true;
  worker_->cancel(this, layoutTag);
  if (!picture_) problem_ = tr("Cancelled; Enter or a click lays it out");
  update();
}

void GraphView::setLayoutHelper(const std::string& program) {
  worker_->cancelAll(this);
  bench_ = std::make_shared<LayoutBench>(program);
  documentChanged();
}

void GraphView::setBusy(bool busy) {
  busy_ = busy;
  busy ? busyPanel_->begin() : busyPanel_->end();
}

void GraphView::layoutDone(std::shared_ptr<const GraphPicture> picture, layout::Reach ways, std::int32_t anchor,
                           BoundSymbolId reveal) {
  setBusy(false);
  // A box that was opened or closed stays where it is; everything else moves around it.
  std::optional<QPointF> before;
  const auto corner = [&](const GraphPicture& p) -> std::optional<QPointF> {
    if (anchor < 0) return {};
    for (auto lane : {currentLane_, layout::Lane::forward, layout::Lane::backward})
      if (const auto i = p.scene.box(anchor, lane); i >= 0) {
        const auto rect = toQt(p.scene.boxes[i].rect);
        return QPointF(rect.center().x(), rect.top());
      }
    return {};
  };
  if (picture_) before = corner(*picture_);
  picture_ = std::move(picture);
  ways_ = std::move(ways);
  if (overlayKind_ != Overlay::role && !look_.overlay) makeOverlay();
  updateFilter();
  wanted_ = scene().open;
  texts_.clear();
  minimap_ = {};
  hovered_ = pressedLine_ = -1;
  if (before)
    if (const auto after = corner(*picture_)) origin_ += *after - *before;
  current_ = currentNode_ >= 0 ? scene().shownBox(currentNode_, currentLane_) : -1;
  const bool isFirst = !std::exchange(placed_, true);
  if (isFirst) zoomToWidth();
  if (current_ < 0) current_ = boxOf(context_.selection->op());
  if (isFirst && current_ >= 0) ensureVisible(current_, false);
  if (reveal) {
    setCurrent(boxOf(reveal));
    ensureVisible(current_, true);
  }
  if (current_ >= 0) currentNode_ = box(current_).node, currentLane_ = box(current_).lane;
  updateReach();
  keepInSight();
  // One that was closed in its middle is far smaller than what was in sight of it.
  if (before && current_ >= 0 && !rect().intersects(boxRect(current_).toRect())) ensureVisible(current_, true);
  moved();
  Q_EMIT layoutChanged();
}

BoundSymbolId GraphView::opOf(int i) const {
  if (!picture_ || i < 0) return {};
  return layout::onlyOp(*scene().tree, box(i).node, box(i).lane);
}

int GraphView::boxOf(BoundSymbolId op) const {
  if (!picture_ || !op) return -1;
  const auto& tree = *scene().tree;
  if (const auto node = tree.nodeOf(op); node >= 0) return scene().shownBox(node, tree.node(node).lane);
  // A computation op, or one of another trace: the first of what comes from it here.
  const auto origin = document_->analysis->document->boundSymbol(op).origin;
  for (auto derived : document_->analysis->links.derived(origin.op ? origin.op : op))
    if (const auto node = tree.nodeOf(derived); node >= 0) return scene().shownBox(node, tree.node(node).lane);
  return -1;
}

QString GraphView::textOf(int i) const {
  if (!picture_ || i < 0) return {};
  const auto& tree = *scene().tree;
  const auto text = layout::boxText(tree, box(i).node, box(i).lane);
  QStringList words{toQt(text.title), toQt(text.detail)};
  if (isDimmed(i)) words << tr("does not pass the filter");
  if (const int found = foundIn(i)) words << (tree.canOpen(box(i).node) ? tr("%1 found").arg(found) : tr("found"));
  if (std::ranges::binary_search(ways_.boxes, i)) words << tr("on a lit way");
  if (look_.overlay)
    if (const auto told = look_.overlay->text(box(i).node, box(i).lane); !told.isEmpty()) words << told;
  for (const auto& badge : text.badges) words << toQt(badge.text);
  if (tree.ladder()) words << (box(i).lane == layout::Lane::forward ? tr("forward") : tr("backward"));
  if (tree.canOpen(box(i).node)) words << (box(i).open ? tr("open") : tr("closed"));
  words.removeAll(QString());
  return words.join(QStringLiteral(", "));
}

QRectF GraphView::boxRect(int i) const { return picture_ && i >= 0 ? toScreen(toQt(box(i).rect)) : QRectF(); }

int GraphView::boxAt(const QPointF& position) const {
  if (!picture_) return -1;
  const auto at = toScene(position);
  std::vector<std::int32_t> near;
  picture_->grid.boxesIn(QRectF(at, QSizeF(0.1, 0.1)), near);
  // Inner boxes come after those around them.
  for (auto it = near.rbegin(); it != near.rend(); ++it)
    if (toQt(box(*it).rect).contains(at)) return *it;
  return -1;
}

void GraphView::setOpen(std::int32_t node, bool open) {
  if (!picture_ || node <= 0 || !scene().tree->canOpen(node)) return;
  auto folds = wanted_.empty() ? scene().open : wanted_;
  if (folds[node] == open) return;
  folds[node] = open;
  // A run of equal layers that is opened shows the layers, not one more box.
  requestLayout(std::move(folds), node);
}

void GraphView::setAllOpen(bool open) {
  if (!picture_) return;
  const auto& tree = *scene().tree;
  layout::Folds folds(static_cast<std::size_t>(tree.size()), false);
  for (std::int32_t i = 0; i < tree.size(); ++i) folds[i] = i == 0 || (open && tree.canOpen(i));
  if (!open) placed_ = false;  // so few boxes in a scale that was for many would be hard to see
  requestLayout(std::move(folds), currentNode_);
}

void GraphView::reveal(BoundSymbolId op) {
  if (!document_ || !op) return;
  if (!picture_) return requestLayout({}, -1, op);
  const auto& tree = *scene().tree;
  auto target = op;
  if (tree.nodeOf(op) < 0) {
    const auto origin = document_->analysis->document->boundSymbol(op).origin.op;
    for (auto derived : document_->analysis->links.derived(origin ? origin : op))
      if (tree.nodeOf(derived) >= 0) {
        target = derived;
        break;
      }
  }
  const auto node = tree.nodeOf(target);
  if (node < 0) return;
  // Who comes from a listing wants to read the op, not to see where it would be.
  if (!hasFocus() && scale_ < leastToRead) zoomBy(leastToRead / scale_, boxRect(boxOf(target)).center());
  auto folds = wanted_.empty() ? scene().open : wanted_;
  if (layout::reveal(tree, folds, node)) return requestLayout(std::move(folds), -1, target);
  setCurrent(boxOf(target), false);
  ensureVisible(current_, true);
}

void GraphView::selectionChanged() {
  update();
  if (selecting_ || !picture_) return;
  const auto i = boxOf(context_.selection->op());
  if (i < 0) return;
  setCurrent(i, false);
  ensureVisible(i, true);
}

void GraphView::executionChanged() {
  update();
  if (look_.overlay && followsTheRun(overlayKind_) && !context_.execution->now().running && isVisible()) makeOverlay();
  const auto current = context_.execution->now().current;
  if (current == shownExecution_) return;
  const bool first = !shownExecution_;
  shownExecution_ = current;
  if (!first || context_.execution->now().position > 0) ensureVisible(boxOf(current), true);
}

void GraphView::setCurrent(int i, bool select) {
  if (!picture_ || i < 0) return;
  current_ = i;
  currentNode_ = box(i).node;
  currentLane_ = box(i).lane;
  const auto& node = scene().tree->node(currentNode_);
  const auto op = opOf(i) ? opOf(i) : node.kind == layout::TreeNode::Kind::operation ? node.op : BoundSymbolId();
  if (select && op) {
    selecting_ = true;
    context_.selection->select(op);
    selecting_ = false;
  }
  updateReach();
  announce();
  update();
}

void GraphView::setHovered(int i) {
  if (i == hovered_) return;
  hovered_ = i;
  updateReach();
  update();
}

void GraphView::updateReach() {
  const int about = hovered_ >= 0 && !box(hovered_).open ? hovered_ : current_;
  reach_ = picture_ && about >= 0 && !box(about).open ? layout::reachOf(scene(), about) : layout::Reach();
}

namespace {

/// The graph to a screen reader: its name and, as value, the box under the keyboard.
class GraphAccessible : public QAccessibleWidget {
 public:
  explicit GraphAccessible(GraphView* view) : QAccessibleWidget(view, QAccessible::Canvas) {}
  QString text(QAccessible::Text what) const override {
    const auto* view = static_cast<const GraphView*>(widget());
    return what == QAccessible::Value || what == QAccessible::Description ? view->textOf(view->current())
                                                                          : QAccessibleWidget::text(what);
  }
};

QAccessibleInterface* makeAccessible(const QString&, QObject* object) {
  auto* view = qobject_cast<GraphView*>(object);
  return view ? new GraphAccessible(view) : nullptr;
}

}  // namespace

void installGraphAccessibility() { QAccessible::installFactory(makeAccessible); }

void GraphView::announce() {
  if (!QAccessible::isActive()) return;
  QAccessibleValueChangeEvent event(this, textOf(current_));
  QAccessible::updateAccessibility(&event);
}

}  // namespace retrograd::views
