#include "views/widgets/message_bar.h"

#include <QHBoxLayout>

#include "views/widgets/controls.h"

namespace retrograd::views {

MessageBar::MessageBar(Theme* theme, QWidget* parent) : QFrame(parent), theme_(theme) {
  named(this, "message-bar", tr("Message"));
  setAutoFillBackground(true);
  symbol_ = new QLabel(this);
  text_ = textLabel({}, this);
  text_->setAccessibleName(tr("Message"));
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  close_ = new QToolButton(this);
  close_->setText(tr("Close"));
  close_->setAccessibleName(tr("Close the message"));
  close_->setAutoRaise(true);
  auto* layout = withMargins(new QHBoxLayout(this), {10, 6, 6, 6}, 10);
  layout->addWidget(symbol_, 0, Qt::AlignTop);
  layout->addWidget(text_, 1);
  layout->addWidget(close_, 0, Qt::AlignTop);
  connect(close_, &QToolButton::clicked, this, [this] {
    hide();
    Q_EMIT dismissed();
  });
  connect(theme_, &Theme::changed, this, &MessageBar::recolor);
  hide();
}

QPushButton* MessageBar::addButton() {
  auto* button = new QPushButton(this);
  button->setAutoDefault(true);  // Enter presses it as in a dialog
  auto* row = qobject_cast<QHBoxLayout*>(layout());
  row->insertWidget(row->indexOf(close_), button, 0, Qt::AlignTop);
  return button;
}

void MessageBar::show(Kind kind, const QString& text) {
  kind_ = kind;
  text_->setText(text);
  text_->setAccessibleName(text);
  recolor();
  QFrame::show();
  Q_EMIT shown();
}

void MessageBar::recolor() {
  const auto& colors = theme_->colors();
  auto palette = QPalette();
  palette.setColor(QPalette::Window, kind_ == Kind::error     ? colors.error
                                     : kind_ == Kind::warning ? colors.warning
                                                              : colors.note);
  setPalette(palette);
  symbol_->setText(kind_ == Kind::error ? tr("Error") : kind_ == Kind::warning ? tr("Warning") : tr("Note"));
  auto font = symbol_->font();
  font.setBold(true);
  symbol_->setFont(font);
}

}  // namespace retrograd::views
