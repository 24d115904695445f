#include "core/torch/execution/as_recorded.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/lay_out.h"

namespace retrograd {
namespace {

/// The bytes as a tensor of the host, kept alive.
at::Tensor bytesOf(const TensorData& data) {
  if (data.bytes == 0) return at::empty({0}, at::kByte);
  auto owner = data.owner;
  return at::from_blob(
      const_cast<std::byte*>(data.data), {static_cast<std::int64_t>(data.bytes)}, [owner](void*) {},
      at::TensorOptions(at::kByte));
}

const TensorData& dataNamed(const StepRecording& recording, const std::string& name) {
  const auto found = recording.data.find(name);
  if (found == recording.data.end())
    throw Error(ErrorCode::execution, "the recording lacks the bytes '" + name + "'", recording.path);
  return found->second;
}

at::Tensor viewOn(const c10::Storage& storage, const TensorMeta& meta) {
  const auto options = at::TensorOptions().dtype(toScalarType(meta.dtype)).device(storage.device());
  auto view = at::empty({0}, options).set_(storage, meta.offset, meta.sizes, meta.strides);
  view._set_conj(meta.conjugate);
  view._set_neg(meta.negative);
  return view;
}

bool isCollective(const Document& document, BoundSymbolId op) {
  const auto& name = document.symbol(op).name;
  return name.find("c10d.") != std::string::npos || name.find("_c10d_functional") != std::string::npos;
}

/// The elements in logical order into the tensor.
void fill(const at::Tensor& tensor, const TensorData& data) {
  if (std::cmp_not_equal(data.bytes, tensor.numel() * static_cast<std::int64_t>(tensor.element_size())))
    throw Error(ErrorCode::execution, "the recorded bytes are not as many as the result takes");
  auto elements = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
  if (data.bytes > 0) std::memcpy(elements.data_ptr(), data.data, data.bytes);
  tensor.copy_(elements);
}

}  // namespace

bool runsAsRecorded(const StepRecording& recording, BoundSymbolId op) {
  return !recording.has(op) || !recording.op(op).opaque;
}

std::vector<std::pair<ValueId, at::Tensor>> recordedResults(const StepRecording& recording, const Document& document,
                                                            BoundSymbolId op,
                                                            const std::function<at::Tensor(ValueId)>& held) {
  std::vector<std::pair<ValueId, at::Tensor>> results;
  const auto& recorded = recording.op(op);
  const auto puts = std::span(recording.puts).subspan(recorded.putsBegin, recorded.putCount);
  const auto putOf = [&](ValueId id) {
    const auto found = std::ranges::find_if(puts, [&](const auto& put) { return put.value == id; });
    return found == puts.end() || !recording.data.contains(found->data) ? nullptr : &*found;
  };
  const auto sharing = [&](StorageId storage) {
    for (const auto operand : document.operands(op))
      if (operand && document.value(operand).storage == storage)
        if (auto tensor = held(operand); tensor.defined()) return tensor;
    return at::Tensor();
  };
  for (const auto output : document.outputs(op)) {
    if (!output || !document.isTensor(output)) continue;
    const auto& value = document.value(output);
    const auto& meta = document.meta(value.meta);
    const auto* put = putOf(output);
    auto memory = sharing(value.storage);
    if (!put && !memory.defined() && !isCollective(document, op))
      throw Error(ErrorCode::execution, "nobody can run it (" + std::string(document.text(recorded.opaque)) +
                                            "), and the recording lacks its results");
    if (put && put->storage) {  // of the whole memory
      const auto bytes = bytesOf(dataNamed(recording, put->data));
      wholeStorage(memory).narrow(0, 0, bytes.numel()).copy_(bytes);
      results.emplace_back(output, memory);
      continue;
    }
    if (!memory.defined())
      memory = at::empty({document.storage(value.storage).bytes},
                         at::TensorOptions(at::kByte).device(toTorchDevice(meta.device)));
    auto tensor = viewOn(memory.storage(), meta);
    if (put) fill(tensor, dataNamed(recording, put->data));
    results.emplace_back(output, std::move(tensor));
  }
  const auto outputs = document.outputs(op);
  const auto checks = std::span(recording.checks).subspan(recorded.checksBegin, recorded.checkCount);
  for (const auto& check : checks) {  // what it wrote
    const bool isOutput = std::ranges::find(outputs, check.value) != outputs.end();
    if (!isOutput && check.value && !putOf(check.value) && !isCollective(document, op))
      throw Error(ErrorCode::execution, "nobody can run it (" + std::string(document.text(recorded.opaque)) +
                                            "), and the recording lacks what it wrote");
  }
  for (const auto& put : puts) {
    if (std::ranges::find(outputs, put.value) != outputs.end()) continue;
    if (const auto tensor = held(put.value); tensor.defined() && recording.data.contains(put.data))
      fill(tensor, dataNamed(recording, put.data));
  }
  return results;
}

at::Tensor recordedState(const StepRecording& recording, const Document& document, BoundSymbolId op) {
  if (!recording.has(op) || !recording.op(op).generatorState) return {};
  return bytesOf(dataNamed(recording, std::string(document.text(recording.op(op).generatorState)))).clone();
}

DeterministicScope::Mode determinismOf(const StepRecording& recording) {
  return recording.settings.deterministic ? DeterministicScope::Mode::on : DeterministicScope::Mode::off;
}

}  // namespace retrograd
