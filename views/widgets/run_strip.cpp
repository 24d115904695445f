#include "views/widgets/run_strip.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/text/line_text.h"
#include "views/theme/style.h"
#include "views/theme/tokens.h"

namespace retrograd::views {
namespace {

constexpr int markReach = 5, markWidth = 4;  // pixels
constexpr int badHeight = 6;                 ///< of the ticks over the words
constexpr float ranShare = 0.3F;             ///< of the colour of what ran, so that words are read on it

QString titleOfMark(RunStrip::Kind kind) {
  switch (kind) {
    case RunStrip::Kind::bad: return tr("NaN or Inf");
    case RunStrip::Kind::breakpoint: return tr("Breakpoint");
    case RunStrip::Kind::peak: return tr("Peak of memory");
    case RunStrip::Kind::execution: return tr("Runs next");
  }
  return {};
}

}  // namespace

RunStrip::RunStrip(ViewContext context, QWidget* parent) : QWidget(parent), context_(context) {
  setObjectName(QStringLiteral("run-strip"));
  setAccessibleName(tr("The run: Left and Right lead from mark to mark"));
  setFocusPolicy(Qt::TabFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  auto small = font();
  small.setPointSizeF(small.pointSizeF() * tokens::smallType);
  setFont(small);
  connect(context_.controller, &DocumentController::documentAboutToChange, this, [this] { setPeak({}); });
  connect(context_.controller, &DocumentController::documentChanged, this, &RunStrip::documentChanged);
  connect(context_.execution, &ExecutionState::changed, this, &RunStrip::collect);
  connect(context_.execution, &ExecutionState::breakpointsChanged, this, &RunStrip::collect);
  connect(&context_.controller->ahead().numbers(), &RunNumbers::badOpsChanged, this, &RunStrip::collect);
  connect(context_.selection, &Selection::changed, this, qOverload<>(&QWidget::update));
  connect(context_.theme, &Theme::changed, this, qOverload<>(&QWidget::update));
  hide();
}

QSize RunStrip::sizeHint() const { return {400, fontMetrics().height() + tokens::tight + badHeight}; }

std::size_t RunStrip::size() const {
  const auto& document = context_.controller->document();
  return document && document->analysis->derived() ? document->program.size() : 0;
}

void RunStrip::documentChanged() {
  setVisible(size() > 0);
  collect();
}

void RunStrip::setPeak(std::optional<std::size_t> position) {
  peak_ = position;
  collect();
}

void RunStrip::collect() {
  marks_.clear();
  update();
  if (size() == 0) return setAccessibleDescription({});
  const auto& program = context_.controller->document()->program;
  const auto& now = context_.execution->now();
  const auto add = [&](Kind kind, BoundSymbolId op) {
    if (const auto position = program.positionOf(op)) marks_.push_back({kind, *position});
  };
  auto bad = context_.controller->ahead().numbers().badOps();
  bad.insert(now.bad.begin(), now.bad.end());
  for (auto op : bad) add(Kind::bad, op);
  const auto badCount = marks_.size();
  for (const auto& [op, mark] : context_.execution->marks()) add(Kind::breakpoint, op);
  const auto breakpoints = marks_.size() - badCount;
  if (peak_ && *peak_ < size()) marks_.push_back({Kind::peak, *peak_});
  if (now.current) add(Kind::execution, now.current);
  std::ranges::sort(marks_, [](const Mark& a, const Mark& b) {
    return a.position != b.position ? a.position < b.position : a.kind < b.kind;
  });
  setAccessibleDescription(tr("%1 of %2 ops ran; ops with NaN or Inf: %3; breakpoints: %4")
                               .arg(now.position)
                               .arg(size())
                               .arg(badCount)
                               .arg(breakpoints));
}

int RunStrip::xOf(std::size_t position) const {
  const double share = static_cast<double>(position) / static_cast<double>(std::max<std::size_t>(size(), 1));
  return tokens::gap + static_cast<int>(std::lround(share * (width() - 2 * tokens::gap)));
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
  const double share = (point.x() - tokens::gap) / std::max(1, width() - 2 * tokens::gap);
  const auto place = std::clamp(share, 0.0, 1.0) * static_cast<double>(size());
  return program.opAt(std::min(static_cast<std::size_t>(place), size() - 1));
}

void RunStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (size() == 0) return;
  paintGround(painter);
  painter.setRenderHint(QPainter::Antialiasing, true);
  int last = -1;
  for (auto mark = marks_.rbegin(); mark != marks_.rend(); ++mark) {  // what is nearest to a person comes over the rest
    const int x = xOf(mark->position);
    if (mark->kind == Kind::bad && x == last) continue;  // of 100,000 some are seen
    if (mark->kind == Kind::bad) last = x;
    paintMark(painter, *mark);
  }
  if (!hasFocus()) return;
  painter.setRenderHint(QPainter::Antialiasing, false);
  const bool plain = isHighContrast(palette());
  const int ring = plain ? tokens::focusRing : 1;
  painter.setPen(QPen(palette().color(plain ? QPalette::WindowText : QPalette::Highlight), ring));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(rect().adjusted(ring / 2, ring / 2, -ring / 2 - 1, -ring / 2 - 1));
}

void RunStrip::paintGround(QPainter& painter) const {
  const auto& colors = context_.theme->colors();
  const auto& program = context_.controller->document()->program;
  const int left = xOf(0), border = xOf(program.forwardSize()), right = xOf(size()),
            now = xOf(context_.execution->now().position);
  painter.fillRect(QRect(left, tokens::hair, right - left, height() - 2 * tokens::hair), colors.gutter);
  auto ran = colors.executionLine;
  ran.setAlphaF(ranShare);
  painter.fillRect(QRect(left, tokens::hair, now - left, height() - 2 * tokens::hair), ran);
  painter.setPen(colors.border);
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRect(left, tokens::hair, right - left, height() - 2 * tokens::hair - 1));
  const auto word = [&](int from, int to, const QString& text) {
    if (fontMetrics().horizontalAdvance(text) + 2 * tokens::gap > to - from) return;
    painter.setPen(colors.text);
    painter.drawText(QRect(from, badHeight, to - from, height() - badHeight), Qt::AlignCenter, text);
  };
  word(left, border, tr("forward"));
  word(border, right, tr("backward"));
  painter.setPen(QPen(colors.text, 1, Qt::DashLine));
  painter.drawLine(border, 0, border, height());
  const auto op = context_.selection->op();
  if (const auto selected = op ? program.positionOf(op) : std::nullopt)
    painter.fillRect(QRect(xOf(*selected) - 1, 0, 2, height()), palette().color(QPalette::Highlight));
}

