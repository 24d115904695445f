#pragma once
#include <QAction>
#include <QString>
#include <QWidget>

namespace retrograd::views {

/// The text of a context menu's entry that does what a command of the window does, with the key that the command has now behind it.
inline QString withKey(const QString& text, const QWidget& widget, const char* command) {
  const auto* action = widget.window()->findChild<QAction*>(QStringLiteral("action-") + QLatin1String(command));
  return action && !action->shortcut().isEmpty() ? text + QLatin1Char('\t') + action->shortcut().toString(QKeySequence::NativeText) : text;
}

}  // namespace retrograd::views
