#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/torch/session/session.h"

namespace retrograd {

/// What a partition costs and saves.
struct PartitionFigures {
  std::int64_t savedBytes = 0;  ///< storages saved for backward, each once
  std::int64_t peakBytes = 0;   ///< of memoryTimeline()
  std::size_t recomputedOps = 0;
};

struct WhatIf {
  PartitionFigures before, after;
  double extraSeconds = 0;                   ///< of what runs again after, over what runs again before
  bool measured = false;                     ///< from times of a run; false: estimated from bytes moved
  std::shared_ptr<const Analysis> analysis;  ///< the model under the other partition, ready to be opened
};

/// The analysis derived again, on the same inputs, under another partition: exact, as it is the re-split itself.
/// `measures`: of a session on `analysis`; where each op that would run again has run, its time is known. Throws as
/// analyse().
WhatIf whatIf(const Analysis& analysis, const PartitionOptions& partition, const std::vector<OpMeasure>& measures = {},
              const Progress& progress = {});

/// What a split costs that saves no more than `budget` bytes.
struct BudgetFigures {
  std::int64_t budget = 0;
  PartitionFigures figures;
};

/// The figures at `count` budgets, in even steps from the fewest bytes that can be saved to those that the formulas ask
/// for. `split`: the figures of the model under a partition, as whatIf() has them.
std::vector<BudgetFigures> figuresAtBudgets(int count,
                                            const std::function<PartitionFigures(const PartitionOptions&)>& split);

}  // namespace retrograd
