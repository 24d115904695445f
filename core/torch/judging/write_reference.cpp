#include "core/torch/judging/write_reference.h"

#include "core/formats/safetensors/safetensors.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/reference.h"

namespace retrograd {
namespace {

class ReferenceWriter {
 public:
  void add(const std::string& key, const TensorData& tensor) {
    auto stored = rowByRow(tensor);  // safetensors knows no strides
    auto& meta = stored.meta;
    if (isComplex(meta.dtype)) {
      meta.dtype = realType(meta.dtype);
      meta.sizes.push_back(2);
      meta.strides = contiguousStrides(meta.sizes);
      complexKeys_ += (complexKeys_.empty() ? "" : ",") + key;
    }
    tensors_.emplace(key, std::move(stored));
  }
  /// `requiresGrad`: user inputs that were differentiated, comma separated; absent: not known.
  void write(const std::string& path, std::uint64_t seed, const std::optional<std::string>& requiresGrad = {}) const {
    std::map<std::string, std::string> metadata{{"seed", std::to_string(seed)}, {"complex_keys", complexKeys_}};
    if (requiresGrad) metadata.emplace("requires_grad", *requiresGrad);
    writeSafetensors(path, tensors_, metadata);
  }

 private:
  TensorMap tensors_;
  std::string complexKeys_;
};

void addResults(ReferenceWriter& writer, const Session& session) {
  const auto& analysis = session.analysis();
  const auto users = userOutputs(analysis.computation());
  for (std::size_t i = 0; i < users.size() && users[i] < analysis.forward.outputs.size(); ++i) {
    const auto value = analysis.forward.outputs[users[i]];
    if (value && session.state(value).present && analysis.document->isTensor(value))
      writer.add("out." + std::to_string(i), session.contents(value));
  }
}

}  // namespace

void saveRun(const Session& session, const std::string& path) {
  ReferenceWriter writer;
  const auto& analysis = session.analysis();
  for (const auto& [name, tensor] : analysis.request.inputs) writer.add("in." + name, tensor);
  for (const auto& [position, tensor] : analysis.request.cotangents) writer.add("cot." + position, tensor);
  addResults(writer, session);
  if (session.position() >= session.forwardSize())  // all writes are the forward's
    for (const auto& [name, tensor] : session.mutated()) writer.add("mut." + name, tensor);
  if (session.position() == session.size())
    for (const auto& [name, tensor] : session.gradients()) writer.add("grad." + name, tensor);
  std::string differentiated;
  for (const auto& input : analysis.computation().inputs)
    if (input.kind == InputKind::user && input.value && analysis.document->value(input.value).requiresGrad)
      differentiated += (differentiated.empty() ? "" : ",") + input.name;
  writer.write(path, analysis.request.seed, differentiated);
}

void saveReference(const TensorMap& tensors, std::uint64_t seed, const std::string& path) {
  ReferenceWriter writer;
  for (const auto& [key, tensor] : tensors) writer.add(key, tensor);
  writer.write(path, seed);
}

}  // namespace retrograd
