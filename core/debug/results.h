#pragma once
#include <optional>
#include <vector>

#include "core/debug/analysis.h"
#include "core/debug/result_names.h"
#include "core/execution/evaluator.h"

namespace retrograd {

/// What an evaluator holds of a run's results, by the names that Session documents. What was not computed is absent.
TensorMap gradientsOf(const Analysis& analysis, const Evaluator& evaluator);
std::vector<std::optional<TensorData>> resultsOf(const Analysis& analysis, const Evaluator& evaluator);
TensorMap mutatedOf(const Analysis& analysis, const Evaluator& evaluator);

}  // namespace retrograd
