// Tabs of docks that stand behind one another keep their names: where there is no room for all, the row of tabs scrolls. Qt would cut names down to "Me...".
#include <QChildEvent>
#include <QTabBar>

#include "views/main_window.h"
#include "views/window_part.h"

namespace retrograd::views {
namespace {

void keepNames(QTabBar& bar) {
  bar.setElideMode(Qt::ElideNone);
  bar.setUsesScrollButtons(true);
}

/// The main window makes and drops tab bars as docks are moved about.
class WholeNames : public QObject {
 public:
  explicit WholeNames(MainWindow& window) : QObject(&window) { window.installEventFilter(this); }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::ChildPolished)  // Qt has set up the bar by then
      if (auto* bar = qobject_cast<QTabBar*>(static_cast<QChildEvent*>(event)->child())) keepNames(*bar);
    return QObject::eventFilter(watched, event);
  }
};

const WindowPart part(5, [](MainWindow& window) {
  new WholeNames(window);
  for (auto* bar : window.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) keepNames(*bar);
});

}  // namespace
}  // namespace retrograd::views
