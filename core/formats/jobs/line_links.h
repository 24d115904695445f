#pragma once
#include <cstddef>
#include <map>
#include <string>

#include "core/formats/fx/fx_graph.h"

namespace retrograd::jobs {

/// The op of a forward graph that an op of the backward comes from.
struct ForwardLink {
  std::string node;
  std::string op;  ///< "torch.ops.aten.mm.default"; empty where `node` is a tangent
};

/// For each node of a backward graph that comes of a line of Python the forward's op of that line, as
/// ListingOptions::origins. Where a line has several ops, the one of the same name is taken, else the last: the text
/// has no better link. `forwardNodes`: how many of `forward` run in the forward. A node without a line of Python is
/// said to come of the first tangent.
std::map<std::string, ForwardLink> linksByLine(const fx::Graph& forward, std::size_t forwardNodes,
                                               const fx::Graph& backward);

/// The first node of a joint graph's backward: one that is marked so, or depends on a tangent. The number of nodes
/// where there is none.
std::size_t backwardBorder(const fx::Graph& joint);

}  // namespace retrograd::jobs
