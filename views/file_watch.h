#pragma once
#include <QFileSystemWatcher>
#include <QObject>
#include <QTimer>

namespace retrograd::views {

/// Tells when a file has changed and come to rest. Survives files that are replaced by renaming, as most writers do.
class FileWatch : public QObject {
  Q_OBJECT

 public:
  explicit FileWatch(QObject* parent = nullptr);
  /// An empty path watches nothing.
  void watch(const QString& path);

 Q_SIGNALS:
  void fileChanged();

 private:
  void touched();
  void settle();
  QString stamp() const;

  QFileSystemWatcher watcher_;
  QTimer rest_;
  QString path_, known_, pending_;
};

}  // namespace retrograd::views
