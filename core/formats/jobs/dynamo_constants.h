#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/formats/fx/fx_graph.h"
#include "core/trace/tensor_data.h"

namespace retrograd::jobs {

/// The constants that a graph reads: the name of each node that is one, and its attribute ("_tensor_constant0").
std::vector<std::pair<std::string, std::string>> constantsOf(const fx::Graph& graph);

/// Values of a graph's constants, by attribute. A log has no data for them, but Dynamo's graph of the same compile has
/// the numbers that the program makes them of: `torch.tensor([0, 1])`, `x[:, [2, 0]]`. A constant takes the numbers
/// of the call on its line that have its shape. Where several have it, they are taken in order if there are as many of
/// them as constants, or if they are equal; else the constant is not among the results.
TensorMap constantsOfDynamo(const fx::Graph& graph, const fx::Graph& dynamo);

}  // namespace retrograd::jobs
