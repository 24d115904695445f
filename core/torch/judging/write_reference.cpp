#include "core/torch/judging/write_reference.h"

#include <algorithm>
#include <cstring>

#include "core/formats/safetensors/safetensors.h"
#include "core/torch/judging/reference.h"

namespace retrograd {
namespace {

/// A contiguous copy unless it is contiguous already; safetensors knows no strides.
TensorData contiguous(const TensorData& tensor) {
  const auto& meta = tensor.meta;
  if (meta.offset == 0 && meta.strides == contiguousStrides(meta.sizes)) return tensor;
  const std::size_t item = itemSize(meta.dtype);
  const std::size_t bytes = meta.bytes();
  std::shared_ptr<std::byte[]> memory(new std::byte[std::max<std::size_t>(bytes, 1)]);
  std::vector<std::int64_t> index(meta.sizes.size());
  for (std::int64_t n = 0, count = meta.elements(); n < count; ++n) {
    std::int64_t at = meta.offset;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * meta.strides[d];
    std::memcpy(memory.get() + n * item, tensor.data + at * item, item);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] != meta.sizes[d]) break;
      index[d] = 0;
    }
  }
  TensorData copy{meta, memory.get(), bytes, memory};
  copy.meta.offset = 0;
  copy.meta.strides = contiguousStrides(meta.sizes);
  return copy;
}

class ReferenceWriter {
 public:
  void add(const std::string& key, const TensorData& tensor) {
    auto stored = contiguous(tensor);
    auto& meta = stored.meta;
    if (isComplex(meta.dtype)) {
      meta.dtype = meta.dtype == DType::c128 ? DType::f64 : meta.dtype == DType::c32 ? DType::f16 : DType::f32;
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
