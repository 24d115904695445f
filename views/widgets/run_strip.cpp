#include "views/widgets/run_strip.h"

#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/formats/recording/recording.h"
#include "views/text/format.h"
#include "views/text/line_text.h"
#include "views/theme/style.h"
#include "views/theme/tokens.h"

namespace retrograd::views {
namespace {

constexpr int markReach = 5, markWidth = 4;  // pixels
constexpr int badHeight = 6;                 ///< of the ticks over the words
constexpr int band = tokens::gap;            ///< over the lanes: the peak of memory
constexpr float ranShare = 0.3F;             ///< of the colour of what ran, so that words are read on it
constexpr float rangeShare = 0.25F;
constexpr double leastShown = 8;       ///< ops in sight when all is zoomed in
constexpr std::size_t slice = 50'000;  ///< ops that are summed in one event

QString titleOfMark(RunStrip::Kind kind) {
  switch (kind) {
    case RunStrip::Kind::bad: return tr("NaN or Inf");
    case RunStrip::Kind::breakpoint: return tr("Breakpoint");
    case RunStrip::Kind::finding: return tr("Finding");
    case RunStrip::Kind::peak: return tr("Peak of memory");
    case RunStrip::Kind::execution: return tr("Runs next");
  }
  return {};
}

QString titleOfLane(RunStrip::Lane lane) {
  switch (lane) {
    case RunStrip::Lane::forward: return tr("forward");
    case RunStrip::Lane::backward: return tr("backward");
    case RunStrip::Lane::clip: return tr("clip");
    case RunStrip::Lane::optimizer: return tr("optimizer");
    case RunStrip::Lane::other: return tr("other");
  }
  return {};
}

RunStrip::Lane laneOfPhase(Phase phase) {
  switch (phase) {
    case Phase::forward:
    case Phase::loss: return RunStrip::Lane::forward;
    case Phase::backward:
    case Phase::recompute:
    case Phase::hook:
    case Phase::accumulation: return RunStrip::Lane::backward;
    case Phase::clip: return RunStrip::Lane::clip;
    case Phase::optimizer: return RunStrip::Lane::optimizer;
    case Phase::other: break;
  }
  return RunStrip::Lane::other;
}

}  // namespace

RunStrip::RunStrip(ViewContext context, QWidget* parent) : QWidget(parent), context_(context) {
  setObjectName(QStringLiteral("run-strip"));
  setAccessibleName(tr("The run: Left and Right lead from mark to mark, + and - zoom, 0 shows all"));
  setFocusPolicy(Qt::TabFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  auto small = font();
  small.setPointSizeF(small.pointSizeF() * tokens::smallType);
  setFont(small);
  summing_.setInterval(0);
  connect(&summing_, &QTimer::timeout, this, &RunStrip::sumSlice);
  connect(context_.controller, &DocumentController::documentAboutToChange, this, [this] {
    select({});
    findings_.clear();
    setPeak({});
  });
  connect(context_.controller, &DocumentController::documentChanged, this, &RunStrip::documentChanged);
  connect(context_.execution, &ExecutionState::changed, this, &RunStrip::collect);
  connect(context_.execution, &ExecutionState::breakpointsChanged, this, &RunStrip::collect);
  connect(&context_.controller->ahead().numbers(), &RunNumbers::badOpsChanged, this, &RunStrip::collect);
  connect(context_.selection, &Selection::changed, this, qOverload<>(&QWidget::update));
  connect(context_.theme, &Theme::changed, this, qOverload<>(&QWidget::update));
  hide();
}

QSize RunStrip::sizeHint() const {
  const int lanes = std::max<int>(1, static_cast<int>(lanes_.size()));
  return {400, band + lanes * (fontMetrics().height() + tokens::hair) + tokens::hair};
}

std::size_t RunStrip::size() const {
  const auto& document = context_.controller->document();
  return document && document->analysis->derived() ? document->program.size() : 0;
}

void RunStrip::documentChanged() {
  setVisible(size() > 0);
  findStretches();
  from_ = 0;
  to_ = static_cast<double>(size());
  updateGeometry();
  collect();
}

void RunStrip::findStretches() {
  stretches_.clear();
  lanes_.clear();
  if (size() == 0) return;
  const auto& document = *context_.controller->document();
  if (const auto& recording = document.analysis->file.recording) {
    std::vector<BoundSymbolId> ops(size());
    for (std::size_t i = 0; i < ops.size(); ++i) ops[i] = document.program.opAt(i);
    for (const auto& section : sectionsOf(*recording, ops))
      stretches_.push_back({section.begin, laneOfPhase(recording->op(ops[section.begin]).phase), section.title});
  } else {
    const auto border = document.program.forwardSize();
    if (border > 0) stretches_.push_back({0, Lane::forward, "forward"});
    if (border < size()) stretches_.push_back({border, Lane::backward, "backward"});
  }
  left_ = tokens::gap;
  for (auto lane : {Lane::forward, Lane::backward, Lane::clip, Lane::optimizer, Lane::other}) {
    if (std::ranges::find(stretches_, lane, &Stretch::lane) == stretches_.end()) continue;
    lanes_.push_back(lane);
    left_ = std::max(left_, 2 * tokens::gap + fontMetrics().horizontalAdvance(titleOfLane(lane)));
  }
}

void RunStrip::setPeak(std::optional<std::size_t> position) {
  peak_ = position;
  collect();
}

void RunStrip::setFindings(std::vector<std::pair<BoundSymbolId, Severity>> findings) {
  findings_ = std::move(findings);
  collect();
}

void RunStrip::collect() {
  marks_.clear();
  update();
  if (size() == 0) return setAccessibleDescription({});
  const auto& program = context_.controller->document()->program;
  const auto& now = context_.execution->now();
  const auto add = [&](Kind kind, BoundSymbolId op, Severity severity = Severity::note) {
    if (const auto position = program.positionOf(op)) marks_.push_back({kind, *position, severity});
  };
  auto bad = context_.controller->ahead().numbers().badOps();
  bad.insert(now.bad.begin(), now.bad.end());
  for (auto op : bad) add(Kind::bad, op);
  const auto badCount = marks_.size();
  for (const auto& [op, mark] : context_.execution->marks()) add(Kind::breakpoint, op);
  const auto breakpoints = marks_.size() - badCount;
  for (const auto& [op, severity] : findings_) add(Kind::finding, op, severity);
  const auto findings = marks_.size() - badCount - breakpoints;
  if (peak_ && *peak_ < size()) marks_.push_back({Kind::peak, *peak_});
  if (now.current) add(Kind::execution, now.current);
  std::ranges::sort(marks_, [](const Mark& a, const Mark& b) {
    return a.position != b.position ? a.position < b.position : a.kind < b.kind;
  });
  setAccessibleDescription(tr("%1 of %2 ops ran; ops with NaN or Inf: %3; breakpoints: %4; findings: %5")
                               .arg(now.position)
                               .arg(size())
                               .arg(badCount)
                               .arg(breakpoints)
                               .arg(findings));
}

const RunStrip::Stretch& RunStrip::stretchAt(std::size_t position) const {
  return *std::prev(std::ranges::upper_bound(stretches_, position, {}, &Stretch::begin));
}

RunStrip::Lane RunStrip::laneOf(std::size_t position) const { return stretchAt(position).lane; }
const std::string& RunStrip::titleOf(std::size_t position) const { return stretchAt(position).title; }

std::size_t RunStrip::endOf(std::size_t stretch) const {
  return stretch + 1 < stretches_.size() ? stretches_[stretch + 1].begin : size();
}

QRect RunStrip::laneRect(Lane lane) const {
  const auto row = static_cast<int>(std::ranges::find(lanes_, lane) - lanes_.begin());
  const int step = fontMetrics().height() + tokens::hair;
  return {left_, band + row * step, width() - left_ - tokens::gap, step - 1};
}

int RunStrip::xOf(std::size_t position) const {
  const double share = (static_cast<double>(position) - from_) / std::max(to_ - from_, 1.0);
  const double x = left_ + share * (width() - left_ - tokens::gap);
  return static_cast<int>(std::lround(std::clamp(x, -1e6, 1e6)));
}

double RunStrip::placeAt(double x) const {
  const double share = (x - left_) / std::max(1, width() - left_ - tokens::gap);
  return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
}

const RunStrip::Mark* RunStrip::markAt(double x) const {
  const Mark* best = nullptr;
  double nearest = markReach;
  for (const auto& mark : marks_)
    if (const auto away = std::abs(x - xOf(mark.position));
        away < nearest || (best && away == nearest && mark.kind < best->kind))
      best = &mark, nearest = away;
  return best;
}

BoundSymbolId RunStrip::opAt(const QPointF& point) const {
  if (size() == 0) return {};
  const auto& program = context_.controller->document()->program;
  if (const auto* mark = markAt(point.x())) return program.opAt(mark->position);
  return program.opAt(std::min(static_cast<std::size_t>(placeAt(point.x())), size() - 1));
}

void RunStrip::show(double from, double to) {
  const auto all = static_cast<double>(size());
  const double span = std::clamp(to - from, std::min(leastShown, all), all);
  from_ = std::clamp(from, 0.0, all - span);
  to_ = from_ + span;
  update();
}

void RunStrip::zoom(double factor, double around) {
  const double span = std::clamp((to_ - from_) * factor, leastShown, static_cast<double>(size()));
  const double share = (around - from_) / std::max(to_ - from_, 1.0);
  show(around - share * span, around + (1 - share) * span);
}

void RunStrip::select(std::optional<std::pair<std::size_t, std::size_t>> range) {
  if (range == range_) return;
  range_ = std::move(range);
  rangeText_.clear();
  sum_ = {};
  update();
  if (!range_) {
    summing_.stop();
    Q_EMIT rangeSaid({});
    return;
  }
  sum_.next = range_->first;
  summing_.start();
}

void RunStrip::sumSlice() {
  const auto& document = context_.controller->document();
  if (!document || !range_) return summing_.stop();
  const auto& numbers = context_.controller->ahead().numbers();
  const auto end = std::min(range_->second, sum_.next + slice);
  for (; sum_.next < end; ++sum_.next) {
    const auto op = document->program.opAt(sum_.next);
    const auto seconds = numbers.number(OpFigure::time, op);
    sum_.measured += seconds.has_value();
    sum_.seconds += seconds.value_or(0);
    sum_.bytes += numbers.number(OpFigure::bytes, op).value_or(0);
  }
  if (sum_.next < range_->second) return;
  summing_.stop();
  const auto ops = range_->second - range_->first;
  rangeText_ = tr("Ops %1 to %2: %3 ops").arg(range_->first + 1).arg(range_->second).arg(ops);
  if (sum_.measured > 0)
    rangeText_ +=
        tr(", %1, %2 allocated").arg(numberText(OpFigure::time, sum_.seconds), numberText(OpFigure::bytes, sum_.bytes));
  if (sum_.measured < ops) rangeText_ += tr("; %1 of them ran").arg(sum_.measured);
  Q_EMIT rangeSaid(rangeText_);
  update();
}

void RunStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (size() == 0) return;
  paintLanes(painter);
  painter.setClipRect(QRect(left_ - markWidth, 0, width() - left_, height()));
  paintRange(painter);
  painter.setRenderHint(QPainter::Antialiasing, true);
  int last = -1;
  for (auto mark = marks_.rbegin(); mark != marks_.rend(); ++mark) {  // what is nearest to a person comes over the rest
    const int x = xOf(mark->position);
    if (x < left_ - markWidth || x > width()) continue;
    if (mark->kind == Kind::bad && x == last) continue;  // of 100,000 some are seen
    if (mark->kind == Kind::bad) last = x;
    paintMark(painter, *mark);
  }
  painter.setClipping(false);
  if (!hasFocus()) return;
  painter.setRenderHint(QPainter::Antialiasing, false);
  const bool plain = isHighContrast(palette());
  const int ring = plain ? tokens::focusRing : 1;
  painter.setPen(QPen(palette().color(plain ? QPalette::WindowText : QPalette::Highlight), ring));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(rect().adjusted(ring / 2, ring / 2, -ring / 2 - 1, -ring / 2 - 1));
}

void RunStrip::paintLanes(QPainter& painter) const {
  const auto& colors = context_.theme->colors();
  for (auto lane : lanes_) {
    const auto row = laneRect(lane);
    painter.setPen(colors.gutterText);
    painter.drawText(QRect(tokens::gap, row.top(), left_ - tokens::gap, row.height()), Qt::AlignLeft | Qt::AlignVCenter,
                     titleOfLane(lane));
  }
  painter.setClipRect(QRect(left_, 0, width() - left_ - tokens::gap + 1, height()));
  for (std::size_t i = 0; i < stretches_.size(); ++i) paintStretch(painter, i);
  painter.setPen(QPen(colors.border, 1, Qt::DashLine));
  for (std::size_t i = 1; i < stretches_.size(); ++i)
    painter.drawLine(xOf(stretches_[i].begin), band, xOf(stretches_[i].begin), height());
  const auto op = context_.selection->op();
  const auto& program = context_.controller->document()->program;
  if (const auto selected = op ? program.positionOf(op) : std::nullopt)
    painter.fillRect(QRect(xOf(*selected) - 1, 0, 2, height()), palette().color(QPalette::Highlight));
  painter.setClipping(false);
}

void RunStrip::paintStretch(QPainter& painter, std::size_t stretch) const {
  const int from = std::max(xOf(stretches_[stretch].begin), left_ - 1),
            to = std::min(xOf(endOf(stretch)), width() - tokens::gap + 1);
  if (to < left_ || from > width()) return;
  const auto& colors = context_.theme->colors();
  auto row = laneRect(stretches_[stretch].lane);
  row.setLeft(from);
  row.setWidth(std::max(1, to - from));
  painter.fillRect(row, colors.background);
  auto ran = colors.executionLine;
  ran.setAlphaF(ranShare);
  const int now = std::clamp(xOf(context_.execution->now().position), from, to);
  painter.fillRect(QRect(from, row.top(), now - from, row.height()), ran);
  painter.setPen(colors.border);
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(row.adjusted(0, 0, -1, -1));
  const auto title = toQt(stretches_[stretch].title);
  if (!context_.controller->document()->analysis->file.recording ||
      fontMetrics().horizontalAdvance(title) + 2 * tokens::gap > row.width())
    return;
  painter.setPen(colors.text);
  painter.drawText(row, Qt::AlignCenter, title);
}

void RunStrip::paintRange(QPainter& painter) const {
  if (!range_) return;
  auto color = palette().color(QPalette::Highlight);
  const QRect area(xOf(range_->first), 0, std::max(1, xOf(range_->second) - xOf(range_->first)), height());
  painter.setPen(color);
  color.setAlphaF(rangeShare);
  painter.setBrush(color);
  painter.drawRect(area.adjusted(0, 0, -1, -1));
}

void RunStrip::paintMark(QPainter& painter, const Mark& mark) const {
  const auto& colors = context_.theme->colors();
  const auto row = laneRect(laneOf(mark.position));
  const double x = xOf(mark.position), low = row.bottom() + 1, middle = row.center().y() + 0.5;
  painter.setPen(Qt::NoPen);
  switch (mark.kind) {
    case Kind::bad:
      painter.setBrush(colors.bad);
      painter.drawRect(QRectF(x - markWidth / 4.0, row.top() + 1, markWidth / 2.0, badHeight));
      break;
    case Kind::breakpoint:
      painter.setBrush(colors.breakpoint);
      painter.drawEllipse(QPointF(x, middle), markWidth, markWidth);
      break;
    case Kind::finding:
      painter.setBrush(mark.severity == Severity::fault       ? colors.bad
                       : mark.severity == Severity::suspicion ? colors.originMark
                                                              : colors.gutterText);
      painter.drawPolygon(QPolygonF{{QPointF(x, middle - markWidth - 1), QPointF(x + markWidth, middle),
                                     QPointF(x, middle + markWidth + 1), QPointF(x - markWidth, middle)}});
      break;
    case Kind::peak:
      painter.setBrush(colors.text);
      painter.drawPolygon(
          QPolygonF{{QPointF(x - markWidth, 0), QPointF(x + markWidth, 0), QPointF(x, 1.5 * markWidth)}});
      break;
    case Kind::execution:
      painter.setBrush(colors.execution);
      painter.drawPolygon(
          QPolygonF{{QPointF(x - markWidth, low), QPointF(x + markWidth, low), QPointF(x, low - 1.5 * markWidth)}});
      break;
  }
}

void RunStrip::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || size() == 0) return QWidget::mousePressEvent(event);
  pressed_ = event->position();
  dragging_ = false;
}

