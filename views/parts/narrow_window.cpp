// What lets the window be as narrow as a laptop's screen. Docks that stand behind one another take no more room than their controls can do with, and their tabs
// keep their names: where there is no room for all, the row of tabs scrolls. Qt would cut names down to "Me...".
#include <QChildEvent>
#include <QDockWidget>
#include <QTabBar>

#include "views/window/main_window.h"
#include "views/window/window_part.h"

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

constexpr int leastWidth = 340;  ///< of a dock's content; below it rows of controls would be no use

// The last part: all docks are there.
const WindowPart part(PartOrder::narrowWindow, [](MainWindow& window) {
  for (auto* dock : window.docks()) {
    auto* content = dock->widget();
    if (content->minimumSizeHint().width() > leastWidth) content->setMinimumWidth(leastWidth);
  }
  new WholeNames(window);
  for (auto* bar : window.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) keepNames(*bar);
});

}  // namespace
}  // namespace retrograd::views
