#include "core/torch/session/kept_values.h"

#include <algorithm>
#include <set>

#include "core/questions/intended_infinities.h"
#include "core/torch/session/storage_copies.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

constexpr double firstLimit = 1e-3, lastLimit = 1e4;  // seconds
constexpr double leastSeconds = 2e-6;                 // of an op: what calling it takes

}  // namespace

KeptValues::KeptValues(const Document& document, const Trace& trace, const Remaking& remaking, std::uint64_t seed,
                       std::int64_t budget, std::shared_ptr<const LeftOut> leftOut)
    : document_(document),
      ops_(trace.ops),
      remaking_(remaking),
      seed_(seed),
      leftOut_(std::move(leftOut)),
      budget_(budget),
      versions_(document.valueCount()),
      written_(document.storageCount(), 0),
      edited_(document.storageCount(), 0),
      onStorage_(document.storageCount()),
      limit_(firstLimit) {
  for (auto op : ops_)
    for (auto operand : writtenOperands(document, op))
      if (const auto storage = document.value(operand).storage) written_[storage] = 1;
  for (auto value : versions_.ids())
    if (const auto storage = document.value(value).storage) onStorage_[storage].push_back(value);
}

void KeptValues::start(std::vector<std::pair<ValueId, c10::IValue>> given) {
  versions_.assign(document_.valueCount(), {});
  edited_.assign(document_.storageCount(), 0);
  given_.clear();
  seconds_.clear();
  memory_ = {};
  limit_ = firstLimit;
  letGo_ = known_ = 0;
  again_ = std::make_unique<Evaluator>(document_, seed_);
  again_->setLeftOut(leftOut_);
  generators_ = {{0, again_->generators()}};
  StorageCopies copies;  // the caller's run writes to its own
  for (auto& [id, value] : given)
    if (!isSteady(id)) value = copies.copyOf(value);
  for (const auto& [id, value] : given)
    if (const auto* key = memoryKey(value)) given_.insert(key);
  for (const auto& [id, value] : given) keep(id, 0, false, value);
  start_ = std::move(given);
}

const KeptValues::Version* KeptValues::versionAt(ValueId value, std::size_t position) const {
  if (!versions_.contains(value)) return nullptr;
  const auto& versions = versions_[value];
  const auto after = std::upper_bound(versions.begin(), versions.end(), position,
                                      [](std::size_t at, const Version& version) { return at < version.from; });
  return after == versions.begin() ? nullptr : &*std::prev(after);
}

void KeptValues::keep(ValueId value, std::size_t from, bool byHand, c10::IValue content) {
  if (!given_.contains(memoryKey(content))) memory_.add(content);
  versions_[value].push_back({from, byHand, false, std::move(content)});
}

void KeptValues::drop(Version& version) {
  if (!given_.contains(memoryKey(version.content))) memory_.remove(version.content);
  version.content = {};
}

bool KeptValues::isExternal(ValueId value) const {
  const auto storage = document_.value(value).storage;
  return storage && document_.storage(storage).external;
}

/// Whether nothing ever writes to the memory under it.
bool KeptValues::isSteady(ValueId value) const {
  const auto storage = document_.value(value).storage;
  if (!storage) return !document_.isTensor(value);
  return document_.storage(storage).external || (!written_[storage] && !edited_[storage]);
}

std::span<const ValueId> KeptValues::sharing(ValueId value) const {
  const auto storage = document_.value(value).storage;
  return storage ? std::span<const ValueId>(onStorage_[storage]) : std::span<const ValueId>();
}

bool KeptValues::ran(const Evaluator& evaluator, double seconds) {
  const auto op = ops_[known_++];
  seconds_.push_back(std::max(seconds, leastSeconds));
  if (evaluator.draws(op) && !document_.boundSymbol(op).replays) generators_[known_] = evaluator.generators();
  StorageCopies copies;
  for (auto output : document_.outputs(op))
    if (output && evaluator.has(output))
      keep(output, known_, false, isSteady(output) ? evaluator.value(output) : copies.copyOf(evaluator.value(output)));
  keepWritten(op, evaluator, copies);
  return memory_.bytes() <= budget_ || fit();
}

/// New versions of all that shares memory with what the op wrote. External memory is never written: there an operand
/// may have become a copy.
void KeptValues::keepWritten(BoundSymbolId op, const Evaluator& evaluator, StorageCopies& copies) {
  const auto outputs = document_.outputs(op);
  std::set<ValueId> changed;
  for (auto written : writtenOperands(document_, op)) {
    changed.insert(written);
    if (!isExternal(written)) changed.insert(sharing(written).begin(), sharing(written).end());
  }
  for (auto value : changed) {
    if (!evaluator.has(value) || std::find(outputs.begin(), outputs.end(), value) != outputs.end()) continue;
    const auto& content = evaluator.value(value);
    if (!isExternal(value)) keep(value, known_, false, copies.copyOf(content));
    else if (const auto* last = versionAt(value, known_); !last || !last->content.is(content))
      keep(value, known_, false, content);
  }
}

