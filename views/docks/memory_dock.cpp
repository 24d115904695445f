#include "views/docks/memory_dock.h"

#include <QGridLayout>
#include <QPainter>
#include <QVBoxLayout>

#include "views/text/format.h"
#include "views/text/line_text.h"
#include "views/theme/tokens.h"
#include "views/widgets/alive_list.h"
#include "views/widgets/controls.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {
namespace {

const QString timelineQuestion = QStringLiteral("timeline");

QString tipOf(MemoryUse use) {
  switch (use) {
    case MemoryUse::saved: return tr("Activations kept for the backward");
    case MemoryUse::result: return tr("Outputs of the computation that nothing saves");
    case MemoryUse::gradient: return tr("Gradients of parameters and inputs");
    case MemoryUse::forward: return tr("Values of the forward that the forward frees");
    case MemoryUse::backward: return tr("Values of the backward that the backward frees, recomputed ones included");
  }
  return {};
}

}  // namespace

MemoryDock::MemoryDock(ViewContext context, QWidget* parent)
    : Panel(context, "memory", parent), view_(new MemoryView(context.theme, this)) {
  caption_ = named(new ElidedLabel(this), "memory-caption");
  auto* layout = withMargins(new QVBoxLayout(this), {6, 4, 6, 4}, 3);
  layout->addWidget(caption_);
  layout->addWidget(view_, 1);
  layout->addWidget(makeLegend());
  layout->addWidget(makeMeasured());
  connect(context_.selection, &Selection::changed, this, &MemoryDock::invalidate);
  connect(context_.execution, &ExecutionState::changed, this, [this] {
    if (inSight()) view_->setExecution(context_.execution->now().position);
  });
  connect(context_.theme, &Theme::changed, this, &MemoryDock::recolor);
  connect(view_, &MemoryView::picked, this,
          [this](std::size_t position) { context_.selection->select(opAt(position)); });
  connect(view_, &MemoryView::activated, this, [this](std::size_t position) { Q_EMIT jumpRequested(opAt(position)); });
  connect(view_, &MemoryView::listRequested, this, [this](std::size_t position, const QPoint& at) {
    auto* list = new AliveList(*document_, *timeline_, position, this);
    connect(list, &AliveList::chosen, this, &MemoryDock::jumpRequested);
    connect(list, &AliveList::rejected, view_, [this] {
      activateWindow();
      view_->setFocus(Qt::PopupFocusReason);
    });
    list->showAt(at, *screen());
  });
  connect(view_, &MemoryView::hovered, this,
          [this](std::optional<std::size_t> position) { describeAt(position ? position : view_->current()); });
  recolor();
  forget();
}

QWidget* MemoryDock::makeLegend() {
  auto* legend = new QWidget(this);
  auto* layout = withMargins(new QGridLayout(legend), {});
  layout->setHorizontalSpacing(5);
  layout->setVerticalSpacing(1);
  auto small = font();
  small.setPointSizeF(small.pointSizeF() * tokens::smallType);
  constexpr int columns = 6, above = 3;  // two rows, three and two: the figures stay whole in half a window
  for (std::size_t i = 0; i < memoryUseCount; ++i) {
    const auto use = static_cast<MemoryUse>(i);
    swatches_[i] = new QLabel(legend);
    auto* figure = new ElidedLabel(legend);
    figure->setText(labelOf(use));
    figure->setExplanation(tipOf(use));
    figures_[i] = figure;
    figures_[i]->setFont(small);
    swatches_[i]->setToolTip(tipOf(use));
    swatches_[i]->setAccessibleName(tr("Colour of %1").arg(labelOf(use)));
    auto* entry = new QHBoxLayout;
    entry->setSpacing(5);
    entry->addWidget(swatches_[i]);
    entry->addWidget(figures_[i], 1);
    const int at = static_cast<int>(i), row = at / above,
              span = row == 0 ? columns / above : columns / (static_cast<int>(memoryUseCount) - above);
    layout->addLayout(entry, row, at % above * span, 1, span);
  }
  for (int column = 0; column < columns; ++column) layout->setColumnStretch(column, 1);
  return legend;
}

