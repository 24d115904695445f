#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/questions/run_record.h"
#include "core/torch/session/record_run.h"

namespace retrograd {

/// One value in two runs.
struct RunDifference {
  BoundSymbolId opA, opB;  ///< the same op in both
  ValueId valueA, valueB;
  double largest = 0;  ///< |a - b|, over finite elements
  double relative =
      0;  ///< largest, relative to the largest element of either; infinite for other shapes or dtype kinds
  double normA = 0, normB = 0;
  std::string note;  ///< "shapes differ", "only one is finite"; empty where numbers say it all
};

/// The numbers of a RunDifference: how far two tensors are apart, in double precision. Equal infinities, and NaN in the
/// same places, agree.
RunDifference differenceOf(const TensorData& a, const TensorData& b);

/// Two runs compared op by op, in the order of the first.
struct RunComparison {
  std::vector<RunDifference> rows;
  std::optional<std::size_t> firstDivergence;  ///< row whose `relative` is beyond the tolerance
  double largest = 0;                          ///< greatest `relative`
  std::vector<BoundSymbolId> onlyInA, onlyInB;
  std::vector<std::string> notes;  ///< what the comparison did otherwise than a run does
};

/// Ops match as alignOps() says. Values are compared in double precision. The runs go in step, so that
/// tensors are let go as both have passed them. On a GPU both run without TF32, whose ten bits of mantissa would be the
/// first difference. Throws as recordRun().
RunComparison compareRuns(const Analysis& a, const Analysis& b, double tolerance, const RecordOptions& optionsB = {},
                          const Progress& progress = {});

}  // namespace retrograd
