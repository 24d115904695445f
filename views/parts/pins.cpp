// Docks that follow the selection can be pinned to what they show: a button in their title bar, View > Pin, and Shift+P
// for the one with the focus.
#include <QApplication>
#include <QStatusBar>

#include "views/docks/pin_button.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// `window`: the selection there, which this one may be about to follow.
QString noSelection(const PinnedSelection& selection, const Selection& window) {
  if (selection.isPinned() || window.op() || window.value()) return {};
  return window.analysis() ? tr("Nothing is selected") : tr("No file is open");
}

/// The dock with the focus if it can be pinned; may be null.
PinButton* focused(const MainWindow& window) {
  const auto* focus = QApplication::focusWidget();
  for (auto* dock : window.docks())
    if (focus && dock->isAncestorOf(focus))
      return dock->findChild<PinButton*>(QStringLiteral("pin"), Qt::FindDirectChildrenOnly);
  return nullptr;
}

void addPin(MainWindow& window, QDockWidget* dock, PinnedSelection* selection, QMenu* menu) {
  auto& actions = window.actions();
  const auto title = dock->windowTitle();
  const auto name = QByteArray("pin-") + dock->objectName().mid(static_cast<int>(qstrlen("dock-"))).toLatin1();
  auto* pin = actions.add(name.constData(), tr("Pin %1").arg(title),
                          tr("%1 stays with what it shows while you move on, or follows again").arg(title), {});
  pin->setCheckable(true);
  QObject::connect(pin, &QAction::triggered, selection, [pin, selection](bool on) {
    selection->setPinned(on);
    pin->setChecked(selection->isPinned());
  });
  actions.allowUnless(pin, [selection, &window] { return noSelection(*selection, *window.context().selection); });
  menu->addAction(pin);
  new PinButton(dock, selection, pin, window.context());
}

const WindowPart pinsPart(PartOrder::pins, [](MainWindow& window) {
  auto* menu = new QMenu(tr("&Pin"), &window);
  menu->setToolTipsVisible(true);
  auto& actions = window.actions();
  auto* here = actions.add("pin", tr("&This Dock"),
                           tr("The dock with the focus stays with what it shows while you move on, or follows again"),
                           QKeySequence(Qt::SHIFT | Qt::Key_P));
  QObject::connect(here, &QAction::triggered, &window, [&window] {
    if (auto* button = focused(window)) return button->defaultAction()->trigger();
    window.statusBar()->showMessage(tr("The focus is in no dock that follows the selection"), 8000);
  });
  menu->addAction(here);
  menu->addSeparator();
  for (auto* dock : window.docks())
    if (auto* selection = window.findChild<PinnedSelection*>(dock->objectName(), Qt::FindDirectChildrenOnly))
      addPin(window, dock, selection, menu);
  window.menu("view")->addMenu(menu);
});

}  // namespace
}  // namespace retrograd::views
