#pragma once
#include <optional>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/derivation/result_names.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {

/// The values that an evaluator holds of a run's results, by the names that Session documents. Others are absent.
/// `keep`: how; by default as copies on the host.
TensorMap gradientsOf(const Analysis& analysis, const Evaluator& evaluator,
                      TensorData (*keep)(const at::Tensor&) = copyOut);
std::vector<std::optional<TensorData>> resultsOf(const Analysis& analysis, const Evaluator& evaluator);
TensorMap mutatedOf(const Analysis& analysis, const Evaluator& evaluator);

}  // namespace retrograd
