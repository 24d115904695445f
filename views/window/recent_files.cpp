#include "views/window/recent_files.h"

#include <QFileInfo>

namespace retrograd::views {
namespace {

constexpr int limit = 10;

}  // namespace

RecentFiles::RecentFiles(QSettings* settings, QWidget* parent)
    : QMenu(tr("Open &Recent"), parent), settings_(settings) {
  setToolTipsVisible(true);
  // Another window may have added to the list.
  connect(this, &QMenu::aboutToShow, this, &RecentFiles::fill);
  fill();
}

void RecentFiles::add(const QString& path) {
  auto list = paths();
  const auto absolute = QFileInfo(path).absoluteFilePath();
  list.removeAll(absolute);
  list.prepend(absolute);
  kept::recentFiles.keep(*settings_, list.mid(0, limit));
  fill();
}

void RecentFiles::fill() {
  clear();
  int number = 1;
  for (const auto& path : paths()) {
    const QFileInfo info(path);
    // Models are often all called model.pt2: the folder distinguishes them.
    const auto name = QStringLiteral("%1/%2").arg(info.dir().dirName(), info.fileName());
    auto* action = addAction(QStringLiteral("&%1  %2")
                                 .arg(number++ % 10)
                                 .arg(QString(name).replace(QLatin1Char('&'), QStringLiteral("&&"))));
    action->setToolTip(path);
    action->setStatusTip(path);
    connect(action, &QAction::triggered, this, [this, path] { Q_EMIT chosen(path); });
  }
  if (isEmpty()) addAction(tr("No file was opened yet"))->setEnabled(false);
  addSeparator();
  auto* clearAction = addAction(tr("&Clear the List"), this, [this] {
    kept::recentFiles.forget(*settings_);
    fill();
  });
  clearAction->setEnabled(!paths().isEmpty());
}

}  // namespace retrograd::views
