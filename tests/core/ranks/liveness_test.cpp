#include "core/ranks/liveness.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

namespace retrograd {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The store of a run within one process. It can be taken away, as with the process that keeps it, or stop to answer.
struct Store {
  std::mutex mutex;
  std::map<std::string, std::string> keys;
  std::atomic<bool> gone = false, stuck = false;
};

class KeysOf final : public SharedKeys {
 public:
  explicit KeysOf(std::shared_ptr<Store> store) : store_(std::move(store)) {}
  void set(const std::string& key, const std::string& value) override {
    const auto lock = enter();
    store_->keys[key] = value;
  }
  std::string setOnce(const std::string& key, const std::string& value) override {
    const auto lock = enter();
    return store_->keys.try_emplace(key, value).first->second;
  }
  std::optional<std::string> find(const std::string& key) override {
    const auto lock = enter();
    const auto found = store_->keys.find(key);
    return found == store_->keys.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> all(const std::vector<std::string>& keys) override {
    const auto lock = enter();
    std::vector<std::string> values;
    for (const auto& key : keys) values.push_back(store_->keys.at(key));
    return values;
  }

 private:
  std::unique_lock<std::mutex> enter() {
    while (store_->stuck) std::this_thread::sleep_for(10ms);
    if (store_->gone) throw std::runtime_error("connection reset");
    return std::unique_lock(store_->mutex);
  }
  std::shared_ptr<Store> store_;
};

struct Ranks {
  explicit Ranks(int size, std::chrono::milliseconds silence = 60s) {
    for (int rank = 0; rank < size; ++rank)
      all.push_back(std::make_unique<Liveness>(std::make_unique<KeysOf>(store), rank, size, silence));
    for (auto& rank : all) rank->watch();
  }
  ~Ranks() { store->stuck = false; }
  std::shared_ptr<Store> store = std::make_shared<Store>();
  std::vector<std::unique_ptr<Liveness>> all;
};

bool becomesTrue(const std::function<bool()>& condition, std::chrono::milliseconds within = 8s) {
  for (const auto until = Clock::now() + within; Clock::now() < until; std::this_thread::sleep_for(10ms))
    if (condition()) return true;
  return condition();
}

TEST(Liveness, aFailureThatIsSaidReachesAll) {
  Ranks ranks(3);
  std::this_thread::sleep_for(600ms);
  for (auto& rank : ranks.all) EXPECT_FALSE(rank->hasFailed());
  ranks.all[1]->fail(1, "its data is bad");
  for (auto& rank : ranks.all) {
    ASSERT_TRUE(becomesTrue([&] { return rank->hasFailed(); }));
    EXPECT_EQ(rank->explain(2, "rank 2 is gone"), "rank 1 failed: its data is bad");
  }
}

TEST(Liveness, aConnectionThatBrokeIsExplainedByWhoFailedElseByItself) {
  Ranks ranks(3);
  EXPECT_EQ(ranks.all[0]->explain(2, "rank 2 is gone"), "rank 2 is gone");
  ASSERT_TRUE(becomesTrue([&] { return ranks.all[1]->hasFailed(); }));
  EXPECT_EQ(ranks.all[1]->explain(0, "rank 0 is gone"), "rank 2 is gone");
}

TEST(Liveness, silenceIsAFailureAndLeavingIsNot) {
  Ranks ranks(3, 2500ms);
  ranks.all[1]->leave(0ms);
  std::this_thread::sleep_for(4s);
  EXPECT_FALSE(ranks.all[0]->hasFailed());
  ranks.all[2].reset();  // stops without a word, as a process that is killed
  ASSERT_TRUE(becomesTrue([&] { return ranks.all[0]->hasFailed(); }));
  EXPECT_EQ(ranks.all[0]->explain(-1, {}), "rank 2 has given no sign of life for 2.5 s");
}

TEST(Liveness, theStoreMayGoOrStopToAnswer) {
  Ranks gone(2);
  gone.store->gone = true;
  ASSERT_TRUE(becomesTrue([&] { return gone.all[1]->hasFailed(); }));
  EXPECT_EQ(gone.all[1]->explain(-1, {}), "rank 0, which keeps the store of the ranks, is gone");
  Ranks stuck(2, 1000ms);
  stuck.store->stuck = true;
  ASSERT_TRUE(becomesTrue([&] { return stuck.all[1]->hasFailed(); }));
  EXPECT_EQ(stuck.all[1]->explain(-1, {}), "rank 0, which keeps the store of the ranks, has not answered for 1 s");
}

TEST(Liveness, whoWaitsIsInterrupted) {
  Ranks ranks(2);
  std::atomic<bool> interrupted = false;
  {
    const Liveness::Interruption interruption(*ranks.all[0], [&] { interrupted = true; });
    std::this_thread::sleep_for(300ms);
    EXPECT_FALSE(interrupted);
    ranks.all[1]->fail(1, "x");
    EXPECT_TRUE(becomesTrue([&] { return interrupted.load(); }));
  }
  interrupted = false;
  std::this_thread::sleep_for(300ms);
  EXPECT_FALSE(interrupted);
}

TEST(Liveness, theKeeperOfTheStoreStaysUntilTheOthersHaveLeft) {
  Ranks ranks(2);
  std::thread other([&] {
    std::this_thread::sleep_for(800ms);
    ranks.all[1]->leave(0ms);
  });
  const auto begin = Clock::now();
  ranks.all[0]->leave(20s);
  const auto waited = Clock::now() - begin;
  other.join();
  EXPECT_GE(waited, 700ms);
  EXPECT_LT(waited, 15s);
}

}  // namespace
}  // namespace retrograd
