#pragma once
#include <QKeyEvent>

#include "views/widgets/item_view.h"

namespace retrograd::views {

/// Has Enter show the whole text of a list's current row. With Ctrl it activates the row, as a double click does.
class ReadByEnter : public QObject {
 public:
  explicit ReadByEnter(QAbstractItemView* list) : QObject(list), list_(list) { list->installEventFilter(this); }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (watched != list_ || event->type() != QEvent::KeyPress) return false;
    const auto* key = static_cast<QKeyEvent*>(event);
    const bool isEnter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
    if (!isEnter || (key->modifiers() & ~Qt::KeypadModifier) || !list_->currentIndex().isValid()) return false;
    showWholeText(*list_, list_->currentIndex());
    return true;
  }

 private:
  QAbstractItemView* list_;
};

}  // namespace retrograd::views
