#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "core/formats/jobs/job_graphs.h"

namespace retrograd {

/// The op of a job's backward that an output comes from, by its position among the graph's nodes; nothing for what
/// flows in and for None.
std::optional<std::size_t> producerOf(const JobGraphs& graphs, std::size_t output);

/// The last op of a job's backward that leads to all wrong gradients and to no right one, by its position among the
/// graph's nodes: what is wrong there alone explains them. Where the first wrong gradient's input has more than 16 bits
/// it is the first such op that computes in 16. Nothing where there is no such op, or more than 64 gradients are wrong.
/// `wrong` and `right` are positions of the backward's outputs.
std::optional<std::size_t> suspectOf(const JobGraphs& graphs, const std::vector<std::size_t>& wrong,
                                     const std::vector<std::size_t>& right);

}  // namespace retrograd
