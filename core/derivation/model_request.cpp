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

void ModelRequest::layOver(DerivationRequest& request) const {
  if (seed) request.seed = *seed;
  if (gradInputs) {
    request.gradInputs = *gradInputs;
    std::erase(*request.gradInputs, "none");
  }
  for (const auto& [name, number] : numbers) request.numbers.insert_or_assign(name, number);
  request.shapes = shapes;
  request.data = data;
  request.partition = partition.value_or(PartitionOptions());
  request.filled = filled;
  request.rules = rules;
  request.order = order.value_or(1);
  request.again = again;
  request.device = device;
}

void ModelRequest::layDefaultsOver(DerivationRequest& request) const {
  if (seed) request.seed = *seed;
  if (partition) request.partition = *partition;
  if (order) request.order = *order;
}

}  // namespace retrograd
