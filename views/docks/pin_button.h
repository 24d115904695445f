#pragma once
#include <QDockWidget>
#include <QToolButton>

#include "views/session/pinned_selection.h"
#include "views/session/view_context.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {

/// In the title bar of a dock, left of Qt's own buttons: pins what the dock shows. The title bar says what that is; so
/// does the dock's title, and with it its tab, while it is pinned.
class PinButton : public QToolButton {
  Q_OBJECT

 public:
  /// `pin` is a checkable action for menus, the palette and this button.
  PinButton(QDockWidget* dock, PinnedSelection* selection, QAction* pin, const ViewContext& context);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();
  void showState();
  QString shownText() const;

  QDockWidget* dock_;
  PinnedSelection* selection_;
  Theme* theme_;
  NoteBook* notes_;
  ElidedLabel* shown_;  // not in the title: tabs stay narrow, and menus have the dock's own name
  QString title_;
};

}  // namespace retrograd::views
