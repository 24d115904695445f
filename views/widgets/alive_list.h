#pragma once
#include <QDialog>

#include "core/questions/memory_timeline.h"
#include "views/session/open_document.h"

namespace retrograd::views {

/// "saved", "results": a use of memory for people.
QString labelOf(MemoryUse use);

/// The largest tensors that are alive after a position, most bytes first, as a list over the window: Enter or a double
/// click goes to the op that made the tensor, Esc closes it.
class AliveList : public QDialog {
  Q_OBJECT

 public:
  AliveList(const OpenDocument& document, const MemoryTimeline& timeline, std::size_t position, QWidget* parent);

  /// Shows with its corner at this place, in global coordinates, or where all of it is on the screen.
  void showAt(const QPoint& at, const QScreen& screen);
  /// Those that are alive after the position, most bytes first, at most `most`.
  static std::vector<const StorageLife*> alive(const MemoryTimeline& timeline, std::size_t position, std::size_t most);

 Q_SIGNALS:
  void chosen(retrograd::BoundSymbolId op);
};

}  // namespace retrograd::views
