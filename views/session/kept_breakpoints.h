#pragma once
#include <QObject>

#include "views/session/view_context.h"
#include "views/settings/settings.h"

namespace retrograd::views {

/// Keeps a file's breakpoints in the settings, in words and by the file's path, and sets them again when the file is
/// next opened.
class KeptBreakpoints : public QObject {
  Q_OBJECT

 public:
  KeptBreakpoints(ViewContext context, QSettings* settings, QObject* parent);

 Q_SIGNALS:
  /// A breakpoint that was kept does not fit the file any more.
  void lost(const QString& words, const QString& why);

 private:
  Setting<QStringList> setting() const;
  void documentChanged();
  void keep();

  ViewContext context_;
  QSettings* settings_;
  QString path_;       ///< of the file whose breakpoints are watched; empty while one is being opened or closed
  int restoring_ = 0;  ///< breakpoints that are still to come
};

}  // namespace retrograd::views
