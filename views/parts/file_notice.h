#pragma once
#include <QPushButton>

#include "views/session/view_context.h"
#include "views/settings/file_watch.h"
#include "views/widgets/message_bar.h"

namespace retrograd::views {

/// Says over the listings that the open file has changed or is gone, and offers to reload it. Nothing is thrown away
/// unasked: what is open stays, a run goes on, and a reload that is asked for meanwhile waits for the end of the run
/// and of what is being computed meanwhile. Closing it takes that back.
class FileNotice : public MessageBar {
  Q_OBJECT

 public:
  FileNotice(ViewContext context, QWidget* parent);

 private:
  void documentChanged();
  void fileChanged();
  void reload();
  void reloadIfIdle();
  /// A run is under way, or something else is being computed.
  bool runs() const { return context_.execution->now().running || context_.controller->questions().asking(); }
  QString whatHappened() const;
  void tell();

  ViewContext context_;
  FileWatch watch_;
  QPushButton* reload_;
  bool waiting_ = false;  ///< to reload when nothing runs any more
};

}  // namespace retrograd::views
