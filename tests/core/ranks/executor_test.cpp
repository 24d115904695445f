#include "core/ranks/executor.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/schedule/schedule_kinds.h"
#include "core/schedule/schedule_lowering.h"
#include "tests/core/ranks/linear_stages.h"

namespace retrograd {
namespace {

using test::LinearStages;

/// A tensor on its way past the messages.
struct DirectTensor {
  std::vector<std::byte> bytes;
  bool arrived = false;
};

/// Ranks as threads of one process.
struct Network {
  std::map<std::pair<int, int>, std::deque<DirectTensor>> direct;  // from, to; none is ever removed
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::tuple<int, int, int>, std::deque<std::shared_ptr<const Bytes>>> messages;  // from, to, tag
  std::string failure;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(Network& network, int rank, int size) : network_(network), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  struct Sent final : Transfer {
    void wait() override {}
  };
  struct Received final : Transfer {
    Received(Network& network, std::tuple<int, int, int> key, std::shared_ptr<Bytes> bytes)
        : network_(network), key_(key), bytes_(std::move(bytes)) {}
    void wait() override {
      std::unique_lock lock(network_.mutex);
      auto& queue = network_.messages[key_];
      network_.changed.wait(lock, [&] { return !queue.empty() || !network_.failure.empty(); });
      if (queue.empty()) throw Error(ErrorCode::execution, network_.failure);
      if (queue.front()->size() != bytes_->size()) throw Error(ErrorCode::internal, "another number of bytes");
      *bytes_ = *queue.front();
      queue.pop_front();
    }
    Network& network_;
    std::tuple<int, int, int> key_;
    std::shared_ptr<Bytes> bytes_;
  };

  std::unique_ptr<Transfer> send(std::shared_ptr<const Bytes> bytes, int to, int tag) override {
    const std::scoped_lock lock(network_.mutex);
    network_.messages[{rank_, to, tag}].push_back(std::move(bytes));
    network_.changed.notify_all();
    return std::make_unique<Sent>();
  }
  std::unique_ptr<Transfer> receive(std::shared_ptr<Bytes> bytes, int from, int tag) override {
    return std::make_unique<Received>(network_, std::tuple(from, rank_, tag), std::move(bytes));
  }
  void sumOverRanks(std::span<std::byte>, DType) override {}
  LinkResult linkDevices(const std::optional<Device>&, const RankPairs&) override {
    return {nullptr, "threads have none"};
  }
  void barrier() override {}
  void fail(const std::string& reason) noexcept override {
    const std::scoped_lock lock(network_.mutex);
    if (network_.failure.empty()) network_.failure = "rank " + std::to_string(rank_) + " failed: " + reason;
    network_.changed.notify_all();
  }

 private:
  Network& network_;
  int rank_, size_;
};

constexpr Device someGpu{Device::Type::cuda, 0};

/// As NCCL between two ranks: no tags, what is received first is what was sent first, and a send is over when its
/// tensor has arrived. The memory of its "GPU" is this process's.
class ThreadLink final : public DeviceLink {
 public:
  ThreadLink(Network& network, int rank) : network_(network), rank_(rank) {}
  Device device() const override { return someGpu; }
  std::string carrier() const override { return "threads"; }
  TensorData allocate(const TensorMeta& meta) override {
    auto data = test::tensorOf(test::Numbers(static_cast<std::size_t>(meta.elements())), someGpu);
    EXPECT_EQ(data.meta.sizes, meta.sizes);
    return data;
  }
  std::unique_ptr<Transfer> send(const TensorData& tensor, int to) override {
    const std::scoped_lock lock(network_.mutex);
    auto& queue = network_.direct[{rank_, to}];
    queue.push_back({{tensor.data, tensor.data + tensor.bytes}, false});
    network_.changed.notify_all();
    return std::make_unique<Leg>(network_, queue, queue.size() - 1, TensorData());
  }
  std::unique_ptr<Transfer> receive(const TensorData& tensor, int from) override {
    const std::scoped_lock lock(network_.mutex);
    return std::make_unique<Leg>(network_, network_.direct[{from, rank_}], received_[from]++, tensor);
  }
  TensorData sumOverRanks(const std::optional<TensorData>& term, const TensorMeta&) override { return term.value(); }

