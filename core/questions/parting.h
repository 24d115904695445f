#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/formats/folder/folder.h"

namespace retrograd {

/// Where PyTorch's gradients part from those of a file's graph: the first op on the way back from the outputs through
/// which a gradient changes.
struct PartsAt {
  std::int32_t index = 0;  ///< of the op in the forward trace
  std::string op, module, line;
  std::string kind;      ///< "custom backward", "hook"; empty: not known
  std::string name;      ///< of the Function or hook, where known
  std::string headline;  ///< "Clip.backward gives another gradient than ..."; empty where no custom Function is there
  std::string text;      ///< all of it for people
};

/// Inputs of a computation by what a reference says of their gradients.
struct GradientsOfInputs {
  std::set<ValueId> wrong, right;  ///< `right`: only those whose gradient is not zero
  std::optional<double> factor;    ///< by which every wrong gradient of the reference is that of the graph, if one is
};

/// By which gradients are wrong: the op that all inputs and parameters with a wrong gradient lead to and none with a
/// right one. Of several, one of a custom Function, else the one where a hook was registered, else the last.
/// `recorded`: what a recorded folder says. Nothing where no op fits.
std::optional<PartsAt> whereGradientsPart(const Analysis& analysis, const GradientsOfInputs& gradients,
                                          const std::vector<CustomBackward>& recorded);

}  // namespace retrograd