void KeptValues::unshare(ValueId value) {
  const auto storage = document_.value(value).storage;
  if (!storage || document_.storage(storage).external) return;
  // Contents that were released are made again from what will be another content, so it has to be there.
  std::vector<ValueId> gone;
  for (auto other : sharing(value))
    if (!versions_[other].empty() && versions_[other].back().isLetGo) gone.push_back(other);
  const auto again = contents(gone, known_);
  for (std::size_t i = 0; i < gone.size(); ++i) {
    versions_[gone[i]].pop_back();
    --letGo_;
    keep(gone[i], static_cast<std::size_t>(remaking_.producedAt(gone[i])) + 1, false, again[i]);
  }
  StorageCopies copies;
  for (auto other : sharing(value))
    for (auto& version : versions_[other]) {
      auto copy = copies.copyOf(version.content);
      drop(version);
      memory_.add(copy);
      version.content = std::move(copy);
    }
  edited_[storage] = 1;
}

void KeptValues::edited(ValueId value, const Evaluator& evaluator) {
  if (isExternal(value)) return keep(value, known_, true, evaluator.value(value));
  StorageCopies copies;
  for (auto other : sharing(value))
    if (evaluator.has(other)) keep(other, known_, true, copies.copyOf(evaluator.value(other)));
  if (memory_.bytes() > budget_) fit();
}

void KeptValues::forgetAfter(std::size_t position, bool byHand) {
  known_ = std::min(known_, position);
  seconds_.resize(known_);
  generators_.erase(generators_.upper_bound(known_), generators_.end());
  for (auto& versions : versions_)
    while (!versions.empty() &&
           (versions.back().from > known_ || (byHand && versions.back().byHand && versions.back().from == known_))) {
      letGo_ -= versions.back().isLetGo;
      drop(versions.back());
      versions.pop_back();
    }
}

bool KeptValues::setBudget(std::int64_t bytes) {
  budget_ = bytes;
  return memory_.bytes() <= budget_ || fit();
}

/// What takes longer and longer to make is let go until there is room for some time.
bool KeptValues::fit() {
  const auto enough = budget_ - budget_ / 8;
  for (;; limit_ *= 2) {
    lighten(enough);
    if (memory_.bytes() <= enough) return true;
    if (limit_ > lastLimit) break;
  }
  start(std::move(start_));
  return false;
}

bool KeptValues::canGo(ValueId value) const {
  return versions_[value].size() == 1 && !versions_[value][0].isLetGo && isSteady(value) && !isExternal(value) &&
         document_.isTensor(value) && remaking_.producedAt(value) >= 0;
}

bool KeptValues::baseIsGone(ValueId value) const {
  const auto storage = document_.value(value).storage;
  const auto first = storage ? document_.storage(storage).first : ValueId();
  return first && first != value && versions_.contains(first) && !versions_[first].empty() &&
         versions_[first].back().isLetGo;
}

/// A content goes where making it, and the longest chain of what is made of it, stays within the limit. Views go with
/// their memory.
void KeptValues::lighten(std::int64_t enough) {
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
      const bool isBase =
          memory_.bytes() > enough && document_.storage(output).first == output && seconds + needed[output] <= limit_;
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
    const std::size_t maker = remaking_.producedAt(value);
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
    again_->bind(operand, writes && !isExternal(operand) ? copies.copyOf(version->content) : version->content);
    bound.push_back(operand);
  }
  if (const auto original = document_.boundSymbol(op).replays) {
    const auto at = std::find(ops_.begin(), ops_.end(), original);
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
    if (isThere(value, known_) && (isExternal(value) || remaking_.aliveAt(value, known_))) alive.push_back(value);
  auto contents = this->contents(alive, known_, progress);
  auto evaluator = std::make_unique<Evaluator>(document_, seed_);
  evaluator->setLeftOut(leftOut_);
  StorageCopies copies;
  for (std::size_t i = 0; i < alive.size(); ++i)
    evaluator->bind(alive[i], isSteady(alive[i]) ? std::move(contents[i]) : copies.copyOf(contents[i]));
  for (std::size_t i = 0; i < known_; ++i)
    if (evaluator->draws(ops_[i])) evaluator->setDrawn(ops_[i], generatorsAt(i));
  evaluator->setGenerators(generatorsAt(known_));
  return evaluator;
}

}  // namespace retrograd
