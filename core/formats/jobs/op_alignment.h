#pragma once
#include <cstddef>
#include <vector>

#include "core/formats/fx/fx_graph.h"
#include "core/formats/jobs/dynamo_ops.h"

namespace retrograd::jobs {

/// Which op of Dynamo's graph a node of an ATen graph comes from.
struct Aligned {
  std::size_t op = static_cast<std::size_t>(-1);  ///< into the Dynamo ops; none where no op has the node's line
  std::vector<std::size_t> others;  ///< ops that it could come from as well: as to order, line and name nothing decides
};
inline constexpr std::size_t noOp = static_cast<std::size_t>(-1);

/// Aligns nodes of an ATen graph with the ops of Dynamo's graph: both ran in one order, an op gives nodes with its line
/// of Python, and most give one of their own name. The alignment that pairs most names wins. Of nodes without a line,
/// and where `skipped` says so, none is found.
std::vector<Aligned> alignNodes(const fx::Graph& graph, std::size_t nodes, const std::vector<char>& skipped,
                                const std::vector<DynamoOp>& ops);

}  // namespace retrograd::jobs
