#include "core/torch/reading/read_model.h"

#include "core/base/error.h"
#include "core/formats/checkpoint/given_weights.h"
#include "core/torch/reading/formats.h"

namespace retrograd {

ModelFile readModel(const std::string& path, const DerivationRequest& request, const Progress& progress) {
  return readModel(formatOf(path), path, request, progress);
}

ModelFile readModel(const FormatEntry& format, const std::string& path, const DerivationRequest& request,
                    const Progress& progress) {
  if (!format.hasCompiles && (!request.data.compile.empty() || request.data.rank))
    throw Error(ErrorCode::badUse,
                "is not a log of torch.compile; --compile and --rank choose among the graphs of a log", path);
  auto file = format.read(path, request, progress);
  file.format = format.format;
  auto data = request.data;
  data.ofWhole |= file.isPart;
  bindWeights(file, data, progress);
  return file;
}

}  // namespace retrograd
