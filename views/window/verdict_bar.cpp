#include "views/window/verdict_bar.h"

#include <QHBoxLayout>
#include <QPainter>

#include "core/trace/source.h"
#include "views/text/format.h"
#include "views/theme/tokens.h"
#include "views/widgets/controls.h"
#include "views/widgets/light_mark.h"

namespace retrograd::views {
namespace {

constexpr int markSize = 14, placeWidth = 420;

}  // namespace

VerdictBar::VerdictBar(ViewContext context, QWidget* parent)
    : QFrame(parent),
      context_(context),
      board_(FindingBoard::of(*context.controller)),
      sentence_(new SentenceButton(this)),
      place_(new SentenceButton(this)),
      action_(new QToolButton(this)),
      more_(new QToolButton(this)) {
  named(this, "verdict-bar", tr("What is known of the file"));
  setAutoFillBackground(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  named(sentence_, "verdict-sentence", tr("What is known of the file"));
  named(place_, "verdict-place", tr("Its line of Python"));
  named(action_, "verdict-action", tr("What to do about it"));
  named(more_, "verdict-more", tr("All findings"));
  auto bold = font();
  bold.setBold(true);
  sentence_->setFont(bold);
  place_->setFont(Theme::codeFont());
  place_->setMaximumWidth(placeWidth);
  for (auto* button : {action_, more_}) button->setFocusPolicy(Qt::TabFocus);
  more_->setAutoRaise(true);
  auto* row = withMargins(new QHBoxLayout(this), {markSize + 2 * tokens::gap, tokens::hair, tokens::gap, tokens::hair},
                          tokens::gap);
  row->addWidget(sentence_, 0);
  row->addWidget(place_, 0);
  row->addWidget(action_);
  row->addStretch(1);
  row->addWidget(more_);
  const auto lead = [this] {
    if (line_.claim) Q_EMIT led(*line_.claim);
  };
  connect(sentence_, &QAbstractButton::clicked, this, lead);
  connect(place_, &QAbstractButton::clicked, this, lead);
  connect(action_, &QToolButton::clicked, this, &VerdictBar::act);
  connect(more_, &QToolButton::clicked, this, &VerdictBar::allWanted);
  connect(&board_, &FindingBoard::changed, this, &VerdictBar::tell);
  connect(context_.controller, &DocumentController::documentChanged, this, &VerdictBar::tell);
  connect(context_.controller, &DocumentController::openingChanged, this, &VerdictBar::tell);
  connect(context_.theme, &Theme::changed, this, &VerdictBar::recolor);
  tell();
}

void VerdictBar::setTitles(std::function<QString(const Claim&)> ofClaim,
                           std::function<QString(const QString&)> ofCommand) {
  titleOfClaim_ = std::move(ofClaim);
  titleOfCommand_ = std::move(ofCommand);
  tell();
}

void VerdictBar::tell() {
  const auto& open = context_.controller->document();
  QString place, action;
  if (context_.controller->opening()) {
    line_ = {};
    line_.sentence = tr("Opening %1 ...").arg(context_.controller->openingName());
  } else if (!open && board_.isEmpty()) {
    line_ = {};
    line_.sentence = tr("No file is open");
  } else {
    line_ = verdictLine(board_);
    if (line_.claim) {
      place = toQt(line_.claim->line);
      if (place.isEmpty() && open && line_.claim->op)
        place = toQt(pythonLine(*open->analysis->document, line_.claim->op));
      if (titleOfClaim_) action = titleOfClaim_(*line_.claim);
    } else if (!line_.command.isEmpty() && titleOfCommand_) {
      action = titleOfCommand_(line_.command);
    }
  }
  sentence_->setSentence(line_.sentence, line_.claim && (line_.claim->op || !line_.claim->command.empty()));
  place_->setSentence(place, line_.claim && line_.claim->op);
  place_->setVisible(!place.isEmpty());
  action_->setText(action);
  action_->setVisible(!action.isEmpty());
  const auto more = static_cast<int>(line_.more);
  more_->setText(line_.claim ? tr("%1 more").arg(more) : tr("%1 notes").arg(more));
  more_->setToolTip(tr("Shows all findings"));
  more_->setVisible(more > 0);
  setAccessibleDescription(wordOf(line_.light) + QStringLiteral(": ") + line_.sentence);
  setToolTip(wordOf(line_.light));
  recolor();
}

void VerdictBar::recolor() {
  const auto& colors = context_.theme->colors();
  auto palette = QPalette();
  palette.setColor(QPalette::Window, groundColor(line_.light, colors));
  palette.setColor(QPalette::WindowText, colors.text);
  setPalette(palette);
  update();
}

void VerdictBar::act() {
  if (line_.claim) Q_EMIT acted(Claim(*line_.claim));  // a copy: what is done may bring other findings
  else if (!line_.command.isEmpty()) Q_EMIT commandChosen(line_.command);
}

void VerdictBar::paintEvent(QPaintEvent* event) {
  QFrame::paintEvent(event);
  QPainter painter(this);
  painter.fillRect(rect(), groundColor(line_.light, context_.theme->colors()));
  const QRectF area(tokens::gap, (height() - markSize) / 2.0, markSize, markSize);
  paintLight(painter, area, line_.light, context_.theme->colors());
}

}  // namespace retrograd::views
