#pragma once
#include <QMenu>
#include <QSettings>

#include "views/settings/settings.h"

namespace retrograd::views {

/// The menu of files opened recently, newest first; kept in the settings.
class RecentFiles : public QMenu {
  Q_OBJECT

 public:
  RecentFiles(QSettings* settings, QWidget* parent);
  void add(const QString& path);
  QStringList paths() const { return kept::recentFiles.of(*settings_); }

 Q_SIGNALS:
  void chosen(const QString& path);

 private:
  void fill();

  QSettings* settings_;
};

}  // namespace retrograd::views