QWidget* MemoryDock::makeMeasured() {
  auto* line = new QWidget(this);
  measured_ = named(new WrappedLabel(line), "memory-measured");
  toPeak_ = makeJump(line, tr("Peak"), tr("Jumps to the op during which the allocator had handed out most"));
  toWorkspace_ = makeJump(line, tr("Workspace"), tr("Jumps to the op that took the largest workspace"));
  connect(toPeak_, &QToolButton::clicked, this, [this] { Q_EMIT jumpRequested(opAt(peak_.peakPosition)); });
  connect(toWorkspace_, &QToolButton::clicked, this, [this] { Q_EMIT jumpRequested(opAt(peak_.workspacePosition)); });
  measuredLine_ = withMargins(new QHBoxLayout(line), {0, 2, 0, 0});
  measuredLine_->addWidget(measured_, 1);
  measuredLine_->addWidget(toPeak_);
  measuredLine_->addWidget(toWorkspace_);
  forgetMeasured();
  return line;
}

QToolButton* MemoryDock::makeJump(QWidget* parent, const QString& text, const QString& tip) {
  auto* button = new QToolButton(parent);
  button->setText(text);
  button->setToolTip(tip);
  button->setAccessibleName(tip);
  button->setFocusPolicy(Qt::StrongFocus);
  return button;
}

void MemoryDock::showTried(const std::shared_ptr<const MemoryTimeline>& tried, std::size_t forwardSize) {
  view_->setOther(tried, forwardSize);
  forgetMeasured();
  if (tried)
    measured_->setText(tr("The dotted line is the choice that is tried: its peak is %1 instead of %2")
                           .arg(bytesText(tried->peakBytes), timeline_ ? bytesText(timeline_->peakBytes) : QString()));
}

void MemoryDock::addMeasure(QAction* action) { measuredLine_->addWidget(commandButton(action, this)); }

void MemoryDock::forgetMeasured() {
  measured_->setText(
      tr("Predicted from the trace. Measure Memory runs the model once and shows what the allocator really hands out"));
  measured_->setToolTip({});
  for (auto* button : {toPeak_, toWorkspace_}) button->hide();
}

void MemoryDock::measure() {
  forgetMeasured();
  const auto work = [this](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    return [this, peak = context.engine.measureMemory(context.document.analysis, progress)] { showMeasured(peak); };
  };
  askAloud(measured_, QStringLiteral("measure"), tr("Measuring memory"), tr("Running once on the side..."), work);
}

void MemoryDock::showMeasured(const AllocatorPeak& peak) {
  peak_ = peak;
  auto text =
      tr("Allocator's peak: %1, %2 of it in tensors").arg(bytesText(peak.peakBytes), bytesText(peak.tensorBytes));
  text += peak.workspaceBytes > 0 ? tr("; largest workspace %1").arg(bytesText(peak.workspaceBytes))
                                  : tr("; no op took a workspace");
  measured_->setText(text);
  measured_->setToolTip(text + QLatin1Char('\n') + tr("Memory that libraries take elsewhere is not seen"));
  toPeak_->show();
  toWorkspace_->setVisible(peak.workspaceBytes > 0);
}

void MemoryDock::recolor() {
  for (std::size_t i = 0; i < memoryUseCount; ++i) {
    QPixmap swatch(11, 11);
    swatch.fill(MemoryView::colorOf(context_.theme->colors(), static_cast<MemoryUse>(i)));
    QPainter painter(&swatch);
    painter.fillRect(QRect(1, 1, 9, 9), MemoryView::fillOf(context_.theme->colors(), static_cast<MemoryUse>(i)));
    swatches_[i]->setPixmap(swatch);
  }
}

