#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/judge/report.h"
#include "core/torch/session/record_run.h"

namespace retrograd {

/// One value in two runs.
struct RunDifference {
  BoundSymbolId opA, opB;  ///< the same op in both
  ValueId valueA, valueB;
  double largest = 0;  ///< |a - b|, over finite elements
  double relative =
      0;             ///< largest, relative to the largest element of either; infinite for other shapes or dtype kinds
  double scale = 0;  ///< largest finite magnitude of an element of either
  double normA = 0, normB = 0;
  std::string note;  ///< "shapes differ", "only one is finite"; empty where numbers say it all
  /// Of the op, relative to the largest element as `relative` is: what of it came in (none where the other run has no
  /// such value), what is left where it runs on what the first has, and what rounding explains of that (none where it
  /// did not run again).
  std::optional<double> inherited, own, budget;
  /// How many times the op enlarges what comes in: a perturbation of one rounding with CompareOptions::own, else what
  /// came in in these runs.
  std::optional<double> enlarged;
};

/// How a difference gets from where the runs part by themselves to where it matters.
struct ErrorPath {
  std::string end;                       ///< "the loss", "gradient of h.weight"; empty: there is none
  std::vector<std::size_t> rows;         ///< in the order in which they ran, the last is the end
  std::optional<std::size_t> amplifier;  ///< row of the op that enlarges most, by ten times at least
};

/// The numbers of a RunDifference: how far two tensors are apart, in double precision. Equal infinities, and NaN in the
/// same places, agree.
RunDifference differenceOf(const TensorData& a, const TensorData& b);

/// Two runs compared op by op, in the order of the first.
struct RunComparison {
  std::vector<RunDifference> rows;             ///< empty where the runs are identical without being run
  std::optional<std::size_t> firstDivergence;  ///< row whose `relative` is beyond the tolerance
  double largest = 0;                          ///< greatest `relative`
  std::vector<BoundSymbolId> onlyInA, onlyInB;
  std::vector<std::string> notes;  ///< what the comparison did otherwise than a run does
  /// Which ops are to blame, the first that ran first: an op whose own error is beyond its rounding, that one run alone
  /// has, that reads something else or has other arguments; inputs that differ. Claim::op is of the first, none for an
  /// op that the second alone has.
  Report report;
  ErrorPath path;
};

struct CompareOptions {
  /// Relative difference at which two values are said to part; a fault where a person asked for it.
  double tolerance = 0;
  bool isAsked = false;
  bool own = false;  ///< runs every op of the second once more on the first's operands, not only those that differ
  RecordOptions second = {};  ///< of the second run: `replaced` counts
  int threads = 0;            ///< of the second run's kernels, 0: as many as the first has
};

/// Ops match as alignOps() says. Values are compared in double precision. The runs go in step, so that
/// tensors are let go as both have passed them. On a GPU both run without TF32, whose ten bits of mantissa would be the
/// first difference. Two recordings that have the same ops, inputs and hashes are not run. Throws as recordRun().
RunComparison compareRuns(const Analysis& a, const Analysis& b, const CompareOptions& options,
                          const Progress& progress = {});
inline RunComparison compareRuns(const Analysis& a, const Analysis& b, double tolerance,
                                 const RecordOptions& second = {}, const Progress& progress = {}) {
  return compareRuns(a, b, {.tolerance = tolerance, .second = second}, progress);
}

}  // namespace retrograd
