// Names for the tab bars of docks that share a place: the main window makes them by itself whenever docks move.
#include <QChildEvent>
#include <QTabBar>

#include "views/main_window.h"
#include "views/window_part.h"

namespace retrograd::views {
namespace {

class TabNames : public QObject {
 public:
  explicit TabNames(QObject* window) : QObject(window) { window->installEventFilter(this); }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::ChildPolished)
      if (auto* bar = qobject_cast<QTabBar*>(static_cast<QChildEvent*>(event)->child())) bar->setAccessibleName(MainWindow::tr("Docks that share a place"));
    return QObject::eventFilter(watched, event);
  }
};

const WindowPart part(10, [](MainWindow& window) {
  for (auto* bar : window.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) bar->setAccessibleName(MainWindow::tr("Docks that share a place"));
  new TabNames(&window);
});

}  // namespace
}  // namespace retrograd::views
