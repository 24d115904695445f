#include "views/dialogs/value_tip.h"

#include <QApplication>
#include <QScreen>
#include <QVBoxLayout>

#include "views/session/own_names.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"

namespace retrograd::views {
namespace {

const QString tipTag = QStringLiteral("value tip");

QString lineOf(const TensorStatistics& s) {
  return tr("min %1   max %2   mean %3   std %4\nnorm %5   NaN %6   Inf %7   zeros %8")
      .arg(numberText(s.min), numberText(s.max), numberText(s.mean), numberText(s.standardDeviation),
           numberText(s.norm))
      .arg(s.nan)
      .arg(s.inf)
      .arg(s.zeros);
}

}  // namespace

struct ValueTip::Answer {
  ValueState state;
  std::optional<TensorStatistics> statistics;
  std::vector<std::int64_t> histogram;
};

ValueTip::ValueTip(ViewContext context, QWidget* parent)
    : QFrame(parent, Qt::ToolTip),
      context_(context),
      text_(new QLabel(this)),
      histogram_(new HistogramView(context.theme, this)) {
  setObjectName(QStringLiteral("value-tip"));
  setFrameShape(QFrame::StyledPanel);
  setAttribute(Qt::WA_ShowWithoutActivating);
  setFocusPolicy(Qt::NoFocus);
  text_->setTextFormat(Qt::PlainText);
  text_->setFont(Theme::codeFont());
  histogram_->setFixedHeight(64);
  auto* layout = withMargins(new QVBoxLayout(this), {8, 6, 8, 6});
  layout->addWidget(text_);
  layout->addWidget(histogram_);
  connect(context_.controller, &DocumentController::documentAboutToChange, this, &ValueTip::leave);
  qApp->installEventFilter(this);
}

QString ValueTip::heading() const {
  const auto& document = *context_.controller->document()->analysis->document;
  const auto meta = document.value(value_).meta;
  const auto name = fullNameOf(document, value_, context_.notes);
  return meta ? QStringLiteral("%1  %2  %3")
                    .arg(name, typeText(document.meta(meta)), bytesText(document.meta(meta).bytes()))
              : name + QStringLiteral("  ") + tr("number");
}

void ValueTip::show(BoundSymbolId op, ValueId value, const QPoint& at) {
  const auto& open = context_.controller->document();
  if (!open || !value) return leave();
  op_ = op;
  value_ = value;
  filled_ = false;
  histogram_->hide();
  text_->setText(heading());
  adjustSize();
  const auto screen = QApplication::screenAt(at) ? QApplication::screenAt(at)->availableGeometry()
                                                 : QApplication::primaryScreen()->availableGeometry();
  const int room = 170;  // for what is not there yet
  move(std::min(at.x() + 12, screen.right() - std::max(width(), 320)),
       at.y() + 18 + room > screen.bottom() ? at.y() - room - 8 : at.y() + 18);
  QFrame::show();
  if (const auto& now = context_.execution->now(); !now.available) {
    text_->setText(heading() + QLatin1Char('\n') + now.unavailableReason);
    return adjustSize();
  }
  if (context_.execution->now().running) {  // the worker is busy with the run: what that has seen is here
    const auto* s = context_.controller->ahead().numbers().statistics(value);
    return text_->setText(heading() + QLatin1Char('\n') +
                          (s ? lineOf(*s) : tr("A run goes on: there is more when it stops"))),
           adjustSize();
  }
  const auto question = [this, op, value](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    if (!context.runner) return {};
    const auto& document = *context.document.analysis->document;
    const auto operands = document.operands(op);
    const bool isOperand = std::ranges::find(operands, value) != operands.end();
    const auto side = isOperand ? Moment::Side::before : Moment::Side::after;
    const auto moment = op ? context.runner->at(op, progress) : context.runner->of(value, progress);
    Answer answer;
    answer.state = moment->state(value, side);
    if (answer.state.present && !answer.state.number && document.isTensor(value)) {
      answer.statistics = moment->statistics(value, side);
      answer.histogram = moment->histogram(value, side, 40);
    }
    return [this, value, answer] {
      if (isVisible() && value == value_) fill(answer);
    };
  };
  context_.controller->questions().ask(this, tipTag, {}, question, [this, value](const QString& message) {
    if (message.isEmpty() || !isVisible() || value != value_) return;
    text_->setText(heading() + QLatin1Char('\n') + message);
    adjustSize();
  });
}

void ValueTip::fill(const Answer& answer) {
  filled_ = true;
  auto text = heading();
  if (answer.statistics) text += QLatin1Char('\n') + lineOf(*answer.statistics);
  else if (!answer.state.present) text += QLatin1Char('\n') + toQt(answer.state.reason);
  text_->setText(text);
  histogram_->setVisible(answer.statistics.has_value());
  if (answer.statistics) histogram_->set(answer.histogram, *answer.statistics);
  adjustSize();
}

void ValueTip::leave() {
  if (!isVisible()) return;
  hide();
  value_ = {};
  context_.controller->questions().cancel(tipTag);
}

bool ValueTip::eventFilter(QObject* watched, QEvent* event) {
  if (isVisible()) switch (event->type()) {
      case QEvent::KeyPress:
      case QEvent::MouseButtonPress:
      case QEvent::Wheel:
      case QEvent::WindowDeactivate: leave(); break;
      default: break;
    }
  return QFrame::eventFilter(watched, event);
}

}  // namespace retrograd::views