void RunStrip::paintMark(QPainter& painter, const Mark& mark) const {
  const auto& colors = context_.theme->colors();
  const double x = xOf(mark.position), low = height() - 1, middle = height() / 2.0;
  painter.setPen(Qt::NoPen);
  switch (mark.kind) {
    case Kind::bad:
      painter.setBrush(colors.bad);
      painter.drawRect(QRectF(x - markWidth / 4.0, 1, markWidth / 2.0, badHeight));
      break;
    case Kind::breakpoint:
      painter.setBrush(colors.breakpoint);
      painter.drawEllipse(QPointF(x, middle), markWidth, markWidth);
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
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  if (const auto op = opAt(event->position())) Q_EMIT chosen(op);
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
  if (target) Q_EMIT chosen(program.opAt(target->position));
}

void RunStrip::keyPressEvent(QKeyEvent* event) {
  const bool forward = event->key() == Qt::Key_Right;
  if (size() == 0 || event->modifiers() != Qt::NoModifier || (!forward && event->key() != Qt::Key_Left))
    return QWidget::keyPressEvent(event);
  goToMark(forward);
  setFocus();  // the arrows go on here
}

QString RunStrip::tipAt(const QPointF& point) const {
  const auto op = opAt(point);
  if (!op) return {};
  const auto& document = *context_.controller->document();
  auto text = tr("#%1 %2, op %3 of %4")
                  .arg(op.index)
                  .arg(shortOpName(*document.analysis->document, op))
                  .arg(document.program.positionOf(op).value_or(0) + 1)
                  .arg(size());
  for (const auto& mark : marks_)
    if (document.program.opAt(mark.position) == op) text += QLatin1Char('\n') + titleOfMark(mark.kind);
  return text;
}

bool RunStrip::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    QToolTip::showText(help->globalPos(), tipAt(help->pos()), this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace retrograd::views
