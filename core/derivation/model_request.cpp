#include "core/derivation/model_request.h"

namespace retrograd {

bool ModelRequest::isDefault() const {
  return !seed && !gradInputs && !order && data.empty() && numbers.empty() && shapes.empty() && !partition &&
         filled.empty() && !device;
}

DerivationRequest ModelRequest::forReading(const TensorMap& inputs,
                                           std::optional<std::uint64_t> seedOfReference) const {
  DerivationRequest request;
  request.inputs = inputs;
  request.numbers = numbers;
  request.shapes = shapes;
  request.data = data;
  request.seed = seed.value_or(seedOfReference.value_or(0));
  return request;
}

namespace {

/// What is given, over what there was: a batch leaves the weights as they were, and weights the batch.
GivenData over(const GivenData& before, GivenData given) {
  if (given.weights.empty()) {
    given.weights = before.weights;
    given.under = before.under;
  }
  if (given.batch.empty()) given.batch = before.batch;
  if (given.compile.empty()) given.compile = before.compile;
  if (!given.rank) given.rank = before.rank;
  given.partial |= before.partial;
  given.ofWhole |= before.ofWhole;
  return given;
}

}  // namespace

void ModelRequest::layOver(DerivationRequest& request) const {
  if (seed) request.seed = *seed;
  if (gradInputs) {
    request.gradInputs = *gradInputs;
    std::erase(*request.gradInputs, "none");
  }
  for (const auto& [name, number] : numbers) request.numbers.insert_or_assign(name, number);
  for (const auto& [name, shape] : shapes) request.shapes.insert_or_assign(name, shape);
  request.data = over(request.data, data);
  if (partition) request.partition = *partition;
  if (!filled.empty()) request.filled = filled;
  if (rules) request.rules = rules;
  if (order) request.order = *order;
  if (order && *order > 1) request.again = again;
  if (device) request.device = device;
}

}  // namespace retrograd