BoundSymbolId MemoryDock::opAt(std::size_t position) const {
  return document_ ? document_->program.opAt(position) : BoundSymbolId();
}

void MemoryDock::forget() {
  timeline_.reset();
  document_.reset();
  forgetMeasured();
  view_->set(nullptr, 0, {});
  describeAt({});
}

void MemoryDock::refresh() {
  const auto open = document();
  if (open && open->analysis->derived() && document_ != open) return askForTimeline(open);
  view_->setExecution(context_.execution->now().position);
  selectionChanged();
}

void MemoryDock::askForTimeline(const std::shared_ptr<const OpenDocument>& open) {
  const auto work = [this, open](const QuestionContext& context, const Progress&) -> Worker::Deliver {
    auto timeline = std::make_shared<const MemoryTimeline>(memoryTimeline(*context.document.analysis));
    return [this, open, timeline] {
      document_ = open;
      timeline_ = timeline;
      Q_EMIT peakKnown(timeline->peakPosition);
      view_->set(timeline, open->program.forwardSize(),
                 [open](std::size_t position) { return open->program.opAt(position); });
      refresh();
    };
  };
  if (state(timelineQuestion) != QuestionState::asked) ask(Asked::inSight, timelineQuestion, {}, work);
}

void MemoryDock::selectionChanged() {
  if (!document_) return;
  view_->setCurrent(context_.selection->op() ? document_->program.positionOf(context_.selection->op()) : std::nullopt);
  describeAt(view_->current());
}

QString MemoryDock::aliveAt(std::size_t position) const {
  constexpr std::size_t most = 12;
  const auto shown = AliveList::alive(*timeline_, position, most);
  const auto& document = *document_->analysis->document;
  QStringList lines;
  for (const auto* one : shown) {
    const auto& life = *one;
    const auto maker = opAt(life.from);
    lines << tr("%1  %2, %3, made by #%4 %5")
                 .arg(bytesText(life.bytes), 9)
                 .arg(toQt(document.displayName(life.value)), labelOf(life.use))
                 .arg(maker.index)
                 .arg(maker ? shortOpName(document, maker) : QString());
  }
  const auto all = std::ranges::count_if(timeline_->lives,
                                         [&](const auto& life) { return life.from <= position && position < life.to; });
  if (const auto more = static_cast<int>(all) - static_cast<int>(shown.size()); more > 0)
    lines << tr("and %n more: Space lists them", nullptr, more);
  return lines.join(QLatin1Char('\n'));
}

void MemoryDock::describeAt(std::optional<std::size_t> position) {
  if (!timeline_ || timeline_->liveBytes.empty()) {
    caption_->clear();
    for (std::size_t i = 0; i < memoryUseCount; ++i) figures_[i]->setText(labelOf(static_cast<MemoryUse>(i)));
    return;
  }
  const auto at = std::min(position.value_or(timeline_->peakPosition), timeline_->liveBytes.size() - 1);
  const auto op = opAt(at);
  const auto line = op ? lineOf(*document_->analysis->document, op, nullptr, true, false).text : QString();
  const auto what = position ? tr("%1 live after %2") : tr("Peak: %1 live after %2");
  caption_->setText(what.arg(bytesText(timeline_->total(at)), line));
  const auto always = tr("Alive all the time: parameters %1, inputs %2")
                          .arg(bytesText(timeline_->parameterBytes), bytesText(timeline_->inputBytes));
  caption_->setToolTip(caption_->text() + QLatin1Char('\n') + always);
  for (std::size_t i = 0; i < memoryUseCount; ++i)
    figures_[i]->setText(
        QStringLiteral("%1 %2").arg(labelOf(static_cast<MemoryUse>(i)), bytesText(timeline_->liveBytes[at][i])));
  view_->setToolTip(
      QStringLiteral("<pre>%1</pre>").arg((caption_->text() + QLatin1Char('\n') + aliveAt(at)).toHtmlEscaped()));
}

}  // namespace retrograd::views
