#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/tensor_meta.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

using Bytes = std::vector<std::byte>;

/// Bytes under way to or from another rank.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Until the bytes are there, or sent. Throws Error(execution) when a rank failed or time is up.
  virtual void wait() = 0;
};

/// The way of tensors from the memory of one rank's device into that of another's, past the messages of the host: NCCL
/// between GPUs, Gloo between ranks on the CPU. There are no tags: what a rank sends to another has to be received in
/// that order. Not to be used by several threads at once; nothing waits for ever, as Transport says.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;
  /// Where this rank's tensors lie.
  virtual Device device() const = 0;
  /// What carries them: "NCCL", "Gloo".
  virtual std::string carrier() const = 0;

  /// Dense memory of device() for a tensor of this dtype and these sizes.
  virtual TensorData allocate(const TensorMeta& meta) = 0;
  /// A tensor of device(), dense in row-major order; the link keeps its memory as long as it uses it.
  virtual std::unique_ptr<Transfer> send(const TensorData& tensor, int to) = 0;
  /// Into what allocate() gave.
  virtual std::unique_ptr<Transfer> receive(const TensorData& tensor, int from) = 0;
  /// The sum over all ranks, on device(); a rank without a term adds nothing. All ranks call it in one order, with the
  /// same dtype and sizes.
  virtual TensorData sumOverRanks(const std::optional<TensorData>& term, const TensorMeta& meta) = 0;
};

/// What a rank has for a link.
struct LinkOffer {
  std::optional<Device> device;  ///< where all of its stages run; none where they run on several
  std::string unit;              ///< of a GPU: what it alone is called
  std::string trouble;           ///< why its GPU cannot take part
};
std::string text(const LinkOffer& offer);
/// Throws Error(badInput) for what text() has not made.
LinkOffer linkOffer(const std::string& text);

/// Why ranks that offer this, in their order, cannot be linked; empty where they can.
std::string linkRefusal(const std::vector<LinkOffer>& offers);

/// Ranks one of which sends to the other.
using RankPairs = std::vector<std::pair<int, int>>;

/// A link, or why there is none.
struct LinkResult {
  std::unique_ptr<DeviceLink> link;
  std::string refusal;
};

/// How ranks reach each other: every rank of a run has one. Not to be used by several threads at once.
///
/// Nothing waits for ever: when a rank fails, dies or is silent for too long, or time is up, whatever waits on any
/// other rank throws Error(execution) naming the rank and the reason.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Messages between two ranks with one tag arrive in the order in which they were sent; both sides know the number of
  /// bytes. The transport keeps the memory as long as it uses it.
  virtual std::unique_ptr<Transfer> send(std::shared_ptr<const Bytes> bytes, int to, int tag) = 0;
  virtual std::unique_ptr<Transfer> receive(std::shared_ptr<Bytes> bytes, int from, int tag) = 0;

  /// Adds up `elements` of that dtype over all ranks, in place. All ranks call it in one order, with the same number of
  /// elements.
  virtual void sumOverRanks(std::span<std::byte> elements, DType dtype) = 0;
  /// Until every rank is here.
  virtual void barrier() = 0;

  /// Links the devices on which the ranks compute, `device` on this one (none: on several), so that tensors need not
  /// pass through messages. All ranks call it at one point, with the same `pairs`: who sends to whom. Where they cannot
  /// be linked, the refusal says why, the same on all. The transport outlives the link.
  virtual LinkResult linkDevices(const std::optional<Device>& device, const RankPairs& pairs) = 0;

  /// Lets the others know that this rank gives up, and why; the first rank to say so is the one that they report.
  virtual void fail(const std::string& reason) noexcept = 0;
};

/// Where the ranks of a run meet, as torchrun says it.
struct Rendezvous {
  int rank = 0, size = 1;
  int localRank = 0;    ///< among those of this machine
  std::string address;  ///< of rank 0's machine
  int port = 0;
  std::chrono::milliseconds meeting{60'000};     ///< for all ranks to come
  std::chrono::milliseconds operation{300'000};  ///< for any transfer
  std::chrono::milliseconds silence{8'000};      ///< after which a rank that gives no sign of life counts as dead
};

/// From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; LOCAL_RANK where it is set, else RANK. Throws Error(badUse)
/// naming the variable that is missing or no number.
Rendezvous rendezvousFromEnvironment();

/// Meets the other ranks and connects to them over TCP with LibTorch's Gloo backend. Throws Error(execution) where they
/// do not come in time.
std::unique_ptr<Transport> connectRanks(const Rendezvous& rendezvous);

}  // namespace retrograd
