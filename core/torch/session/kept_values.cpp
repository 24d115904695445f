#include "core/torch/session/kept_values.h"

#include <algorithm>
#include <functional>
#include <set>

#include "core/questions/intended_infinities.h"
#include "core/torch/session/storage_copies.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

constexpr double firstLimit = 4e-6, lastLimit = 1e4;             // seconds
constexpr double leastSeconds = 2e-6;                            // of an op: what calling it takes
constexpr std::size_t mostWork = 1'000'000, mostWorkOfOp = 512;  // ops looked at to find what can go

std::int64_t bytesOf(const c10::IValue& value) {
  const auto& tensor = value.toTensor();
  return tensor.defined() && tensor.has_storage() ? static_cast<std::int64_t>(tensor.storage().nbytes()) : 0;
}

void addAll(std::vector<ValueId>& to, std::span<const ValueId> from) { to.insert(to.end(), from.begin(), from.end()); }

/// The latest first: after a way back, what is near to the run's new place was used last and is in the cache.
std::vector<ValueId> sorted(std::vector<ValueId> values) {
  std::ranges::sort(values, std::greater());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

KeptValues::KeptValues(const Document& document, const Trace& trace, const Lifetimes& lifetimes, std::uint64_t seed,
                       std::int64_t budget, LiveMemory& memory, std::shared_ptr<const LeftOut> leftOut)
    : document_(document),
      ops_(trace.ops),
      lifetimes_(lifetimes),
      seed_(seed),
      leftOut_(std::move(leftOut)),
      budget_(budget),
      versions_(document.valueCount()),
      edited_(document.storageCount(), 0),
      memory_(memory),
      limit_(firstLimit) {}

void KeptValues::start(const Bindings& given) {
  forget();
  if (budget_ <= 0) return;
  edited_.assign(document_.storageCount(), 0);
  limit_ = firstLimit;
  work_ = 0;
  again_ = std::make_unique<Evaluator>(document_, seed_);
  again_->setLeftOut(leftOut_);
  generators_ = {{0, again_->generators()}};
  given_.assign(document_.storageCount(), 0);
  for (const auto& [id, value] : given) {
    if (const auto storage = document_.value(id).storage) given_[storage] = 1;
    memory_.exclude(value);
    keep(id, 0, false, value);
  }
  keeps_ = true;  // last: where there was no memory for all this, nothing is kept
}

void KeptValues::forget() {
  for (auto& versions : versions_) {
    for (auto& version : versions) drop(version);
    versions.clear();
  }
  seconds_.clear();
  generators_.clear();
  letGo_ = known_ = 0;
  keeps_ = false;
}

const KeptValues::Version* KeptValues::versionAt(ValueId value, std::size_t position) const {
  if (!versions_.contains(value)) return nullptr;
  const auto& versions = versions_[value];
  const auto after = std::upper_bound(versions.begin(), versions.end(), position,
                                      [](std::size_t at, const Version& version) { return at < version.from; });
  return after == versions.begin() ? nullptr : &*std::prev(after);
}

void KeptValues::keep(ValueId value, std::size_t from, bool byHand, c10::IValue content) {
  memory_.keep(content);
  versions_[value].push_back({from, byHand, false, std::move(content)});
}

void KeptValues::drop(Version& version) {
  memory_.drop(version.content);
  version.content = {};
}

/// Whether nothing ever writes to the memory under it.
bool KeptValues::isSteady(ValueId value) const {
  const auto storage = document_.value(value).storage;
  if (!storage) return !document_.isTensor(value);
  return document_.storage(storage).external || (!lifetimes_.isWritten(storage) && !edited_[storage]);
}

/// Copies come first: where there is no memory for one, the op has not run here.
bool KeptValues::ran(const Evaluator& evaluator, double seconds) {
  if (!keeps_) return false;
  const auto op = ops_[known_];
  StorageCopies copies;
  Bindings made;
  bool copied = false;
  for (auto output : document_.outputs(op)) {
    if (!output || !evaluator.has(output)) continue;
    const bool steady = isSteady(output);
    made.emplace_back(output, steady ? evaluator.value(output) : copies.copyOf(evaluator.value(output)));
    copied = copied || !steady;
  }
  copied = addCopiesOfWritten(made, op, evaluator, copies) || copied;
  ++known_;
  seconds_.push_back(std::max(seconds, leastSeconds));
  if (evaluator.draws(op) && !document_.boundSymbol(op).replays) generators_[known_] = evaluator.generators();
  for (auto& [value, content] : made) keep(value, known_, false, std::move(content));
  return copied;
}

/// New contents of all that shares memory with what the op at known() wrote. External memory is never written: there
/// an operand may have become a copy. Returns whether something was copied.
bool KeptValues::addCopiesOfWritten(Bindings& made, BoundSymbolId op, const Evaluator& evaluator,
                                    StorageCopies& copies) const {
  const auto outputs = document_.outputs(op);
  std::vector<ValueId> changed;
  addWritten(changed, op);
  bool copied = false;
  for (auto value : sorted(std::move(changed))) {
    if (!evaluator.has(value) || std::ranges::find(outputs, value) != outputs.end()) continue;
    const auto& content = evaluator.value(value);
    if (!lifetimes_.isExternal(value)) {
      made.emplace_back(value, copies.copyOf(content));
      copied = true;
    } else if (const auto* last = versionAt(value, known_); !last || !last->content.is(content)) {
      made.emplace_back(value, content);
    }
  }
  return copied;
}

void KeptValues::addWritten(std::vector<ValueId>& values, BoundSymbolId op) const {
  for (auto written : writtenOperands(document_, op)) {
    values.push_back(written);
    if (!lifetimes_.isExternal(written)) addAll(values, lifetimes_.sharing(written));
  }
}

void KeptValues::addEdited(std::vector<ValueId>& values, std::size_t position) const {
  for (const auto& edit : editsAt(position)) {
    values.push_back(edit.value);
    if (!lifetimes_.isExternal(edit.value)) addAll(values, lifetimes_.sharing(edit.value));
  }
}

void KeptValues::unshare(ValueId value) {
  const auto storage = document_.value(value).storage;
  if (!keeps_ || !storage || document_.storage(storage).external) return;
  // Contents that were released are made again from what will be another content, so it has to be there.
  std::vector<ValueId> gone;
  for (auto other : lifetimes_.sharing(value))
    if (!versions_[other].empty() && versions_[other].back().isLetGo) gone.push_back(other);
  const auto again = contents(gone, known_);
  for (std::size_t i = 0; i < gone.size(); ++i) hold(gone[i], again[i]);
  StorageCopies copies;
  for (auto other : lifetimes_.sharing(value))
    for (auto& version : versions_[other]) {
      auto copy = copies.copyOf(version.content);
      drop(version);
      memory_.keep(copy);
      version.content = std::move(copy);
    }
  edited_[storage] = 1;
}

/// What was let go is there again. It has one version, for nothing writes to it.
void KeptValues::hold(ValueId value, const c10::IValue& content) {
  auto& version = versions_[value].front();
  if (!version.isLetGo) return;
  memory_.keep(content);
  version.content = content;
  version.isLetGo = false;
  --letGo_;
}

bool KeptValues::hasEdit(std::size_t position, const ValueEdit& edit) const {
  const auto here = editsAt(position);
  return std::ranges::any_of(
      here, [&](const ValueEdit& other) { return other.value == edit.value && other.content.is_same(edit.content); });
}

void KeptValues::edited(std::size_t position, const ValueEdit& edit, const Evaluator& evaluator) {
  if (!hasEdit(position, edit)) edits_[position].push_back(edit);
  if (!keeps_ || position != known_) return;
  if (lifetimes_.isExternal(edit.value)) return keep(edit.value, known_, true, evaluator.value(edit.value));
  StorageCopies copies;
  for (auto other : lifetimes_.sharing(edit.value))
    if (evaluator.has(other)) keep(other, known_, true, copies.copyOf(evaluator.value(other)));
}

std::span<const ValueEdit> KeptValues::editsAt(std::size_t position) const {
  const auto here = edits_.find(position);
  return here == edits_.end() ? std::span<const ValueEdit>() : std::span<const ValueEdit>(here->second);
}

std::optional<std::size_t> KeptValues::editAfter(std::ptrdiff_t position) const {
  const auto after = position < 0 ? edits_.begin() : edits_.upper_bound(static_cast<std::size_t>(position));
  return after == edits_.end() ? std::nullopt : std::optional(after->first);
}

void KeptValues::forgetAfter(std::size_t position, bool byHand) {
  if (keeps_ && position <= known_) {
    auto values = touched(position, known_);
    if (byHand) addEdited(values, position);
    known_ = position;
    for (auto value : values) {
      auto& versions = versions_[value];
      while (!versions.empty() &&
             (versions.back().from > known_ || (byHand && versions.back().byHand && versions.back().from == known_))) {
        letGo_ -= versions.back().isLetGo;
        drop(versions.back());
        versions.pop_back();
      }
    }
    seconds_.resize(known_);
    generators_.erase(generators_.upper_bound(known_), generators_.end());
  }
  if (byHand) edits_.erase(edits_.lower_bound(position), edits_.end());
}

/// Values that are otherwise before the ops [first, last) than after them: made, written to, let go or put in by hand.
/// Each with all on its memory, so that these can be put on one memory again.
std::vector<ValueId> KeptValues::touched(std::size_t first, std::size_t last) const {
  std::vector<ValueId> values;
  for (auto i = last; i-- > first;) {
    for (auto output : document_.outputs(ops_[i]))
      if (output) values.push_back(output);
    addWritten(values, ops_[i]);
    for (auto released : lifetimes_.released(i)) {
      values.push_back(released);
      addAll(values, lifetimes_.sharing(released));
    }
    addEdited(values, i + 1);
  }
  return sorted(std::move(values));
}

void KeptValues::goBack(Evaluator& run, std::size_t position, const Progress& progress) {
  const auto values = touched(position, known_);
  rebind(run, values, position, progress);
  forgetAfter(position, false);
}

void KeptValues::takeBack(Evaluator& run) {
  std::vector<ValueId> written;
  addWritten(written, ops_[known_]);
  rebind(run, sorted(std::move(written)), known_, {});
}

/// Those of the values that a run has at the position and, at the end of the list, what was let go of their memory: it
/// is made again with them, so that what comes back later is on the same.
std::vector<ValueId> KeptValues::aliveOf(std::span<const ValueId> values, std::size_t position,
                                         std::size_t& alive) const {
  std::vector<ValueId> found, gone;
  for (auto value : values) {
    if (!isThere(value, position)) continue;
    if (lifetimes_.aliveAt(value, position)) found.push_back(value);
    else if (versionAt(value, position)->isLetGo) gone.push_back(value);
  }
  alive = found.size();
  const auto isBack = [&](ValueId value) {
    return std::any_of(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(alive),
                       [&](ValueId other) { return document_.value(other).storage == document_.value(value).storage; });
  };
  std::ranges::copy_if(gone, std::back_inserter(found), isBack);
  return found;
}

/// Gives the run the contents that the values have at the position, and none to those that are not alive there.
void KeptValues::rebind(Evaluator& run, std::span<const ValueId> values, std::size_t position,
                        const Progress& progress) {
  std::size_t count = 0;
  const auto wanted = aliveOf(values, position, count);
  const auto contents = this->contents(wanted, position, progress);
  StorageCopies copies;
  for (auto value : values) {
    if (!run.has(value)) continue;
    if (!isSteady(value) && run.value(value).isTensor()) copies.reuse(run.tensor(value), keyOf(value));
    if (!lifetimes_.isExternal(value)) memory_.remove(run.value(value));
    run.release(value);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    hold(wanted[i], contents[i]);
    if (i >= count) continue;
    run.bind(wanted[i], ofRun(wanted[i], contents[i], copies));
    if (lifetimes_.isExternal(wanted[i])) continue;
    if (const auto storage = document_.value(wanted[i]).storage; storage && given_[storage])
      memory_.exclude(run.value(wanted[i]));
    memory_.add(run.value(wanted[i]));
  }
  run.setGenerators(generatorsAt(position));
}

/// By what the memory of a value is known, whatever storage a content of it is on.
const void* KeptValues::keyOf(ValueId value) const {
  const auto storage = document_.value(value).storage;
  return storage ? static_cast<const void*>(&document_.storage(storage)) : &versions_[value];
}

/// What a run may write to.
c10::IValue KeptValues::ofRun(ValueId value, const c10::IValue& content, StorageCopies& copies) const {
  return isSteady(value) ? content : copies.copyOf(content, keyOf(value));
}

std::size_t KeptValues::reruns() const {
  std::size_t most = 0, alive = 0;
  for (std::size_t i = 0; letGo_ > 0 && i < known_; ++i)
    most = std::max(most, plan(aliveOf(touched(i, i + 1), i, alive), i).size());
  return most;
}

void KeptValues::setBudget(std::int64_t bytes) {
  budget_ = bytes;
  fit();
}

/// What takes longer and longer to make is let go until there is room for some time. Where there never is, little would
/// be kept at a price that grows with the square of the run.
bool KeptValues::fit() {
  if (!keeps_ || bytes() <= budget_) return keeps_;
  const auto enough = budget_ - budget_ / 8;
  while (limit_ <= lastLimit && work_ <= mostWork + mostWorkOfOp * known_) {
    work_ += known_;
    const auto before = bytes();
    lighten(enough);
    if (bytes() <= enough) return true;
    if (bytes() == before) limit_ *= 2;
  }
  forget();
  return false;
}

bool KeptValues::canGo(ValueId value) const {
  return versions_[value].size() == 1 && !versions_[value][0].isLetGo && isSteady(value) &&
         !lifetimes_.isExternal(value) && document_.isTensor(value) && lifetimes_.producedAt(value) >= 0 &&
         !memory_.isHeld(versions_[value][0].content);
}

bool KeptValues::baseIsGone(ValueId value) const {
  const auto storage = document_.value(value).storage;
  const auto first = storage ? document_.storage(storage).first : ValueId();
  return first && first != value && versions_.contains(first) && !versions_[first].empty() &&
         versions_[first].back().isLetGo;
}

/// A content goes where making it, and the longest chain of what is made of it, stays within the limit, and where that
/// gives at least one op's share of what is missing. Views go with their memory.
void KeptValues::lighten(std::int64_t enough) {
  const auto share = (bytes() - enough) / static_cast<std::int64_t>(std::max<std::size_t>(known_, 1));
  const auto isGone = [&](ValueId value) {
    return value && !versions_[value].empty() && versions_[value].back().isLetGo;
  };
  IdVector<ValueId, float> needed(document_.valueCount(), 0), cost(document_.valueCount(), 0);
  for (std::size_t i = known_; i-- > 0;) {
    float below = -1;
    for (auto output : document_.outputs(ops_[i]))
      if (isGone(output)) below = std::max(below, static_cast<float>(seconds_[i]) + needed[output]);
    if (below < 0) continue;
    for (auto operand : document_.operands(ops_[i]))
      if (operand) needed[operand] = std::max(needed[operand], below);
  }
  for (std::size_t i = 0; i < known_; ++i) {
    auto seconds = static_cast<float>(seconds_[i]);
    for (auto operand : document_.operands(ops_[i]))
      if (operand) seconds += cost[operand];
    const bool repeats = !leavesUninitialised(document_, ops_[i]);
    for (auto output : document_.outputs(ops_[i])) {
      if (!output) continue;
      if (isGone(output)) {
        cost[output] = seconds;
        continue;
      }
      if (!repeats || !canGo(output)) continue;
      const bool isBase = bytes() > enough && document_.storage(output).first == output &&
                          seconds + needed[output] <= limit_ && bytesOf(versions_[output][0].content) >= share;
      if (!isBase && !baseIsGone(output)) continue;
      drop(versions_[output][0]);
      versions_[output][0].isLetGo = true;
      ++letGo_;
      cost[output] = seconds;
    }
  }
}

/// Positions of the ops that make what was let go, rising.
std::vector<std::size_t> KeptValues::plan(std::span<const ValueId> values, std::size_t position) const {
  std::set<std::size_t> ops;
  std::vector<std::pair<ValueId, std::size_t>> open;
  for (auto value : values) open.emplace_back(value, position);
  while (!open.empty()) {
    const auto [value, at] = open.back();
    open.pop_back();
    const auto* version = versionAt(value, at);
    if (!version || !version->isLetGo) continue;
    const std::size_t maker = lifetimes_.producedAt(value);
    if (!ops.insert(maker).second) continue;
    for (auto operand : document_.operands(ops_[maker]))
      if (operand) open.emplace_back(operand, maker);
  }
  return {ops.begin(), ops.end()};
}

void KeptValues::runAgain(std::size_t position, std::vector<ValueId>& bound) {
  const auto op = ops_[position];
  const bool writes = !writtenOperands(document_, op).empty();
  StorageCopies copies;
  for (auto operand : document_.operands(op)) {
    const auto* version = operand ? versionAt(operand, position) : nullptr;
    if (!version || version->isLetGo) continue;  // what was let go has been made by now
    again_->bind(operand,
                 writes && !lifetimes_.isExternal(operand) ? copies.copyOf(version->content) : version->content);
    bound.push_back(operand);
  }
  if (const auto original = document_.boundSymbol(op).replays) {
    const auto at = std::ranges::find(ops_, original);
    if (at != ops_.end()) again_->setDrawn(original, generatorsAt(static_cast<std::size_t>(at - ops_.begin())));
  } else if (again_->draws(op)) {
    again_->setGenerators(generatorsAt(position));
  }
  again_->run(op);
  for (auto output : document_.outputs(op))
    if (output) bound.push_back(output);
}

std::vector<c10::IValue> KeptValues::contents(std::span<const ValueId> values, std::size_t position,
                                              const Progress& progress) {
  const auto steps = plan(values, position);
  std::vector<ValueId> bound;
  std::vector<c10::IValue> contents(values.size());
  const auto release = [&] {
    for (auto value : bound) again_->release(value);
  };
  try {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      progress.at(document_.opName(ops_[steps[i]]), static_cast<double>(i) / static_cast<double>(steps.size()));
      runAgain(steps[i], bound);
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      if (const auto* version = versionAt(values[i], position))
        contents[i] = version->isLetGo ? again_->value(values[i]) : version->content;
  } catch (...) {
    release();
    throw;
  }
  release();
  return contents;
}

std::unique_ptr<Evaluator> KeptValues::evaluator(const Progress& progress) {
  std::vector<ValueId> alive;
  for (auto value : versions_.ids())
    if (isThere(value, known_) && lifetimes_.aliveAt(value, known_)) alive.push_back(value);
  const auto contents = this->contents(alive, known_, progress);
  auto evaluator = std::make_unique<Evaluator>(document_, seed_);
  evaluator->setLeftOut(leftOut_);
  StorageCopies copies;
  for (std::size_t i = 0; i < alive.size(); ++i) evaluator->bind(alive[i], ofRun(alive[i], contents[i], copies));
  for (std::size_t i = 0; i < known_; ++i)
    if (evaluator->draws(ops_[i])) evaluator->setDrawn(ops_[i], generatorsAt(i));
  evaluator->setGenerators(generatorsAt(known_));
  return evaluator;
}

}  // namespace retrograd
