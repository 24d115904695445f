#include "views/session/jump_history.h"

namespace retrograd::views {

void JumpHistory::clear() {
  places_.clear();
  at_ = 0;
  originFrom_ = originTo_ = {};
  Q_EMIT changed();
}

void JumpHistory::jumped(BoundSymbolId from, BoundSymbolId to) {
  constexpr std::size_t limit = 1000;
  if (!to || from == to) return;
  if (!places_.empty()) places_.resize(at_ + 1);
  if (from) {
    if (places_.empty() || places_.back() != from) places_.push_back(from);
  }
  if (places_.size() >= limit) places_.erase(places_.begin(), places_.begin() + limit / 2);
  places_.push_back(to);
  at_ = places_.size() - 1;
  Q_EMIT changed();
}

BoundSymbolId JumpHistory::back(BoundSymbolId present) {
  return canGoBack() ? goTo(at_ - 1, present) : BoundSymbolId();
}

BoundSymbolId JumpHistory::forward(BoundSymbolId present) {
  return canGoForward() ? goTo(at_ + 1, present) : BoundSymbolId();
}

BoundSymbolId JumpHistory::goTo(std::size_t place, BoundSymbolId present) {
  if (place >= places_.size()) return {};
  if (present) places_[at_] = present;
  at_ = place;
  Q_EMIT changed();
  return places_[at_];
}

void JumpHistory::originJumped(BoundSymbolId from, BoundSymbolId to) {
  originFrom_ = from;
  originTo_ = to;
  jumped(from, to);
}

}  // namespace retrograd::views
