#include "core/torch/session/history.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

namespace retrograd {
namespace {

constexpr std::size_t mostRemade = 8;

std::int64_t bytesOf(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
}

bool sameRegion(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) ||
         (a.has_storage() && b.has_storage() &&
          a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl() &&
          a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() && a.strides() == b.strides());
}

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Whether viewOf() can make it.
bool isPlain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.has_storage() && !tensor.is_conj() &&
         !tensor.is_neg();
}

Undo::Remade describe(ValueId value, const at::Tensor& tensor) {
  return {value, {}, tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset(), tensor.options()};
}

}  // namespace

at::Tensor viewOf(const at::Tensor& shared, const Undo::Remade& remade) {
  return at::empty({0}, remade.options).set_(shared.storage(), remade.offset, remade.sizes, remade.strides);
}

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
  for (const auto& [begin, undo] : undos_) drop(undo);
  undos_.clear();
  most_ = length_ = 2;
  light_ = next_ = undos_.end();
  remaking_.forgetExcluded();
}

void History::setBudget(std::int64_t budget) {
  budget_ = budget;
  fit();
}

void History::push(Undo undo) {
  keep(undo);
  const auto at = undos_.emplace_hint(undos_.end(), undo.begin, std::move(undo));
  if (light_ == undos_.end()) light_ = at;
  if (next_ == undos_.end()) next_ = at;
  fit();
}

Undo History::pop() {
  const auto last = std::prev(undos_.end());
  if (light_ == last) light_ = undos_.end();
  if (next_ == last) next_ = undos_.size() > 1 ? std::prev(last) : undos_.end();
  Undo undo = std::move(last->second);
  undos_.erase(last);
  drop(undo);
  return undo;
}

void History::writeBefore(ValueId value, const at::Tensor& tensor) {
  remaking_.exclude(value);
  if (undos_.empty()) return;
  undos_.rbegin()->second.written.push_back({value, tensor, tensor.clone()});
  copies_ += bytesOf(tensor);
  fit();
}

void History::rebindBefore(ValueId value, const c10::IValue& old) {
  remaking_.exclude(value);
  if (undos_.empty()) return;
  undos_.rbegin()->second.rebound.emplace_back(value, old);
  memory_.keep(old);
  fit();
}

std::size_t History::reruns() const {
  std::size_t most = 0;
  for (const auto& [begin, undo] : undos_) most = std::max(most, undo.reruns());
  return most;
}

/// Joining goes down to three quarters, so that there is room for what running forward inside an Undo leaves.
void History::fit() {
  if (bytes() <= budget_) return;
  lighten(budget_);
  if (bytes() <= budget_) return;
  const auto enough = budget_ - budget_ / 8;
  while (bytes() > enough && undos_.size() > 1 && length_ <= 2 * undos_.rbegin()->second.end) {
    const auto after = std::next(next_);
    if (after == undos_.end()) {
      length_ *= 2;
      next_ = light_ = undos_.begin();
      lighten(enough);  // what is longer can be made lighter in other ways
    } else if (next_->second.length() + after->second.length() > length_ || !join(next_)) {
      next_ = after;
    }
  }
  if (bytes() <= budget_) return;
  // One Undo for all that ran holds next to nothing; what does not fit even so is run again from the start.
  clear();
}

/// From the oldest on, first what two ops make again, then what takes more.
void History::lighten(std::int64_t enough) {
  for (;; most_ *= 2, light_ = undos_.begin()) {
    for (; light_ != undos_.end(); ++light_) {
      if (bytes() <= enough) return;
      std::vector<ValueId> held;
      for (const auto& [value, content] : light_->second.released) held.push_back(value);
      for (auto value : held) letGo(value);
    }
    if (most_ >= mostRemade || bytes() <= enough) return;
  }
}

