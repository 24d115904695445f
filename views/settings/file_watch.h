#pragma once
#include <QFileSystemWatcher>
#include <QObject>
#include <QTimer>

#include "views/settings/file_stamp.h"

namespace retrograd::views {

/// Reports what became of a file since it was read, once it has come to rest. Survives files that are replaced by
/// renaming, as most writers do, and files that go and come back.
class FileWatch : public QObject {
  Q_OBJECT

 public:
  enum class State {
    same,      ///< as it was read
    replaced,  ///< another file has its name; what was read is still there for whoever has it open
    changed,   ///< written in place
    cutShort,  ///< changed, and shorter than it was
    gone,      ///< nothing has its name; what was read is still there for whoever has it open
  };

  explicit FileWatch(QObject* parent = nullptr);
  /// Compares with `read`, how the file was when it was read, and says at once where it is no longer that. Watches
  /// nothing where it was not there.
  void watch(const QString& path, const FileStamp& read);
  State state() const { return state_; }
  const FileStamp& read() const { return read_; }
  /// As the file is now; of the time of the last stateChanged().
  const FileStamp& now() const { return now_; }

 Q_SIGNALS:
  /// Again at every further change.
  void stateChanged();

 private:
  void touched();
  void settle();
  State stateOf(const FileStamp& stamp) const;

  QFileSystemWatcher watcher_;
  QTimer rest_;
  QString path_;
  FileStamp read_, now_, pending_;
  State state_ = State::same;
};

}  // namespace retrograd::views
