#pragma once
#include <QAction>
#include <QToolButton>

namespace retrograd::views {

/// A command as a button with its text, which the keyboard comes to.
inline QToolButton* commandButton(QAction* action, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setDefaultAction(action);
  button->setToolButtonStyle(Qt::ToolButtonTextOnly);
  button->setFocusPolicy(Qt::StrongFocus);
  return button;
}

}  // namespace retrograd::views
