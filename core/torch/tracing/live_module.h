#pragma once
// For programs that trace their own modules. Names only what it must: the caller has LibTorch's headers anyway.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/model/model_file.h"

namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}

namespace retrograd {

struct LiveOptions {
  std::vector<std::string> inputNames;  ///< of the inputs in order; the others are called input_0, input_1, ...
  std::uint64_t seed = 0;  ///< random ops draw from it, here and in sessions; the program's generator stays as it was
};

/// What runs the module: gets the inputs, returns the outputs.
using LiveForward = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

/// Traces a C++ module: calls `forward` once, on this thread, and records the ops it calls as it calls them, above
/// autograd, so that torch::linear stays aten.linear. The result is what a file would give: hand it to analyse().
/// Parameters and buffers are inputs of the computation under the names that named_parameters() and named_buffers()
/// give them, with their content from before the call; tensors that come from elsewhere are constants. Control flow of
/// the program follows the inputs: where data decided something (item(), a comparison), ModelFile::dataDependent says
/// so. `forward` has the effects it always has: batch norm in training moves its statistics. C++ modules have no hooks
/// and C++ code has no lines at run time: an op is placed in the module that a ModuleScope around it names, else in the
/// one whose parameter or buffer it reads, else nowhere, and no op has a source. Throws Error: badUse for tensors that
/// are not on the CPU, execution for a forward that fails, unsupportedOp under autocast, cancelled.
ModelFile traceModule(torch::nn::Module& module, const std::vector<at::Tensor>& inputs, const LiveForward& forward,
                      const LiveOptions& options = {}, const Progress& progress = {});

/// The same for a forward that returns one tensor.
template <class Forward>
  requires std::is_same_v<std::invoke_result_t<Forward&, const std::vector<at::Tensor>&>, at::Tensor>
ModelFile traceModule(torch::nn::Module& module, const std::vector<at::Tensor>& inputs, Forward forward,
                      const LiveOptions& options = {}, const Progress& progress = {}) {
  const LiveForward several = [&forward](const std::vector<at::Tensor>& given) {
    return std::vector<at::Tensor>{forward(given)};
  };
  return traceModule(module, inputs, several, options, progress);
}

/// While alive, ops of this thread are in the module of this path. Scopes nest: "mlp" in "layers.0" is
/// "layers.0.mlp". Costs nothing to speak of where nothing is traced, so that it can stay in a module's forward.
class ModuleScope {
 public:
  explicit ModuleScope(std::string_view path);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  std::size_t outer_;  // length of the path around this one
};

}  // namespace retrograd
