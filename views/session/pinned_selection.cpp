#include "views/session/pinned_selection.h"

namespace retrograd::views {

PinnedSelection::PinnedSelection(Selection* followed, DocumentController* controller, QObject* parent)
    : Selection(parent), followed_(followed), controller_(controller) {
  connect(followed_, &Selection::changed, this, &PinnedSelection::follow);
  connect(controller_, &DocumentController::documentAboutToChange, this, &PinnedSelection::keep);
  connect(controller_, &DocumentController::documentChanged, this, &PinnedSelection::findAgain);
}

void PinnedSelection::setPinned(bool on) {
  if (on == pinned_ || (on && !op() && !value())) return;
  pinned_ = on;
  Q_EMIT pinnedChanged(on);
  follow();
}

void PinnedSelection::follow() {
  if (pinned_) return;
  if (analysis() != followed_->analysis()) reset(followed_->analysis());
  if (op() == followed_->op()) return Selection::selectValue(followed_->value());
  Selection::select(followed_->op(), followed_->value());
}

void PinnedSelection::keep() {
  opKey_.clear();
  valueKey_.clear();
  if (!pinned_ || !analysis()) return;
  path_ = controller_->document()->request.path;
  if (op()) opKey_ = {keyOf(*analysis(), op())};
  if (value()) valueKey_ = {keyOf(*analysis(), value())};
  reset(nullptr);
}

void PinnedSelection::findAgain() {
  if (!pinned_) return;
  const auto& document = controller_->document();
  if (document && document->request.path == path_) {
    const auto ops = findKeys(*document->analysis, opKey_);
    const auto values = findKeys(*document->analysis, valueKey_);
    const auto value = values.empty() ? ValueId() : values[0];
    if (ops.empty() ? value.valid() : ops[0].valid()) {
      reset(document->analysis);
      return Selection::select(ops.empty() ? BoundSymbolId() : ops[0], value);
    }
  }
  setPinned(false);
}

}  // namespace retrograd::views
