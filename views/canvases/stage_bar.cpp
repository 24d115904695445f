#include "views/canvases/stage_bar.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "views/models/stages_model.h"
#include "views/text/format.h"
#include "views/theme/stage_colors.h"

namespace retrograd::views {
namespace {

QString loadName(const StageCut& cut) {
  if (cut.request.stages > 1 && cut.request.balance == Balance::parameters) return tr("parameters");
  if (cut.request.stages > 1 && cut.request.balance == Balance::bytes) return tr("bytes");
  return cut.measured && !(cut.request.stages > 1 && cut.request.balance == Balance::estimate) ? tr("measured time")
                                                                                               : tr("estimated time");
}

}  // namespace

StageBar::StageBar(Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
  setObjectName(QStringLiteral("stage-bar"));
  setAccessibleName(tr("Balance of the stages"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void StageBar::show(std::shared_ptr<const StageCut> cut) {
  cut_ = std::move(cut);
  sums_.assign(1, 0);
  dragged_ = -1;
  target_.reset();
  if (current_ >= stages()) current_ = -1;
  if (cut_) {
    double all = 0;
    for (auto load : cut_->load) all += load;
    // Where nothing weighs anything, ops count alike.
    for (auto load : cut_->load) sums_.push_back(sums_.back() + (all > 0 ? load : 1));
    QStringList words;
    for (int s = 0; s < stages(); ++s) words << label(s, true);
    setAccessibleDescription(tr("By %1: %2").arg(loadName(*cut_), words.join(QStringLiteral("; "))));
  } else {
    setAccessibleDescription({});
  }
  update();
}

void StageBar::setCurrent(int stage) {
  if (stage == current_ || stage >= stages()) return;
  current_ = stage;
  update();
}

int StageBar::xOf(std::size_t position) const {
  const auto whole = sums_.back();
  const double share = whole > 0 ? sums_[std::min(position, sums_.size() - 1)] / whole : 0;
  return side + qRound(share * (width() - 2 * side));
}

std::size_t StageBar::positionAt(qreal x) const {
  const double load = (x - side) / std::max(1, width() - 2 * side) * sums_.back();
  const auto above = std::ranges::lower_bound(sums_, load);
  if (above == sums_.begin()) return 0;
  if (above == sums_.end()) return sums_.size() - 1;
  return static_cast<std::size_t>(above - sums_.begin()) - (load - *(above - 1) < *above - load ? 1 : 0);
}

QRect StageBar::stageRect(int stage) const {
  const int left = xOf(stage == 0 ? 0 : begin(stage)), right = xOf(begin(stage + 1));
  return {left, barTop, std::max(1, right - left), barHeight};
}

int StageBar::borderAt(const QPointF& point) const {
  constexpr int reach = 5;
  int best = -1;
  for (int s = 1; s < stages(); ++s)
    if (const auto away = std::abs(point.x() - xOf(begin(s)));
        away <= reach && (best < 0 || away < std::abs(point.x() - xOf(begin(best)))))
      best = s;
  return best;
}

int StageBar::stageAt(const QPointF& point) const {
  for (int s = 0; s < stages(); ++s)
    if (stageRect(s).contains(QPoint(static_cast<int>(point.x()), barTop + 1))) return s;
  return -1;
}

QString StageBar::label(int stage, bool full) const {
  const double load = sums_[begin(stage + 1)] - sums_[stage == 0 ? 0 : begin(stage)];
  const auto share = tr("%1 %").arg(sums_.back() > 0 ? 100 * load / sums_.back() : 0, 0, 'f', 1);
  return full ? tr("Stage %1 · %2").arg(stage).arg(share) : QString::number(stage);
}

void StageBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const auto& colors = theme_->colors();
  if (!cut_) return;
  painter.setRenderHint(QPainter::Antialiasing, false);
  for (int s = 0; s < stages(); ++s) paintStage(painter, s);
  painter.setPen(QPen(colors.border, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRect(side, barTop, width() - 2 * side - 1, barHeight - 1));
  // Where equal stages would end.
  painter.setPen(Qt::NoPen);
  painter.setBrush(colors.gutterText);
  for (int s = 1; s < stages(); ++s) {
    const double x = side + static_cast<double>(s) / stages() * (width() - 2 * side);
    painter.drawPolygon(QPolygonF{{QPointF(x, barTop + barHeight + 1), QPointF(x - 3.5, barTop + barHeight + 6),
                                   QPointF(x + 3.5, barTop + barHeight + 6)}});
  }
  paintBorders(painter);
}

void StageBar::paintStage(QPainter& painter, int stage) const {
  const bool dark = theme_->dark();
  const auto rect = stageRect(stage);
  painter.fillRect(rect, stageFill(stage, dark));
  painter.fillRect(QRect(rect.left(), rect.bottom() - 3, rect.width(), 4), stageColor(stage, dark));
  if (stage == current_) {
    painter.setPen(QPen(palette().color(QPalette::Highlight), hasFocus() ? 2 : 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect.adjusted(1, 1, -1, -1));
  }
  const auto inner = rect.adjusted(6, 0, -4, -4);
  auto text = label(stage, true);
  if (fontMetrics().horizontalAdvance(text) > inner.width()) text = label(stage, false);
  if (fontMetrics().horizontalAdvance(text) > rect.width() - 2) return;
  painter.setPen(theme_->colors().text);
  painter.drawText(inner.width() > fontMetrics().horizontalAdvance(text) ? inner : rect, Qt::AlignCenter, text);
}

/// Lines between stages, over them what crosses, where there is room for it.
void StageBar::paintBorders(QPainter& painter) const {
  const auto& colors = theme_->colors();
  int free = side;
  for (int s = 1; s < stages(); ++s) {
    const int x = xOf(begin(s));
    painter.fillRect(QRect(x - 1, barTop, 2, barHeight), colors.text);
    const auto text = bytesText(cut_->borders[s - 1].valueBytes);
    const int width = fontMetrics().horizontalAdvance(text);
    const int left = std::clamp(x - width / 2, side, std::max(side, this->width() - side - width));
    if (left < free) continue;
    painter.setPen(colors.comment);
    painter.drawText(QPoint(left, barTop + barHeight + 8 + fontMetrics().ascent()), text);
    free = left + width + 8;
  }
  if (!target_) return;
  painter.setPen(QPen(palette().color(QPalette::Highlight), 2, Qt::DashLine));
  painter.drawLine(xOf(*target_), barTop - 3, xOf(*target_), barTop + barHeight + 3);
}

void StageBar::pick(int stage) {
  if (stage < 0 || stage >= stages()) return;
  setCurrent(stage);
  Q_EMIT picked(stage);
}

void StageBar::mousePressEvent(QMouseEvent* event) {
  if (!cut_ || event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  dragged_ = borderAt(event->position());
  if (dragged_ < 0) pick(stageAt(event->position()));
}

void StageBar::mouseMoveEvent(QMouseEvent* event) {
  if (!cut_) return;
  if (dragged_ < 0 || !(event->buttons() & Qt::LeftButton))
    return setCursor(borderAt(event->position()) < 0 ? Qt::ArrowCursor : Qt::SplitHCursor);
  const auto least = dragged_ == 1 ? 1 : begin(dragged_ - 1) + 1, most = begin(dragged_ + 1) - 1;
  if (least > most) return;
  target_ = std::clamp(positionAt(event->position().x()), least, most);
  update();
}

void StageBar::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  const auto stage = std::exchange(dragged_, -1);
  const auto target = std::exchange(target_, std::nullopt);
  update();
  if (stage >= 0 && target && cut_ && *target != begin(stage)) Q_EMIT cutMoved(stage, *target);
}

void StageBar::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int stage = cut_ ? stageAt(event->position()) : -1; stage >= 0 && event->button() == Qt::LeftButton)
    Q_EMIT activated(stage);
}

void StageBar::moveBy(int ops) {
  if (current_ < 1) return;
  const auto at = static_cast<std::int64_t>(begin(current_)) + ops;
  if (at > 0) Q_EMIT cutMoved(current_, static_cast<std::size_t>(at));
}

void StageBar::keyPressEvent(QKeyEvent* event) {
  if (!cut_) return QWidget::keyPressEvent(event);
  const bool moves = event->modifiers() & Qt::ControlModifier;
  switch (event->key()) {
    case Qt::Key_Left: return moves ? moveBy(-1) : pick(std::max(0, current_ - 1));
    case Qt::Key_Right: return moves ? moveBy(1) : pick(std::min(stages() - 1, current_ + 1));
    case Qt::Key_Home: return pick(0);
    case Qt::Key_End: return pick(stages() - 1);
    case Qt::Key_Escape:
      if (dragged_ < 0) break;
      dragged_ = -1;
      target_.reset();
      return update();
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current_ >= 0) Q_EMIT activated(current_);
      return;
    default: break;
  }
  QWidget::keyPressEvent(event);
}

QString StageBar::tipAt(const QPointF& point) const {
  if (!cut_) return {};
  if (const int s = borderAt(point); s > 0) {
    const auto& border = cut_->borders[s - 1];
    return tr("Stage %1 | stage %2: %3 forwards (%4 values), %5 backwards\nDrag to move the cut")
        .arg(s - 1)
        .arg(s)
        .arg(bytesText(border.valueBytes))
        .arg(border.values)
        .arg(bytesText(border.gradientBytes));
  }
  const int s = stageAt(point);
  if (s < 0) return {};
  const auto& facts = cut_->facts[s];
  return tr("%1 of the %2\n%3 ops, %4 of parameters, %5 of activations, time %6")
      .arg(label(s, true), loadName(*cut_))
      .arg(facts.ops)
      .arg(bytesText(facts.parameterBytes), bytesText(facts.activationBytes),
           StagesModel::timeText(*cut_, facts.time()));
}

bool StageBar::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    QToolTip::showText(help->globalPos(), tipAt(help->pos()), this);
    return true;
  }
  return QWidget::event(event);
}

void StageBar::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  if (current_ < 0 && stages() > 0) setCurrent(0);
}

}  // namespace retrograd::views