 private:
  struct Leg final : Transfer {
    Leg(Network& network, std::deque<DirectTensor>& queue, std::size_t number, TensorData target)
        : network_(network), queue_(queue), number_(number), target_(std::move(target)) {}
    void wait() override {
      std::unique_lock lock(network_.mutex);
      const auto isReady = [&] { return target_.data ? queue_.size() > number_ : queue_[number_].arrived; };
      network_.changed.wait(lock, [&] { return isReady() || !network_.failure.empty(); });
      if (!isReady()) throw Error(ErrorCode::execution, network_.failure);
      if (!target_.data) return;
      auto& tensor = queue_[number_];
      if (tensor.bytes.size() != target_.bytes) throw Error(ErrorCode::internal, "another number of bytes");
      std::memcpy(const_cast<std::byte*>(target_.data), tensor.bytes.data(), target_.bytes);
      tensor.arrived = true;
      network_.changed.notify_all();
    }
    Network& network_;
    std::deque<DirectTensor>& queue_;
    std::size_t number_;
    TensorData target_;
  };

  Network& network_;
  int rank_;
  std::map<int, std::size_t> received_;
};

struct RankResult {
  std::map<std::int32_t, double> gradients;
  std::vector<ExecutedAction> actions;
  std::string error;
  bool idle = false;
};

std::vector<RankResult> runAll(const Schedule& schedule, std::function<void(std::int32_t, std::int32_t)> onForward = {},
                               bool linked = false) {
  Network network;
  const auto size = static_cast<int>(schedule.ranks.size());
  std::vector<RankResult> results(schedule.ranks.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      auto& result = results[static_cast<std::size_t>(rank)];
      ThreadTransport transport(network, rank, size);
      ThreadLink link(network, rank);
      LinearStages stages(schedule, linked ? someGpu : Device());
      stages.onForward = onForward;
      try {
        result.actions = runRank(schedule, transport, stages, {}, linked ? &link : nullptr);
      } catch (const std::exception& error) {
        result.error = error.what();
      }
      result.gradients = stages.gradients;
      result.idle = stages.idle();
    });
  for (auto& thread : threads) thread.join();
  for (const auto& [key, queue] : network.messages) {
    if (network.failure.empty()) EXPECT_TRUE(queue.empty()) << "a message that nobody has read";
  }
  EXPECT_EQ(network.direct.empty(), !linked || schedule.ranks.size() == 1);
  return results;
}

void expectRightGradients(const Schedule& schedule, bool linked = false) {
  std::map<std::int32_t, double> all;
  for (auto& result : runAll(schedule, {}, linked)) {
    EXPECT_EQ(result.error, "");
    EXPECT_TRUE(result.idle);
    all.merge(result.gradients);
    EXPECT_TRUE(result.gradients.empty()) << "a stage has run on two ranks";
  }
  EXPECT_EQ(all, test::expectedGradients(schedule));
}

// Holds P64: the lowered form of every schedule computes what one process would, also where stages of one rank hand
// over directly.
TEST(Executor, everyScheduleMakesTheGradientsOfOneProcess) {
  for (const auto& kind : scheduleKinds())
    for (const std::int32_t ranks : {1, 2, 3, 4})
      for (const std::int32_t microbatches : {1, 3, 8}) {
        if (kind.name == "DualPipeV" && microbatches < 2 * ranks) continue;
        SCOPED_TRACE(std::string(kind.name) + " " + std::to_string(ranks) + " ranks, " + std::to_string(microbatches) +
                     " microbatches");
        LoweringOptions options;
        options.mergeBackward = microbatches == 3;
        const auto schedule = lowerSchedule(makeSchedule(kind, ranks, microbatches), options);
        expectRightGradients(schedule);
        if (microbatches == 8) expectRightGradients(schedule, true);
      }
}

// Holds P58: a value that several later stages read is sent to each, and its gradients are summed.
TEST(Executor, skipConnectionsAreTrained) {
  for (const char* name : {"GPipe", "1F1B", "InterleavedZeroBubble"}) {
    auto schedule = makeSchedule(*findScheduleKind(name), 3, 4);
    schedule.edges = schedule.allEdges();
    schedule.edges.push_back({0, 2});
    if (schedule.stages > 3) schedule.edges.insert(schedule.edges.end(), {{0, 3}, {1, 4}, {2, 5}});
    expectRightGradients(lowerSchedule(schedule));
    expectRightGradients(lowerSchedule(schedule), true);
  }
}

// A receiver that reads in another order than the one in which it is sent to, as a schedule from a file may have it.
TEST(Executor, tensorsOfALinkAreAskedForInTheOrderOfTheSender) {
  const auto schedule = readScheduleCsv(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0B1,0RECV_B0,0B0\n"
      "1RECV_F1,1F1,1RECV_F0,1F0,1B1,1SEND_B1,1B0,1SEND_B0",
      "s");
  expectRightGradients(schedule);
  expectRightGradients(schedule, true);
}

TEST(Executor, actionsRunInTheOrderOfTheRow) {
  const auto schedule = lowerSchedule(makeSchedule(*findScheduleKind("DualPipeV"), 2, 4));
  const auto results = runAll(schedule);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    std::vector<Action> expected, ran;
    for (const auto& action : schedule.ranks[rank]) {
      if (action.kind == ActionKind::overlap) expected.insert(expected.end(), action.parts.begin(), action.parts.end());
      else expected.push_back(action);
    }
    double last = 0;
    for (const auto& executed : results[rank].actions) {
      ran.push_back(executed.action);
      EXPECT_GE(executed.start, last);
      EXPECT_GE(executed.end, executed.start);
      last = executed.end;
    }
    EXPECT_EQ(ran, expected);
  }
}

