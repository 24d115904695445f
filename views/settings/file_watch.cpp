#include "views/settings/file_watch.h"

#include <QFileInfo>

namespace retrograd::views {

FileWatch::FileWatch(QObject* parent) : QObject(parent) {
  rest_.setSingleShot(true);
  rest_.setInterval(300);
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, &FileWatch::touched);
  connect(&watcher_, &QFileSystemWatcher::directoryChanged, this, &FileWatch::touched);
  connect(&rest_, &QTimer::timeout, this, &FileWatch::settle);
}

void FileWatch::watch(const QString& path, const FileStamp& read) {
  const auto watched = watcher_.files() + watcher_.directories();
  if (!watched.isEmpty()) watcher_.removePaths(watched);
  rest_.stop();
  path_ = path;
  read_ = now_ = read;
  state_ = State::same;
  if (path.isEmpty() || !read.exists) return;
  watcher_.addPath(path);
  // The folder too: a file that is removed and written again leaves the watcher.
  watcher_.addPath(QFileInfo(path).absolutePath());
  touched();  // it may have changed while it was read
}

void FileWatch::touched() {
  const auto now = stampOf(path_);
  if (now == now_ && !rest_.isActive()) return;
  pending_ = now;
  rest_.start();
}

void FileWatch::settle() {
  const auto now = stampOf(path_);
  if (now != pending_) return touched();  // still being written
  if (now.exists &&
      (now.inode != now_.inode || !watcher_.files().contains(path_))) {  // an inode is watched, not a name
    watcher_.removePath(path_);
    watcher_.addPath(path_);
  }
  if (now == now_) return;
  now_ = now;
  state_ = stateOf(now);
  Q_EMIT stateChanged();
}

FileWatch::State FileWatch::stateOf(const FileStamp& stamp) const {
  if (stamp == read_) return State::same;
  if (!stamp.exists) return State::gone;
  if (stamp.device != read_.device || stamp.inode != read_.inode) return State::replaced;
  return stamp.size < read_.size ? State::cutShort : State::changed;
}

}  // namespace retrograd::views
