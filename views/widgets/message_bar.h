#pragma once
#include <QFrame>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>

#include "views/theme/theme.h"

namespace retrograd::views {

/// One message over the listings that blocks nothing: errors of opening and running. Shows the newest; Esc or its cross
/// closes it.
class MessageBar : public QFrame {
  Q_OBJECT

 public:
  enum class Kind { note, warning, error };

  MessageBar(Theme* theme, QWidget* parent = nullptr);
  void show(Kind kind, const QString& text);
  QString text() const { return text_->text(); }

 Q_SIGNALS:
  /// Someone closed it by its button.
  void dismissed();
  void shown();

 protected:
  /// A button without a text before Close, for what can be done about the message.
  QPushButton* addButton();

 private:
  void recolor();

  Theme* theme_;
  Kind kind_ = Kind::note;
  QLabel* symbol_;
  QLabel* text_;
  QToolButton* close_;
};

}  // namespace retrograd::views
