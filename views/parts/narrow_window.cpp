// What lets the window be as narrow as a laptop's screen. Docks that are behind one another take no more room than
// their controls can do with, and their tabs keep their names: where there is no room for all, the row of tabs scrolls.
// Qt would cut names down to "Me...". The tool bar gives up words before the current step, which Qt would put behind an
// arrow.
#include <QChildEvent>
#include <QTabBar>
#include <QToolBar>
#include <QToolButton>

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

/// Of the tool bar: where not all fits, these buttons are icons alone, whose tooltips have their names.
class ShortWords : public QObject {
 public:
  ShortWords(QToolBar& bar, const QList<QAction*>& actions) : QObject(&bar), bar_(bar) {
    for (auto* action : actions)
      if (auto* button = qobject_cast<QToolButton*>(bar.widgetForAction(action))) buttons_ << button;
    bar.installEventFilter(this);
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Resize || event->type() == QEvent::LayoutRequest) fit();
    return QObject::eventFilter(watched, event);
  }

 private:
  void fit() {
    const int now = bar_.sizeHint().width(), whole = now + saved_;
    if ((whole > bar_.width()) == (saved_ > 0)) return;
    const bool isShort = saved_ == 0;
    for (auto* button : buttons_)
      button->setToolButtonStyle(isShort ? Qt::ToolButtonIconOnly : Qt::ToolButtonTextBesideIcon);
    saved_ = isShort ? now - bar_.sizeHint().width() : 0;
  }

  QToolBar& bar_;
  QList<QToolButton*> buttons_;
  int saved_ = 0;  ///< pixels that the words would take; 0: they are there
};

constexpr int leastWidth = 340;  ///< of a dock's content; below it rows of controls would be no use

// The last part: all docks are there.
const WindowPart narrowWindowPart(PartOrder::narrowWindow, [](MainWindow& window) {
  for (auto* dock : window.docks()) {
    auto* content = dock->widget();
    if (content->minimumSizeHint().width() > leastWidth) content->setMinimumWidth(leastWidth);
  }
  new WholeNames(window);
  if (auto* bar = window.findChild<QToolBar*>(QStringLiteral("toolbar-run")))
    new ShortWords(*bar, {window.actions().toCursor, window.actions().breakOnBad});
  for (auto* bar : window.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) keepNames(*bar);
});

}  // namespace
}  // namespace retrograd::views
