#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/trace/trace.h"

namespace retrograd {

/// Parameters as the modules hold them, for people to read: a module, or one parameter.
///
/// A name without information is left out: a module with one part is one with it ("wte.weight"), and a list gives
/// its members to the module that holds it ("h.0", "h.1").
struct ParameterTree {
  std::string label;                 ///< below its parent: "h.0", "attn.weight"
  std::string path;                  ///< whole: "transformer.h.0"
  bool isMember = false;             ///< of a list of modules, so the layer of a model
  std::optional<std::size_t> input;  ///< of a parameter: its position in the inputs of the computation
  std::vector<ParameterTree> parts;  ///< in the order of the inputs

  /// A member of a list of modules is somewhere below.
  bool holdsMembers() const;
};

/// The root represents the model. Parameters that the trace does not know are left out. Linear in the names.
ParameterTree parameterTree(const Computation& computation);

}  // namespace retrograd
