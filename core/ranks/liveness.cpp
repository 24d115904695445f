#include "core/ranks/liveness.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "core/base/number_text.h"

namespace retrograd {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

const std::string failedKey = "retrograd/failed", goodbye = "left";
constexpr auto beat = 400ms, look = 100ms, moment = 1500ms;

std::string beatKey(int rank) { return fmt::format("retrograd/beat/{}", rank); }

struct Failure {
  int rank = -1;
  std::string text;

  std::string record() const { return fmt::format("{}\n{}", rank, text); }
  static Failure of(const std::string& record) {
    const auto end = record.find('\n');
    const auto rank = numberIn<int>(std::string_view(record).substr(0, end));
    return {rank.value_or(-1), end == record.npos ? record : record.substr(end + 1)};
  }
};

}  // namespace

struct Liveness::State {
  struct Sign {
    std::string last;
    Clock::time_point changed = Clock::now();
  };

  State(std::unique_ptr<SharedKeys> shared, int own, int all, Milliseconds quiet)
      : keys(std::move(shared)), rank(own), silence(quiet), signs(all) {
    for (int other = 0; other < all; ++other) beatKeys.push_back(beatKey(other));
  }

  /// The thread that talks to the store: signs of life out and in, failures out and in.
  void talk() {
    for (long count = 1;; ++count) {
      const bool leaving = pause();
      try {
        exchange(leaving ? goodbye : std::to_string(count));
      } catch (const std::exception&) {
        const std::scoped_lock lock(mutex);
        if (!leaving) note({0, "rank 0, which keeps the store of the ranks, is gone"});
        unreachable = true;
      }
      const std::scoped_lock lock(mutex);
      saidGoodbye = leaving;
      changed.notify_all();
      if (stopped || unreachable) break;
    }
    const std::scoped_lock lock(mutex);
    talking = false;
    changed.notify_all();
  }

  /// Until it is time for the next sign, or something is to be said; whether that is the goodbye.
  bool pause() {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, beat, [this] { return stopped || (leaving && !saidGoodbye) || (failure && !published); });
    return leaving;
  }

  void exchange(const std::string& sign) {
    std::optional<Failure> own;
    {
      const std::scoped_lock lock(mutex);
      if (failure && !published) own = failure;
    }
    const auto standing = own ? std::optional(keys->setOnce(failedKey, own->record())) : keys->find(failedKey);
    keys->set(beatKeys[rank], sign);
    const auto now = keys->all(beatKeys);
    const std::scoped_lock lock(mutex);
    contact = Clock::now();
    for (std::size_t i = 0; i < signs.size(); ++i)
      if (now[i] != signs[i].last) signs[i] = {now[i], contact};
    if (standing) note(Failure::of(*standing));
    if (own || standing) published = true;
  }

  /// The thread that never waits for anyone: notices silence, and wakes those who wait in vain.
  void guard() {
    std::unique_lock lock(mutex);
    while (!stopped) {
      changed.wait_for(lock, look);
      if (!failure && !leaving) noticeSilence();
      if (failure)
        for (const auto* interrupt : interruptions) (*interrupt)();
    }
    guarding = false;
    changed.notify_all();
  }

  void noticeSilence() {
    const auto now = Clock::now();
    const auto seconds = std::chrono::duration<double>(silence).count();
    if (now - contact > silence)
      return note(
          {0, fmt::format("rank 0, which keeps the store of the ranks, has not answered for {:.3g} s", seconds)});
    for (std::size_t other = 0; other < signs.size(); ++other)
      if (static_cast<int>(other) != rank && signs[other].last != goodbye && now - signs[other].changed > silence)
        return note(
            {static_cast<int>(other), fmt::format("rank {} has given no sign of life for {:.3g} s", other, seconds)});
  }

  /// With the lock held: the first failure stays.
  void note(Failure found) {
    if (failure) return;
    failure = std::move(found);
    changed.notify_all();
  }

  /// Whether every other rank has left, or will not any more.
  bool alone() const {
    for (std::size_t other = 0; other < signs.size(); ++other) {
      const bool gone = static_cast<int>(other) == rank || signs[other].last == goodbye ||
                        Clock::now() - signs[other].changed > silence ||
                        (failure && failure->rank == static_cast<int>(other));
      if (!gone) return false;
    }
    return true;
  }

  const std::unique_ptr<SharedKeys> keys;
  const int rank;
  const Milliseconds silence;
  std::vector<std::string> beatKeys;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<Sign> signs;
  Clock::time_point contact = Clock::now();
  std::optional<Failure> failure;
  std::set<const std::function<void()>*> interruptions;
  bool published = false, leaving = false, saidGoodbye = false, unreachable = false, stopped = false, talking = false,
       guarding = false;
};

Liveness::Liveness(std::unique_ptr<SharedKeys> keys, int rank, int size, Milliseconds silence)
    : state_(std::make_shared<State>(std::move(keys), rank, size, silence)) {
  state_->keys->set(beatKey(rank), "0");
}

Liveness::~Liveness() {
  std::unique_lock lock(state_->mutex);
  state_->stopped = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, 1s, [this] { return !state_->talking && !state_->guarding; });
}

void Liveness::watch() {
  const std::scoped_lock lock(state_->mutex);
  state_->contact = Clock::now();
  for (auto& sign : state_->signs) sign.changed = Clock::now();
  state_->talking = state_->guarding = true;
  std::thread([state = state_] { state->talk(); }).detach();
  std::thread([state = state_] { state->guard(); }).detach();
}

bool Liveness::hasFailed() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->failure.has_value();
}

void Liveness::fail(int rank, const std::string& reason) noexcept {
  try {
    const std::scoped_lock lock(state_->mutex);
    state_->note({rank, fmt::format("rank {} failed: {}", rank, reason)});
  } catch (const std::exception&) {
    // Without memory for a message the others will notice the silence.
  }
}

std::string Liveness::explain(int suspect, const std::string& trouble) {
  std::unique_lock lock(state_->mutex);
  const auto patience = suspect < 0 ? state_->silence + moment : moment;  // until it is known who is silent
  state_->changed.wait_for(lock, patience, [this] { return state_->failure.has_value(); });
  if (!state_->failure) state_->note({suspect, trouble});
  return state_->failure->text;
}

void Liveness::leave(Milliseconds linger) {
  std::unique_lock lock(state_->mutex);
  if (!state_->talking) return;
  state_->leaving = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, 2s, [this] {
    return !state_->talking || (state_->saidGoodbye && (state_->published || !state_->failure));
  });
  state_->changed.wait_for(lock, linger, [this] { return !state_->talking || state_->alone(); });
}

Liveness::Interruption::Interruption(Liveness& liveness, std::function<void()> interrupt)
    : liveness_(liveness), interrupt_(std::move(interrupt)) {
  const std::scoped_lock lock(liveness_.state_->mutex);
  liveness_.state_->interruptions.insert(&interrupt_);
}

Liveness::Interruption::~Interruption() {
  const std::scoped_lock lock(liveness_.state_->mutex);
  liveness_.state_->interruptions.erase(&interrupt_);
}

}  // namespace retrograd
