#pragma once
#include <QDockWidget>
#include <QToolButton>

#include "views/session/pinned_selection.h"
#include "views/session/view_context.h"

namespace retrograd::views {

/// In the title bar of a dock, left of Qt's own buttons: pins what the dock shows. While that is so, the title says
/// what it is.
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
  QString pinnedText() const;

  QDockWidget* dock_;
  PinnedSelection* selection_;
  Theme* theme_;
  NoteBook* notes_;
  QString title_;
};

}  // namespace retrograd::views
