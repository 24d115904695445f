#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/formats/json/json_tree.h"
#include "core/formats/pt2/pt2_graph.h"
#include "core/formats/pt2/pt2_weights.h"
#include "core/trace/trace.h"

namespace retrograd::pt2 {

/// Input specs without values; `constants` receives inputs that export fixed to a number, by argument name.
std::vector<InputSpec> readInputSpecs(const Json& signature, const Json& graph, const WeightTable& weights,
                                      std::map<std::string, Argument>& constants);

/// Output specs, parallel to the graph's outputs, with their values.
std::vector<OutputSpec> readOutputSpecs(const Json& signature, const GraphBody& body);

/// Compares what the graph says of its parameters, buffers and constants with what the weights are; throws
/// Error(badInput).
void checkWeights(const std::vector<InputSpec>& specs, const WeightTable& weights, const Document& document);

}  // namespace retrograd::pt2
