#pragma once
#include <optional>
#include <vector>

#include "core/formats/debug_mode/debug_mode_log.h"

namespace retrograd {

/// A call of one run and its counterpart in the other, by index; nullopt where one has none.
struct PairedCalls {
  std::optional<std::size_t> a, b;
  double difference =
      0;  ///< the largest relative difference of a norm of an output; infinite where one alone is finite
  bool compared = false;  ///< both have norms of the same number of outputs
};

/// Where two runs first have different numbers.
struct NumberDifference {
  std::size_t row = 0;               ///< in NumberComparison::rows: the first pair whose outputs differ
  std::size_t a = 0, b = 0;          ///< its calls
  std::optional<std::size_t> input;  ///< of the call: an input that differs already, so that the cause lies before it
  std::optional<std::size_t> madeInA, madeInB;  ///< the calls that made that input, as far as they are known
  bool aloneInA = false, aloneInB = false;  ///< these calls have no counterpart: one run has an op that the other lacks
};

struct NumberComparison {
  std::vector<PairedCalls> rows;  ///< both runs in order
  std::optional<NumberDifference> first;
  std::size_t compared = 0, onlyInA = 0, onlyInB = 0;
  double largest = 0;  ///< relative difference
};

/// Pairs the calls of two runs by name and type in their order, and compares the norms of paired ones. `tolerance`:
/// relative difference beyond which two norms differ; hashes have to be equal. Calls of one run alone (copies, ops that
/// a compiler put in) are stepped over. Cost: linear.
NumberComparison compareNumbers(const DebugModeRun& a, const DebugModeRun& b, double tolerance);

/// |x - y| over the larger of both; 0 for equal values, two NaN and equal infinities, infinite where one alone is
/// finite.
double relativeDifference(double x, double y);

}  // namespace retrograd
