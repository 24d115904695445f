#pragma once
#include <QAction>
#include <QKeySequence>
#include <QMenu>
#include <QString>
#include <QWidget>

namespace retrograd::views {

/// The key that a command has now in the main window that the widget belongs to, for people; empty where it has none.
/// Texts that name a key ask for it when they are shown: the user and the presets change keys.
inline QString keyText(const QWidget& widget, const char* command) {
  const auto* top = &widget;  // not window(): a dock may float, as a window of its own
  while (top->parentWidget()) top = top->parentWidget();
  const auto* action = top->findChild<QAction*>(QStringLiteral("action-") + QLatin1String(command));
  return action ? action->shortcut().toString(QKeySequence::NativeText) : QString();
}

/// The text of a context menu's entry that does what a command of the window does, with the key that the command has
/// now behind it.
inline QString withKey(const QString& text, const QWidget& widget, const char* command) {
  const auto key = keyText(widget, command);
  return key.isEmpty() ? text : text + QLatin1Char('\t') + key;
}

/// The same for a key that a view has for itself, and that no command can have.
inline QString withFixedKey(const QString& text, const QKeySequence& key) {
  return text + QLatin1Char('\t') + key.toString(QKeySequence::NativeText);
}

/// A context menu for exec(), which goes when it closes. It may outlive the parent, as a window can be closed while its
/// menu is open: a menu on the stack would then be destroyed twice.
inline QMenu* contextMenu(QWidget* parent) {
  auto* menu = new QMenu(parent);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->setToolTipsVisible(true);  // they say why an entry cannot be used
  return menu;
}

/// Disables an entry where there is a reason, and says it.
inline void disableBecause(QAction* entry, const QString& reason) {
  entry->setEnabled(reason.isEmpty());
  entry->setToolTip(reason);
  entry->setStatusTip(reason);
}

}  // namespace retrograd::views
