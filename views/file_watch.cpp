#include "views/file_watch.h"

#include <QDateTime>
#include <QFileInfo>

namespace retrograd::views {

FileWatch::FileWatch(QObject* parent) : QObject(parent) {
  rest_.setSingleShot(true);
  rest_.setInterval(300);
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, &FileWatch::touched);
  connect(&watcher_, &QFileSystemWatcher::directoryChanged, this, &FileWatch::touched);
  connect(&rest_, &QTimer::timeout, this, &FileWatch::settle);
}

void FileWatch::watch(const QString& path) {
  const auto watched = watcher_.files() + watcher_.directories();
  if (!watched.isEmpty()) watcher_.removePaths(watched);
  rest_.stop();
  path_ = path;
  known_ = stamp();
  if (path.isEmpty()) return;
  watcher_.addPath(path);
  // The folder too: a file that is removed and written anew leaves the watcher.
  watcher_.addPath(QFileInfo(path).absolutePath());
}

QString FileWatch::stamp() const {
  const QFileInfo info(path_);
  return info.exists() ? QStringLiteral("%1 %2").arg(info.size()).arg(info.lastModified().toMSecsSinceEpoch()) : QString();
}

void FileWatch::touched() {
  const auto now = stamp();
  if (now.isEmpty() || now == known_) return;
  pending_ = now;
  rest_.start();
}

void FileWatch::settle() {
  const auto now = stamp();
  if (now != pending_) return touched();  // still being written
  known_ = now;
  if (!watcher_.files().contains(path_)) watcher_.addPath(path_);
  Q_EMIT fileChanged();
}

}  // namespace retrograd::views
