#include "core/ranks/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <span>

#include "core/base/error.h"
#include "core/ranks/message.h"
#include "core/ranks/traffic.h"
#include "core/schedule/schedule_check.h"

namespace retrograd {
namespace {

constexpr std::uint64_t mostBytes = std::uint64_t{1} << 40;

/// A message being sent: how long it is, then the message, then the tensors that lie on the device of the link, if
/// there is one.
class Outgoing {
 public:
  /// Takes `tag` and the next one. Throws as Transport and encodeMessage().
  Outgoing(Transport& transport, DeviceLink* link, const TensorMap& tensors, int to, int tag) {
    Message message;
    for (const auto& [name, tensor] : tensors) {
      if (link && tensor.memory == link->device()) message.announced.emplace(name, tensor.meta);
      else message.tensors.emplace(name, tensor);
    }
    auto bytes = std::make_shared<Bytes>(encodeMessage(message));
    auto length = std::make_shared<Bytes>(sizeof(std::uint64_t));
    const std::uint64_t count = bytes->size();
    std::memcpy(length->data(), &count, sizeof count);
    transfers_.push_back(transport.send(std::move(length), to, tag));
    transfers_.push_back(transport.send(std::move(bytes), to, tag + 1));
    for (const auto& [name, meta] : message.announced) transfers_.push_back(link->send(tensors.at(name), to));
  }
  void wait() {
    for (auto& transfer : transfers_) transfer->wait();
  }

 private:
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

/// A message being received. Its length is asked for at once, the rest when it is opened.
class Incoming {
 public:
  Incoming(Transport& transport, DeviceLink* link, int from, int tag)
      : transport_(transport),
        link_(link),
        from_(from),
        tag_(tag),
        length_(std::make_shared<Bytes>(sizeof(std::uint64_t))),
        first_(transport.receive(length_, from, tag)) {}
  /// Waits for the message, and asks for the tensors that it announces. Over a link all messages of a rank have to be
  /// opened in the order in which they were sent. Does nothing the second time. Throws as Transport and
  /// decodeMessage().
  void open() {
    if (isOpen_) return;
    isOpen_ = true;
    first_->wait();
    std::uint64_t count = 0;
    std::memcpy(&count, length_->data(), sizeof count);
    if (count > mostBytes) badInput(fmt::format("rank {} announces a message of {} bytes", from_, count));
    auto bytes = std::make_shared<Bytes>(count);
    transport_.receive(bytes, from_, tag_ + 1)->wait();
    auto message = decodeMessage(bytes);
    tensors_ = std::move(message.tensors);
    if (!message.announced.empty() && !link_)
      badInput(fmt::format("rank {} sends tensors past its messages, and there is no link", from_));
    for (const auto& [name, meta] : message.announced) {
      const auto& tensor = tensors_[name] = link_->allocate(meta);
      transfers_.push_back(link_->receive(tensor, from_));
    }
  }
  bool isOpen() const { return isOpen_; }
  /// Opens it, and waits for all tensors.
  TensorMap take() {
    open();
    for (auto& transfer : transfers_) transfer->wait();
    return std::move(tensors_);
  }

 private:
  Transport& transport_;
  DeviceLink* link_;
  int from_, tag_;
  std::shared_ptr<Bytes> length_;
  std::unique_ptr<Transfer> first_;
  bool isOpen_ = false;
  TensorMap tensors_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

using Clock = std::chrono::steady_clock;

class RankRun {
 public:
  RankRun(const Schedule& schedule, Transport& transport, DeviceLink* link, StageRunner& runner,
          const Progress& progress)
      : schedule_(schedule),
        transport_(transport),
        link_(link),
        runner_(runner),
        progress_(progress),
        dependencies_(schedule),
        traffic_(link ? trafficOf(schedule) : Traffic()) {}

  std::vector<ExecutedAction> run() {
    start_ = Clock::now();
    const auto& row = schedule_.ranks[transport_.rank()];
    for (std::size_t i = 0; i < row.size(); ++i) {
      progress_.at("running the schedule", static_cast<double>(i) / static_cast<double>(row.size()));
      runAt(i, row[i]);
    }
    while (!outgoing_.empty()) finishFirst();
    return std::move(executed_);
  }

 private:
  void runAt(std::size_t position, const Action& action) {
    try {
      for (const auto& part : action.parts) runOne(part);
      if (action.kind != ActionKind::overlap) runOne(action);
    } catch (const Error& error) {
      throw error.at(fmt::format("action {} ({})", position + 1, text(action)));
    } catch (const std::exception& error) {
      throw Error(ErrorCode::execution, messageOf(error), fmt::format("action {} ({})", position + 1, text(action)));
    }
  }

