#pragma once
#include <QLabel>
#include <QTimer>

#include "views/session/view_context.h"
#include "views/widgets/message_bar.h"

namespace retrograd::views {

/// Shows over the listings that the checksums of a large file's weights are still being compared, how far that is, and
/// what was found damaged. It asks every quarter of a second, which costs nothing, and never waits for the check.
class CheckNotice : public MessageBar {
  Q_OBJECT

 public:
  CheckNotice(ViewContext context, QLabel* status, QWidget* parent);

 private:
  void look();

  QLabel* status_;  ///< in the status bar
  QTimer timer_;
  QString shown_;
};

}  // namespace retrograd::views