/// Lets go of the memory under a value in all Undos that hold it, where each can make it again in time.
void History::letGo(ValueId value) {
  const auto position = undos_.rbegin()->second.end;
  if (!remaking_.canBeMade(value)) return;
  std::map<std::size_t, Lighter> lighter;  // by `begin`
  for (auto other : remaking_.sharing(value)) {
    const auto released = remaking_.releasedAt(other);
    if (remaking_.aliveAt(other, position)) return;  // the memory is there anyway
    if (released >= position || undos_.begin()->first > released) continue;
    auto& undo = std::prev(undos_.upper_bound(released))->second;
    const auto holds = std::find_if(undo.released.begin(), undo.released.end(),
                                    [&](const auto& entry) { return entry.first == other; });
    if (holds == undo.released.end()) continue;
    if (!holds->second.isTensor() || !isPlain(holds->second.toTensor())) return;
    auto& entry = lighter[undo.begin];
    if (!entry.undo) entry = {&undo, undo.remade, {}};
    entry.remade.push_back(describe(other, holds->second.toTensor()));
  }
  for (auto& [begin, entry] : lighter)
    if (!plan(begin, entry.undo->end, entry.remade, entry.plan, most_)) return;
  for (auto& [begin, entry] : lighter) {
    std::erase_if(entry.undo->released, [&](const auto& held) {
      const bool goes = std::any_of(entry.remade.begin(), entry.remade.end(),
                                    [&](const Undo::Remade& remade) { return remade.value == held.first; });
      if (goes) memory_.drop(held.second);
      return goes;
    });
    entry.undo->remade = std::move(entry.remade);
    entry.undo->plan = std::move(entry.plan);
  }
}

bool History::plan(std::size_t begin, std::size_t end, std::vector<Undo::Remade>& remade,
                   std::vector<std::size_t>& plan, std::size_t most) const {
  std::vector<ValueId> missing;
  for (auto& entry : remade) {
    entry.shares = remaking_.sharedAt(entry.value, end);
    if (!entry.shares) missing.push_back(entry.value);
  }
  auto found = remaking_.plan(begin, missing, most);
  if (!found) return false;
  plan = std::move(*found);
  return true;
}

bool History::madeWithin(ValueId value, const Undo& undo) const {
  const auto at = remaking_.producedAt(value);
  return at >= 0 && std::cmp_greater_equal(at, undo.begin);
}

bool History::storageMadeWithin(ValueId value, const Undo& undo) const {
  const auto storage = document_.value(value).storage;
  const auto first = storage ? document_.storage(storage).first : ValueId();
  return first && madeWithin(value, undo) && madeWithin(first, undo);
}

/// Puts the one after `at` into it. Not where what was let go could not be made again from the beginning.
bool History::join(Chain::iterator at) {
  auto& first = at->second;
  auto& second = std::next(at)->second;
  auto remade = first.remade;
  for (const auto& entry : second.remade)
    if (!madeWithin(entry.value, first))
      remade.push_back(entry);  // what was made after the beginning goes with going back there
  std::vector<std::size_t> steps;
  if (!plan(first.begin, second.end, remade, steps, Remaking::never)) return false;
  drop(first);
  drop(second);
  first.remade = std::move(remade);
  first.plan = std::move(steps);
  std::erase_if(second.released, [&](const auto& entry) { return madeWithin(entry.first, first); });
  const auto isAgain = [&](const Undo::Write& write) {
    return std::any_of(first.written.begin(), first.written.end(),
                       [&](const Undo::Write& w) { return sameRegion(w.tensor, write.tensor); });
  };
  std::erase_if(second.written,
                [&](const Undo::Write& write) { return storageMadeWithin(write.value, first) || isAgain(write); });
  std::erase_if(second.rebound, [&](const auto& entry) {
    return std::any_of(first.rebound.begin(), first.rebound.end(),
                       [&](const auto& earlier) { return earlier.first == entry.first; });
  });
  std::erase_if(first.written, [&](const Undo::Write& write) { return storageMadeWithin(write.value, first); });
  append(first.released, second.released);
  append(first.written, second.written);
  append(first.rebound, second.rebound);
  if (!first.generators) first.generators = second.generators;
  first.end = second.end;
  keep(first);
  if (light_ == std::next(at)) light_ = at;
  undos_.erase(std::next(at));
  return true;
}

}  // namespace retrograd