void RunStrip::mouseMoveEvent(QMouseEvent* event) {
  if (!pressed_) return QWidget::mouseMoveEvent(event);
  dragging_ |= std::abs(event->position().x() - pressed_->x()) >= QApplication::startDragDistance();
  if (!dragging_) return;
  const auto [begin, end] = std::minmax({placeAt(pressed_->x()), placeAt(event->position().x())});
  const auto first = std::min(static_cast<std::size_t>(begin), size() - 1);
  select(std::pair(first, std::clamp(static_cast<std::size_t>(std::ceil(end)), first + 1, size())));
}

void RunStrip::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !pressed_) return QWidget::mouseReleaseEvent(event);
  pressed_.reset();
  if (dragging_) return;
  select({});
  if (const auto op = opAt(event->position())) Q_EMIT chosen(op);
}

void RunStrip::wheelEvent(QWheelEvent* event) {
  if (size() == 0) return event->ignore();
  const auto turned = event->angleDelta();
  const bool moves = turned.x() != 0 || event->modifiers().testFlag(Qt::ShiftModifier);
  const double notches = (turned.x() != 0 ? turned.x() : turned.y()) / 120.0;
  if (moves) {
    const double by = -notches * (to_ - from_) / 10;
    show(from_ + by, to_ + by);
  } else {
    zoom(std::pow(0.8, notches), placeAt(event->position().x()));
  }
  event->accept();
}

