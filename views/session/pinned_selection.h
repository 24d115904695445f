#pragma once
#include "views/session/breakpoint_key.h"
#include "views/session/document_controller.h"
#include "views/session/selection.h"

namespace retrograd::views {

/// The selection as one dock sees it, which can be pinned: it then stays with what it shows while one moves on in the
/// window. Selecting in the dock selects in the window either way. A dock that is given this one as its Selection
/// can be pinned and knows nothing of it.
class PinnedSelection : public Selection {
  Q_OBJECT

 public:
  PinnedSelection(Selection* followed, DocumentController* controller, QObject* parent = nullptr);

  void select(BoundSymbolId op, ValueId value = {}) override { followed_->select(op, value); }
  void selectValue(ValueId value) override { followed_->selectValue(value); }

  /// The pinned op is kept when the file is read again, found by its key; where it is gone, and in another file,
  /// nothing is pinned any more.
  bool isPinned() const { return pinned_; }
  void setPinned(bool on);

 Q_SIGNALS:
  void pinnedChanged(bool on);

 private:
  void follow();
  void keep();
  void findAgain();

  Selection* followed_;
  DocumentController* controller_;
  bool pinned_ = false;
  std::string path_;          ///< of the file that the keys are of
  std::vector<OpKey> opKey_;  ///< one or none
  std::vector<ValueKey> valueKey_;
};

}  // namespace retrograd::views
