#include "views/window/graph_pane.h"

#include <QPainter>
#include <QVBoxLayout>

#include "views/widgets/controls.h"
#include "views/widgets/flow_layout.h"
#include "views/widgets/item_view.h"
#include "views/window/listings_area.h"

namespace retrograd::views {
namespace {

constexpr std::array offeredEdges{layout::EdgeKind::data, layout::EdgeKind::gradient, layout::EdgeKind::saved,
                                  layout::EdgeKind::accumulation, layout::EdgeKind::origin};
constexpr std::array kinds{TraceKind::joint, TraceKind::forward, TraceKind::backward, TraceKind::computation};

QString toolTipOf(layout::EdgeKind kind) {
  switch (kind) {
    case layout::EdgeKind::data: return tr("Values that the forward computes");
    case layout::EdgeKind::saved: return tr("Tensors that the forward keeps for the backward, with their bytes");
    case layout::EdgeKind::gradient: return tr("Gradients, from below to above");
    case layout::EdgeKind::accumulation: return tr("Gradients that are summed, where a value has several users");
    case layout::EdgeKind::origin:
      return tr("From each backward part to the forward part it comes from: they share a row");
  }
  return {};
}

}  // namespace

GraphPane::GraphPane(ViewContext context, QWidget* parent) : QWidget(parent), context_(context) {
  view_ = new GraphView(context, this);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  auto* controls = makeControls();
  layout->addWidget(controls);
  layout->addWidget(view_, 1);
  connect(view_, &GraphView::layoutChanged, this, &GraphPane::updateControls);
  connect(view_, &GraphView::overlayChanged, this,
          [this] { overlay_->setCurrentIndex(overlay_->findData(static_cast<int>(view_->overlay()))); });
  connect(view_, &GraphView::overlayChanged, this, &GraphPane::offerRun);
  connect(&context_.controller->ahead().numbers(), &RunNumbers::changed, this, &GraphPane::offerRun);
  connect(&context_.controller->ahead(), &RunAhead::changed, this, &GraphPane::offerRun);
  connect(context_.theme, &Theme::changed, this, &GraphPane::updateControls);
  updateControls();
  // Where all do not fit, the buttons give way first, since their lines say which is which.
  wholeWidth_ = controls->sizeHint().width();
}

QWidget* GraphPane::makeControls() {
  auto* row = new QWidget(this);
  auto* layout = withMargins(new FlowLayout(row), {6, 2, 6, 3}, 3);
  trace_ = new QComboBox(row);
  prepareBox(trace_, tr("Trace to draw"));
  for (auto kind : kinds) trace_->addItem(titleText(kind), static_cast<int>(kind));
  connect(trace_, &QComboBox::activated, this,
          [this](int row) { view_->setKind(static_cast<TraceKind>(trace_->itemData(row).toInt())); });
  layout->addWidget(trace_);
  overlay_ = new QComboBox(row);
  prepareBox(overlay_, tr("What boxes show"));
  for (auto overlay : overlays) {
    overlay_->addItem(titleText(overlay), static_cast<int>(overlay));
    overlay_->setItemData(overlay_->count() - 1, toolTipText(overlay), Qt::ToolTipRole);
  }
  overlay_->setToolTip(tr("What the boxes show in addition to their names"));
  connect(overlay_, &QComboBox::activated, this,
          [this](int row) { view_->setOverlay(static_cast<Overlay>(overlay_->itemData(row).toInt())); });
  layout->addWidget(overlay_);
  run_ = named(new QToolButton(row), "graph-run");
  run_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  run_->setAutoRaise(true);
  run_->hide();
  layout->addWidget(run_);
  for (auto kind : offeredEdges) {
    auto* button = new QToolButton(row);
    button->setText(titleText(kind));
    button->setAccessibleName(tr("Show edges: %1").arg(titleText(kind)));
    button->setToolTip(toolTipOf(kind));
    button->setCheckable(true);
    button->setChecked(view_->edgesShown(kind));
    button->setAutoRaise(true);
    button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    button->setIconSize({26, 12});
    connect(button, &QToolButton::toggled, this, [this, kind](bool on) { view_->showEdges(kind, on); });
    edges_[kind] = button;
    layout->addWidget(button);
  }
  auto* between = new QWidget(row);
  between->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  layout->addWidget(between);
  const auto look = [&](const QString& text, const QString& tip, auto run) {
    auto* button = new QToolButton(row);
    button->setText(text);
    button->setToolTip(tip);
    button->setAutoRaise(true);
    connect(button, &QToolButton::clicked, this, [this, run] {
      run();
      view_->setFocus();
    });
    layout->addWidget(button);
  };
  look(tr("Fit"), tr("Shows the whole graph (F)"), [this] { view_->zoomToFit(); });
  look(tr("Width"), tr("Shows the graph in its whole width (Home)"), [this] { view_->zoomToWidth(); });
  return row;
}

void GraphPane::offerRun() {
  const auto& ahead = context_.controller->ahead();
  const auto& numbers = context_.controller->ahead().numbers();
  run_->setVisible(run_->defaultAction() && followsTheRun(view_->overlay()) && context_.execution->now().available &&
                   !ahead.running() && numbers.known() < numbers.size());
}

void GraphPane::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  for (auto* button : edges_)
    button->setToolButtonStyle(width() < wholeWidth_ ? Qt::ToolButtonIconOnly : Qt::ToolButtonTextBesideIcon);
}

QIcon GraphPane::edgeIcon(layout::EdgeKind kind) const {
  const auto colors = graphColors(context_.theme->dark(), context_.theme->highContrast());
  QPixmap pixmap(QSize(26, 12) * 2);
  pixmap.setDevicePixelRatio(2);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.setPen(edgePen(colors, kind, 4));
  painter.drawLine(QPointF(1, 6), QPointF(25, 6));
  return pixmap;
}

void GraphPane::updateControls() {
  trace_->setCurrentIndex(trace_->findData(static_cast<int>(view_->kind())));
  for (auto kind : offeredEdges) edges_[kind]->setIcon(edgeIcon(kind));
  Q_EMIT titleChanged();
}

QString GraphPane::title() const {
  const auto& picture = view_->picture();
  auto title = tr("Graph  \u00b7  %1").arg(titleText(view_->kind()));
  if (!picture) return title;
  int closed = 0;
  for (const auto& box : picture->scene.boxes) closed += !box.open;
  return title + tr("  \u00b7  %n boxes", nullptr, closed);
}

}  // namespace retrograd::views
