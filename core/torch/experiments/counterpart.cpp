#include "core/torch/experiments/counterpart.h"

#include "core/torch/analysis/higher_order.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/read_model.h"
#include "core/torch/analysis/session_file.h"
#include "core/formats/safetensors/safetensors.h"

namespace retrograd {

std::shared_ptr<const Analysis> openCounterpart(const Analysis& a, const Counterpart& other, const Progress& progress) {
  auto options = optionsFromModel(a);
  if (other.precision) options.precision = other.precision;
  if (other.device) options.device = other.device;
  options.seed = other.seed.value_or(a.request.seed);
  options.exactCotangents = other.path.empty();  // the same model: its gradient begins where it does in `a`
  const auto& own = a.sessionPath.empty() ? firstOf(a).file.path : a.sessionPath;
  auto file = readModel(other.path.empty() ? own : other.path, options, progress);
  if (!other.weights.empty()) replaceWeights(file, other.weights);
  return analyse(std::move(file), options, progress);
}

void replaceWeights(ModelFile& file, const std::string& path) {
  for (auto& [name, tensor] : readSafetensors(path).tensors) {
    const auto own = file.weights.find(name);
    if (own == file.weights.end()) throw Error(ErrorCode::badUse, "the model has no weight '" + name + "'", path);
    const auto& wanted = own->second.meta;
    if (wanted.sizes != tensor.meta.sizes || wanted.dtype != tensor.meta.dtype)
      throw Error(ErrorCode::badUse, "'" + name + "' is " + typeComment(tensor.meta) + ", the model's " + typeComment(wanted), path);
    own->second = tensor;
  }
}

}  // namespace retrograd
