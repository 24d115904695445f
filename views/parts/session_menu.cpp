// File > Reopen at Start, and the Window menu: what there is because there are several windows.
#include <QDir>
#include <QFileInfo>
#include <QStatusBar>

#include "views/window/session_keeper.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// "models/model.pt2": the folder distinguishes files of one name.
QString nameOf(MainWindow* window) {
  const QFileInfo file(window->windowFilePath());
  const auto name = window->windowFilePath().isEmpty()
                        ? tr("(no file)")
                        : QStringLiteral("%1/%2").arg(file.dir().dirName(), file.fileName());
  return QString(name).replace(QLatin1Char('&'), QStringLiteral("&&"));
}

void activate(MainWindow* window) {
  if (window->isMinimized()) window->showNormal();
  window->raise();
  window->activateWindow();
}

void fill(QMenu* menu, MainWindow* self, const QList<QAction*>& commands) {
  menu->clear();
  menu->addActions(commands);
  menu->addSeparator();
  int number = 1;
  for (auto* window : SessionKeeper::of(self->shared().settings).windows()) {
    auto* action =
        menu->addAction(number < 10 ? QStringLiteral("&%1  %2").arg(number).arg(nameOf(window)) : nameOf(window));
    ++number;
    action->setToolTip(window->windowFilePath());
    action->setCheckable(true);
    action->setChecked(window == self);
    QObject::connect(action, &QAction::triggered, window, [window] { activate(window); });
  }
}

void step(MainWindow* self, int by) {
  const auto windows = SessionKeeper::of(self->shared().settings).windows();
  const auto count = windows.size();
  if (count < 2)
    return self->statusBar()->showMessage(tr("There is no other window: File > Open in New Window makes one"), 8000);
  activate(windows[(windows.indexOf(self) + by + count) % count]);
}

const WindowPart sessionMenuPart(PartOrder::sessions, [](MainWindow& window) {
  auto& keeper = SessionKeeper::of(window.shared().settings);
  keeper.add(&window);
  auto& actions = window.actions();
  auto* reopen = actions.add("reopen-at-start", tr("Reopen at &Start"),
                             tr("A start without files opens those of the last session, as they were shown"), {});
  reopen->setCheckable(true);
  auto* file = window.menu("file");
  file->insertAction(actions.close, reopen);
  file->insertSeparator(actions.close);
  QObject::connect(file, &QMenu::aboutToShow, reopen,
                   [reopen, &keeper] { reopen->setChecked(keeper.session().isWanted()); });
  QObject::connect(reopen, &QAction::triggered, &window, [&keeper](bool on) { keeper.session().setWanted(on); });
  reopen->setChecked(keeper.session().isWanted());

  auto* menu = window.menu("window", tr("&Window"));
  menu->setObjectName(QStringLiteral("windows"));
  auto* next = actions.add("next-window", tr("&Next Window"), tr("To the window that was opened after this one"),
                           QKeySequence(Qt::CTRL | Qt::Key_Tab));
  auto* previous =
      actions.add("previous-window", tr("&Previous Window"), tr("To the window that was opened before this one"),
                  QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Tab));
  const QList<QAction*> commands{next, previous};
  QObject::connect(next, &QAction::triggered, &window, [&window] { step(&window, 1); });
  QObject::connect(previous, &QAction::triggered, &window, [&window] { step(&window, -1); });
  QObject::connect(menu, &QMenu::aboutToShow, &window, [menu, &window, commands] { fill(menu, &window, commands); });
  fill(menu, &window, commands);
});

}  // namespace
}  // namespace retrograd::views