void RunStrip::goToMark(bool forward) {
  if (marks_.empty()) return;
  const auto& program = context_.controller->document()->program;
  const auto op = context_.selection->op();
  const auto at = op ? program.positionOf(op) : std::nullopt;
  const Mark* target = nullptr;
  for (const auto& mark : marks_) {
    if (forward && (!at || mark.position > *at) && !target) target = &mark;
    if (!forward && at && mark.position < *at) target = &mark;
  }
  if (!target) return;
  const auto place = static_cast<double>(target->position);
  if (place < from_ || place >= to_) show(place - (to_ - from_) / 2, place + (to_ - from_) / 2);
  Q_EMIT chosen(program.opAt(target->position));
}

void RunStrip::keyPressEvent(QKeyEvent* event) {
  if (size() == 0) return QWidget::keyPressEvent(event);
  const double middle = (from_ + to_) / 2;
  const bool plain = event->modifiers() == Qt::NoModifier;
  switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
      if (!plain) break;
      goToMark(event->key() == Qt::Key_Right);
      return setFocus();  // the arrows go on here
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoom(0.5, middle);
    case Qt::Key_Minus: return zoom(2, middle);
    case Qt::Key_0:
      if (!plain) break;
      return show(0, static_cast<double>(size()));
    case Qt::Key_Escape:
      if (!range_) break;
      return select({});
    default: break;
  }
  QWidget::keyPressEvent(event);
}

QString RunStrip::tipAt(const QPointF& point) const {
  const auto op = opAt(point);
  if (!op) return {};
  const auto& document = *context_.controller->document();
  const auto position = document.program.positionOf(op).value_or(0);
  auto text = tr("#%1 %2, op %3 of %4")
                  .arg(op.index)
                  .arg(shortOpName(*document.analysis->document, op))
                  .arg(position + 1)
                  .arg(size());
  if (document.analysis->file.recording) text += QLatin1Char('\n') + toQt(titleOf(position));
  for (const auto& mark : marks_)
    if (document.program.opAt(mark.position) == op) text += QLatin1Char('\n') + titleOfMark(mark.kind);
  if (!rangeText_.isEmpty()) text += QLatin1Char('\n') + rangeText_;
  return text;
}

bool RunStrip::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    QToolTip::showText(help->globalPos(), tipAt(help->pos()), this);
    return true;
  }
  // + and - would be the keys of the window's commands.
  if (event->type() == QEvent::ShortcutOverride) {
    const auto key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Plus || key == Qt::Key_Equal || key == Qt::Key_Minus || key == Qt::Key_0) {
      event->accept();
      return true;
    }
  }
  return QWidget::event(event);
}

}  // namespace retrograd::views
