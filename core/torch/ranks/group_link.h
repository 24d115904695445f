#pragma once
// Tensors from rank to rank over c10d. Only the units that use c10d include this.
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <memory>

#include "core/ranks/transport.h"
#include "core/torch/ranks/group_wait.h"

namespace retrograd {

/// c10d's groups of a link. Two, because NCCL's transfers between two ranks go one after the other: one that waits for
/// its receiver must not hold up one that goes the other way.
struct LinkGroups {
  c10::intrusive_ptr<c10d::Backend> up;    ///< what goes to ranks of a higher number, and what all ranks do together
  c10::intrusive_ptr<c10d::Backend> down;  ///< what goes to ranks of a lower number
};

/// A link over c10d, on any device that the groups can send from. All ranks make one together: `pairs`, the same on
/// all, are connected here, in one order, because NCCL's first transfer between two ranks waits for both to come.
/// `wait` outlives it.
std::unique_ptr<DeviceLink> linkOverGroups(LinkGroups groups, Device device, const RankPairs& pairs,
                                           const GroupWait& wait);

}  // namespace retrograd
