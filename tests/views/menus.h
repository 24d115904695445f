#pragma once
#include <QContextMenuEvent>
#include <QMenu>
#include <QTest>
#include <QTimer>

#include "tests/views/window_fixture.h"

namespace retrograd::views {

/// The command of this name.
inline QAction* action(MainWindow& window, const char* name) {
  return window.findChild<QAction*>(QLatin1String("action-") + QLatin1String(name));
}

template <class T>
T* child(WindowFixture& f, const char* name) {
  return f.window().findChild<T*>(QLatin1String(name));
}

/// Opens the widget's context menu with the mouse and hands it to `use` while it is open.
inline void withMenu(QWidget* widget, const QPoint& at, const std::function<void(QMenu&)>& use) {
  bool used = false;
  QTest::mouseClick(widget, Qt::RightButton, Qt::NoModifier, at);
  QTimer::singleShot(0, widget, [&] {
    auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
    QVERIFY(menu);
    used = true;
    use(*menu);
    if (auto* popup = QApplication::activePopupWidget()) popup->close();
  });
  QContextMenuEvent event(QContextMenuEvent::Mouse, at, widget->mapToGlobal(at));
  QApplication::sendEvent(widget, &event);
  QVERIFY(used);
}

/// Clicks the entry with this text, whatever key is behind it.
inline void clickEntry(QMenu& menu, const QString& text) {
  for (auto* entry : menu.actions())
    if (entry->text().section(QLatin1Char('\t'), 0, 0).remove(QLatin1Char('&')) == text) {
      QVERIFY2(entry->isEnabled(), qPrintable(text));
      return QTest::mouseClick(&menu, Qt::LeftButton, Qt::NoModifier, menu.actionGeometry(entry).center());
    }
  QFAIL(qPrintable(QStringLiteral("no entry ") + text));
}

/// The window in front, as a window manager leaves it when a dialog closes.
inline void toFront(WindowFixture& f) { QApplication::setActiveWindow(&f.window()); }

}  // namespace retrograd::views
