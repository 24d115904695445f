#include "views/widgets/key_edit.h"

#include <QKeyEvent>

namespace retrograd::views {

KeyEdit::KeyEdit(QWidget* parent) : QLineEdit(parent) {
  setClearButtonEnabled(true);
  setContextMenuPolicy(Qt::NoContextMenu);
  setAttribute(Qt::WA_InputMethodEnabled, false);
  connect(this, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (text.isEmpty()) setKey({});  // by the button
  });
}

void KeyEdit::setKey(const QKeySequence& key) {
  if (key == key_) return;
  key_ = key;
  setText(key.toString(QKeySequence::NativeText));
  Q_EMIT keyChanged(key_);
}

bool KeyEdit::event(QEvent* event) {
  // No key reaches a command of the window while it is being chosen.
  if (event->type() == QEvent::ShortcutOverride) {
    event->accept();
    return true;
  }
  return QLineEdit::event(event);
}

void KeyEdit::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Shift:
    case Qt::Key_Control:
    case Qt::Key_Alt:
    case Qt::Key_AltGr:
    case Qt::Key_Meta:
    case Qt::Key_CapsLock:
    case Qt::Key_unknown: return event->ignore();
    case Qt::Key_Escape:
      if (key_.isEmpty()) return event->ignore();
      [[fallthrough]];
    case Qt::Key_Backspace:
      if (event->modifiers() == Qt::NoModifier) return setKey({});
      break;
    case Qt::Key_Tab:
    case Qt::Key_Backtab:
      if (!(event->modifiers() & Qt::ControlModifier)) return event->ignore();
      break;
    default: break;
  }
  setKey(QKeySequence(QKeyCombination(event->modifiers() & ~Qt::KeypadModifier, static_cast<Qt::Key>(event->key()))));
}

}  // namespace retrograd::views
