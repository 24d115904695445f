#include "core/debug/history.h"

#include <algorithm>

namespace retrograd {
namespace {

std::int64_t bytesOf(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
}

bool sameRegion(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) || (a.has_storage() && b.has_storage() && a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl() &&
                          a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() && a.strides() == b.strides());
}

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void History::keep(const Undo& undo) {
  for (const auto& [id, value] : undo.released) memory_.keep(value);
  for (const auto& [id, value] : undo.rebound) memory_.keep(value);
  for (const auto& write : undo.written) copies_ += bytesOf(write.before);
  if (undo.generators) copies_ += bytesOf(undo.generators->cpu) + bytesOf(undo.generators->gpu);
}

void History::drop(const Undo& undo) {
  for (const auto& [id, value] : undo.released) memory_.drop(value);
  for (const auto& [id, value] : undo.rebound) memory_.drop(value);
  for (const auto& write : undo.written) copies_ -= bytesOf(write.before);
  if (undo.generators) copies_ -= bytesOf(undo.generators->cpu) + bytesOf(undo.generators->gpu);
}

void History::clear() {
  for (const auto& undo : undos_) drop(undo);
  undos_.clear();
  length_ = 2;
  next_ = undos_.begin();
}

void History::push(Undo undo) {
  keep(undo);
  undos_.push_back(std::move(undo));
  if (next_ == undos_.end()) --next_;
  fit();
}

Undo History::pop() {
  if (next_ == std::prev(undos_.end())) next_ = undos_.size() > 1 ? std::prev(next_) : undos_.end();
  Undo undo = std::move(undos_.back());
  undos_.pop_back();
  drop(undo);
  return undo;
}

void History::writeBefore(ValueId value, const at::Tensor& tensor) {
  if (undos_.empty()) return;
  undos_.back().written.push_back({value, tensor, tensor.clone()});
  copies_ += bytesOf(tensor);
  fit();
}

void History::rebindBefore(ValueId value, const c10::IValue& old) {
  if (undos_.empty()) return;
  undos_.back().rebound.emplace_back(value, old);
  memory_.keep(old);
  fit();
}

std::size_t History::longest() const {
  std::size_t most = 0;
  for (const auto& undo : undos_) most = std::max(most, undo.length());
  return most;
}

/// Down to three quarters, so that there is room for what running forward inside an Undo leaves.
void History::fit() {
  if (bytes() <= budget_) return;
  const auto enough = budget_ / 4 * 3;
  while (bytes() > enough && undos_.size() > 1) {
    const auto after = std::next(next_);
    if (after == undos_.end()) {
      length_ *= 2;
      next_ = undos_.begin();
    } else if (next_->length() + after->length() <= length_) {
      join(next_);
    } else {
      next_ = after;
    }
  }
  // One Undo for all that ran holds next to nothing; what does not fit even so is run again from the start.
  if (undos_.size() == 1 && bytes() > budget_) {
    drop(undos_.front());
    undos_.clear();
    next_ = undos_.end();
  }
}

bool History::madeWithin(ValueId value, const Undo& undo) const {
  const auto at = producedAt_[static_cast<std::size_t>(value.index)];
  return at >= 0 && static_cast<std::size_t>(at) >= undo.begin;
}

bool History::storageMadeWithin(ValueId value, const Undo& undo) const {
  const auto storage = document_.value(value).storage;
  const auto first = storage ? document_.storage(storage).first : ValueId();
  return first && madeWithin(value, undo) && madeWithin(first, undo);
}

/// Puts the one after `at` into it.
void History::join(std::list<Undo>::iterator at) {
  auto& first = *at;
  auto& second = *std::next(at);
  drop(first);
  drop(second);
  // What was made after the beginning goes with going back there.
  std::erase_if(second.released, [&](const auto& entry) { return madeWithin(entry.first, first); });
  const auto isAgain = [&](const Undo::Write& write) {
    return std::any_of(first.written.begin(), first.written.end(), [&](const Undo::Write& w) { return sameRegion(w.tensor, write.tensor); });
  };
  std::erase_if(second.written, [&](const Undo::Write& write) { return storageMadeWithin(write.value, first) || isAgain(write); });
  std::erase_if(second.rebound, [&](const auto& entry) {
    return std::any_of(first.rebound.begin(), first.rebound.end(), [&](const auto& earlier) { return earlier.first == entry.first; });
  });
  std::erase_if(first.written, [&](const Undo::Write& write) { return storageMadeWithin(write.value, first); });
  append(first.released, second.released);
  append(first.written, second.written);
  append(first.rebound, second.rebound);
  if (!first.generators) first.generators = second.generators;
  first.end = second.end;
  keep(first);
  undos_.erase(std::next(at));
}

}  // namespace retrograd