  void runOne(const Action& action) {
    const auto begin = seconds();
    perform(action);
    executed_.push_back({action, begin, seconds()});
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void perform(const Action& action) {
    const auto stage = action.stage, microbatch = action.microbatch;
    switch (action.kind) {
      case ActionKind::forward:
        return deliver(true, stage, microbatch, runner_.forward(stage, microbatch, collect(true, stage, microbatch)));
      case ActionKind::backward:
        return deliver(false, stage, microbatch,
                       runner_.backward(stage, microbatch, collect(false, stage, microbatch)));
      case ActionKind::backwardInput:
        return deliver(false, stage, microbatch,
                       runner_.backwardInput(stage, microbatch, collect(false, stage, microbatch)));
      case ActionKind::backwardWeight: return runner_.backwardWeight(stage, microbatch);
      case ActionKind::sendForward: return send(true, stage, microbatch);
      case ActionKind::sendBackward: return send(false, stage, microbatch);
      case ActionKind::recvForward: return receive(true, stage, microbatch);
      case ActionKind::recvBackward: return receive(false, stage, microbatch);
      case ActionKind::waitSendForward: return waitForSends(true, stage, microbatch);
      case ActionKind::waitSendBackward: return waitForSends(false, stage, microbatch);
      case ActionKind::reduceGrad:
      case ActionKind::waitReduceGrad:
        return;  // sumOverRanks, after the row: only there do all ranks come by in one order
      case ActionKind::unshard:
      case ActionKind::reshard: badUse("parameters are not sharded here");
      case ActionKind::overlap: badUse("an overlap in an overlap");
    }
  }

  const std::vector<std::int32_t>& givers(bool forward, std::int32_t stage) const {
    return retrograd::givers(dependencies_, forward, stage);
  }
  const std::vector<std::int32_t>& takers(bool forward, std::int32_t stage) const {
    return retrograd::takers(dependencies_, forward, stage);
  }
  int rankOf(std::int32_t stage) const { return schedule_.rankOfStage[stage]; }

  /// What the stage reads: handed over on this rank, or received.
  StageValues collect(bool forward, std::int32_t stage, std::int32_t microbatch) {
    StageValues values;
    for (const auto giver : givers(forward, stage)) {
      const Border border{forward, giver, stage, microbatch};
      if (dependencies_.together(stage, giver)) {
        values[giver] = std::move(made_.at(border));
        made_.erase(border);
      } else {
        values[giver] = take(border);
      }
    }
    return values;
  }

  TensorMap take(const Border& border) {
    auto& wanted = incoming(border);
    if (link_) openInOrder(rankOf(border.from), wanted);
    auto tensors = wanted.take();
    incoming_.erase(border);
    return tensors;
  }

  /// Over a link tensors come in the order in which they were sent, so what was sent before them is asked for first,
  /// also where this rank reads it later.
  void openInOrder(int from, const Incoming& wanted) {
    const auto& order = traffic_.at({from, transport_.rank()});
    for (auto& next = opened_[from]; !wanted.isOpen(); ++next) incoming(order.at(next)).open();
  }

  Incoming& incoming(const Border& border) {
    auto& message = incoming_[border];
    if (!message) message = std::make_unique<Incoming>(transport_, link_, rankOf(border.from), tag(border));
    return *message;
  }

  /// Keeps what a stage made until it is sent or read.
  void deliver(bool forward, std::int32_t stage, std::int32_t microbatch, StageValues values) {
    for (const auto taker : takers(forward, stage))
      made_[{forward, stage, taker, microbatch}] = std::move(values[taker]);
  }

  void send(bool forward, std::int32_t stage, std::int32_t microbatch) {
    for (const auto taker : takers(forward, stage)) {
      if (dependencies_.together(stage, taker)) continue;
      const Border border{forward, stage, taker, microbatch};
      outgoing_.emplace_back(
          border, std::make_unique<Outgoing>(transport_, link_, made_.at(border), rankOf(taker), tag(border)));
      made_.erase(border);
    }
    // Memory of old sends comes back here: a receiver that is this far behind is rare, and then waiting is right.
    while (outgoing_.size() > mostOutgoing) finishFirst();
  }

  void receive(bool forward, std::int32_t stage, std::int32_t microbatch) {
    for (const auto giver : givers(forward, stage)) {
      const Border border{forward, giver, stage, microbatch};
      if (!dependencies_.together(stage, giver)) incoming(border);
    }
  }

  void waitForSends(bool forward, std::int32_t stage, std::int32_t microbatch) {
    for (auto it = outgoing_.begin(); it != outgoing_.end();) {
      const auto& border = it->first;
      if (border.forward != forward || border.from != stage || border.microbatch != microbatch) {
        ++it;
        continue;
      }
      it->second->wait();
      it = outgoing_.erase(it);
    }
  }

  void finishFirst() {
    outgoing_.front().second->wait();
    outgoing_.pop_front();
  }

  /// The same number on both sides: two for each border, its length's and its bytes'.
  int tag(const Border& border) const {
    const auto stages = std::int64_t{schedule_.stages};
    const auto edge = (border.forward ? 0 : stages * stages) + border.from * stages + border.to;
    const auto tag = 2 * (edge * schedule_.microbatches + border.microbatch);
    if (tag >= std::numeric_limits<int>::max()) badUse("too many stages and microbatches to number their messages");
    return static_cast<int>(tag);
  }

  static constexpr std::size_t mostOutgoing = 64;

  const Schedule& schedule_;
  Transport& transport_;
  DeviceLink* link_;
  StageRunner& runner_;
  const Progress& progress_;
  ScheduleDependencies dependencies_;
  Clock::time_point start_;
  std::map<Border, TensorMap> made_;  // not yet read or sent
  std::map<Border, std::unique_ptr<Incoming>> incoming_;
  Traffic traffic_;                    // with a link
  std::map<int, std::size_t> opened_;  // with a link, how many of a rank's messages
  std::deque<std::pair<Border, std::unique_ptr<Outgoing>>> outgoing_;
  std::vector<ExecutedAction> executed_;
};

/// Without transfers a schedule can be valid, and yet leave a stage without its inputs.
void requireTransfers(const Schedule& schedule) {
  const ScheduleDependencies dependencies(schedule);
  const auto edges = schedule.allEdges();
  const bool crosses = std::any_of(edges.begin(), edges.end(), [&](const StageEdge& edge) {
    return !dependencies.together(edge.source, edge.consumer);
  });
  if (crosses && !dependencies.hasTransfers()) badUse("the schedule has no transfers: lower it first", schedule.name);
}

}  // namespace

std::vector<ExecutedAction> runRank(const Schedule& schedule, Transport& transport, StageRunner& runner,
                                    const Progress& progress, DeviceLink* link) {
  if (std::ssize(schedule.ranks) != transport.size())
    badUse(fmt::format("the schedule is for {} ranks, {} run", schedule.ranks.size(), transport.size()), schedule.name);
  requireValid(schedule);
  requireTransfers(schedule);
  try {
    RankRun run(schedule, transport, link, runner, progress);
    return run.run();
  } catch (const Error& error) {
    transport.fail(messageOf(error));
    throw error.at(fmt::format("rank {}", transport.rank()));
  }
}

namespace {

TensorData summed(Transport& transport, const TensorData* term, const TensorMeta& meta) {
  auto sum = std::make_shared<Bytes>(meta.bytes());
  if (term) packDense(*term, *sum);
  transport.sumOverRanks(*sum, meta.dtype);
  TensorData result;
  result.meta.dtype = meta.dtype;
  result.meta.sizes = meta.sizes;
  result.meta.strides = contiguousStrides(meta.sizes);
  result.data = sum->data();
  result.bytes = sum->size();
  result.owner = sum;
  return result;
}

}  // namespace

void sumOverRanks(Transport& transport, TensorMap& tensors, const std::map<std::string, TensorMeta>& shared,
                  DeviceLink* link) {
  for (const auto& [name, meta] : shared) {
    const auto found = tensors.find(name);
    const auto* term = found == tensors.end() ? nullptr : &found->second;
    if (term && (term->meta.sizes != meta.sizes || term->meta.dtype != meta.dtype))
      badUse("is not of the dtype and sizes that all ranks have agreed on", name);
    tensors[name] =
        link ? link->sumOverRanks(term ? std::optional(*term) : std::nullopt, meta) : summed(transport, term, meta);
  }
}

namespace {

/// Rank 0's bytes: all others add zeros.
void fromFirst(Transport& transport, std::vector<std::int64_t>& numbers) {
  if (transport.rank() > 0) std::fill(numbers.begin(), numbers.end(), 0);
  transport.sumOverRanks(std::as_writable_bytes(std::span(numbers)), DType::i64);
}

}  // namespace

std::vector<std::size_t> fromFirstRank(Transport& transport, const std::vector<std::size_t>& numbers) {
  std::vector<std::int64_t> count{std::ssize(numbers)};
  fromFirst(transport, count);
  std::vector<std::int64_t> shared(numbers.begin(), numbers.end());
  shared.resize(count.front());
  if (!shared.empty()) fromFirst(transport, shared);
  return {shared.begin(), shared.end()};
}

}  // namespace retrograd