TEST(Executor, aFailureNamesItsActionAndEndsTheOthers) {
  const auto schedule = lowerSchedule(makeSchedule(*findScheduleKind("1F1B"), 3, 4));
  const auto results = runAll(schedule, [](std::int32_t stage, std::int32_t microbatch) {
    if (stage == 1 && microbatch == 2) throw Error(ErrorCode::execution, "out of memory", "aten.mm");
  });
  EXPECT_EQ(results[1].error, "rank 1: action 11 (1F2): aten.mm: out of memory");
  for (const std::size_t rank : {0, 2})
    EXPECT_NE(results[rank].error.find("rank 1 failed: action 11 (1F2): aten.mm: out of memory"), std::string::npos)
        << results[rank].error;
}

TEST(Executor, schedulesThatCannotRunHereAreRefused) {
  Network network;
  ThreadTransport transport(network, 0, 2);
  const auto refusal = [&](const Schedule& schedule) -> std::string {
    LinearStages stages(schedule);
    try {
      runRank(schedule, transport, stages);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal(lowerSchedule(makeSchedule(*findScheduleKind("GPipe"), 3, 2))),
            "GPipe: the schedule is for 3 ranks, 2 run");
  EXPECT_EQ(refusal(makeSchedule(*findScheduleKind("GPipe"), 2, 2)),
            "GPipe: the schedule has no transfers: lower it first");
  EXPECT_NE(refusal(readScheduleCsv("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0", "s"))
                .find("rank 0: action 1 (0UNSHARD): parameters are not sharded"),
            std::string::npos);
  EXPECT_NE(refusal(readScheduleCsv("0F0,0B0,0SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0", "s")).find("deadlock"),
            std::string::npos);
}

}  // namespace
}  // namespace retrograd
