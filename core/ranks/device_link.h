#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/tensor_data.h"

namespace retrograd {

class Transfer;

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

}  // namespace retrograd
