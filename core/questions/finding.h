#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// Something about the open model that a person should look at, whoever found it: a run, a check, a comparison, the
/// derivation.
struct Finding {
  enum class Severity : std::uint8_t { note, warning, error };
  Severity severity = Severity::warning;
  std::string title;                ///< what is wrong, in one line: "the gradient of h.3.weight is None"
  std::string numbers;              ///< what was measured: "4 of 8 NaN"; may be empty
  BoundSymbolId op;                 ///< where; none where no op is to blame
  std::vector<BoundSymbolId> also;  ///< further ops that are marked, such as the forward op of a backward
  ValueId value;                    ///< of it; may be none
  std::string command;  ///< what the window goes on with from there: a command such as "walk-to-root", or a panel such
                        ///< as "why"; empty: it shows the op
};

/// The line of Python that an op comes from, over its computation op where it has none: "model.py:31  y = x.log()".
/// Empty where none is known.
std::string pythonLine(const Document& document, BoundSymbolId op);

/// Parameters whose gradient is None though they require one, each with the place where the way to the loss ends.
/// Beyond `most` of them, and for frozen ones, one finding counts the rest. Each costs a walk over the computation.
std::vector<Finding> missingGradients(const Analysis& analysis, std::size_t most = 20, const Progress& progress = {});

/// Parameters of equal layers ("h.0.weight", "h.1.weight", ... of one shape, three at least) whose gradient's norm is
/// more than a hundred times the median of the others, or less than a hundredth. `normOf`: of a gradient, nullopt where
/// it is not known; what is not finite is not compared.
std::vector<Finding> layersThatDiffer(const Analysis& analysis,
                                      const std::function<std::optional<double>(ValueId)>& normOf);

}  // namespace retrograd
