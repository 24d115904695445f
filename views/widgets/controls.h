#pragma once
#include <QAction>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QLabel>
#include <QLayout>
#include <QToolButton>
#include <type_traits>

#include "views/text/format.h"

namespace retrograd::views {

/// Names an object for settings and tests, and a widget with `spoken` for those who hear the window.
template <class T>
T* named(T* object, QAnyStringView name, const QString& spoken = {}) {
  object->setObjectName(name);
  if constexpr (std::is_base_of_v<QWidget, T>)
    if (!spoken.isEmpty()) object->setAccessibleName(spoken);
  return object;
}

/// A layout with this room around what it holds and, where `spacing` is given, between.
template <class L>
L* withMargins(L* layout, const QMargins& margins, int spacing = -1) {
  layout->setContentsMargins(margins);
  if (spacing >= 0) layout->setSpacing(spacing);
  return layout;
}

/// Words in as many lines as they take; what is in them is not markup.
inline QLabel* textLabel(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  return label;
}

/// A command as a button with its text, which the keyboard comes to.
inline QToolButton* commandButton(QAction* action, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setDefaultAction(action);
  button->setToolButtonStyle(Qt::ToolButtonTextOnly);
  button->setFocusPolicy(Qt::StrongFocus);
  return button;
}

/// A command of a list alone: in its context menu, and by its key while the list has the keyboard.
template <class Run>
QAction* addListAction(QWidget* list, const QString& text, const QKeySequence& key, Run run) {
  auto* action = new QAction(text, list);
  action->setShortcut(key);
  action->setShortcutContext(Qt::WidgetShortcut);
  QObject::connect(action, &QAction::triggered, list, run);
  list->addAction(action);
  return action;
}

/// A command of a window of its own, by these keys; its tooltip names the first.
template <class Run>
QAction* addWindowAction(QWidget* window, const QString& text, const char* name, const QList<QKeySequence>& keys,
                         Run run) {
  auto* action = named(new QAction(text, window), name);
  action->setShortcuts(keys);
  action->setToolTip(tr("%1 (%2)").arg(text, keys.front().toString(QKeySequence::NativeText)));
  QObject::connect(action, &QAction::triggered, window, run);
  window->addAction(action);
  return action;
}

/// Asks for a file that is there. The dialog is not modal: what runs goes on.
template <class Receiver, class Chosen>
void chooseFile(QWidget* parent, const QString& title, const QString& folder, const QString& filter, Receiver* receiver,
                Chosen chosen) {
  auto* dialog = new QFileDialog(parent, title, folder, filter);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  QObject::connect(dialog, &QFileDialog::fileSelected, receiver, chosen);
  dialog->open();
}

/// The dialog's buttons, which accept or reject it.
inline QDialogButtonBox* dialogButtons(QDialogButtonBox::StandardButtons which, QDialog* dialog) {
  auto* buttons = new QDialogButtonBox(which, dialog);
  QObject::connect(buttons, &QDialogButtonBox::accepted, dialog, &QDialog::accept);
  QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  return buttons;
}

}  // namespace retrograd::views
