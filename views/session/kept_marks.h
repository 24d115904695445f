#pragma once
#include <QObject>

#include "views/session/view_context.h"
#include "views/settings/settings.h"

namespace retrograd::views {

/// Keeps a file's breakpoints and watches in the settings, in words and by the file's path, and sets them again when
/// the file is next opened.
class KeptMarks : public QObject {
  Q_OBJECT

 public:
  KeptMarks(ViewContext context, QSettings* settings, QObject* parent);

 Q_SIGNALS:
  /// A breakpoint that was kept does not fit the file any more.
  void breakpointLost(const QString& words, const QString& why);
  /// The file no longer has a value of that name.
  void watchLost(const QString& name);

 private:
  QString hashOfPath() const;
  void documentChanged();
  void restoreBreakpoint(QString words);
  void restoreWatches(const QStringList& names);
  void oneRestored();
  void keep();

  ViewContext context_;
  QSettings* settings_;
  QString path_;       ///< of the file whose marks are watched; empty while one is being opened or closed
  int restoring_ = 0;  ///< answers that are still to come
};

}  // namespace retrograd::views
