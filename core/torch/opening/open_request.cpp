#include "core/torch/opening/open_request.h"

#include "core/formats/safetensors/safetensors.h"
#include "core/trace/opaque.h"

namespace retrograd {
namespace {

/// The given tensors that have the name of an opaque op's result.
TensorMap resultsOfOpaqueOps(const ModelFile& file, const TensorMap& given) {
  TensorMap results;
  const auto& document = *file.document;
  for (const auto op : file.computation.trace.ops) {
    if (!isOpaque(document, op)) continue;
    for (const auto output : document.outputs(op))
      if (const auto found = given.find(document.displayName(output)); found != given.end()) results.insert(*found);
  }
  return results;
}

}  // namespace

bool OpenRequest::asksForNothing() const {
  return inputs.empty() && fill.empty() && loss.empty() && !drawn && ModelRequest::isDefault();
}

Reference OpenRequest::given() const { return inputs.empty() ? Reference() : readReference(inputs); }

DerivationRequest OpenRequest::forReading(const Reference& given) const {
  return ModelRequest::forReading(given.inputs, given.seed);
}

DerivationRequest OpenRequest::forFile(const ModelFile& file, const Reference& given) const {
  auto request = requestFor(given, file);
  request.exactCotangents = false;
  layOver(request);
  request.filled = fill.empty() ? resultsOfOpaqueOps(file, given.inputs) : readSafetensors(fill).tensors;
  return request;
}

}  // namespace retrograd
