#include "core/torch/reading/traced_file.h"

#include <filesystem>

#include "core/formats/checkpoint/given_weights.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/torch/execution/memory_budget.h"
#include "core/torch/reading/probe.h"
#include "core/torch/torchscript/trace_torchscript.h"

namespace retrograd {
namespace {

/// Names may have the prefix of a reference: "in.x".
TensorMap readInputs(const std::string& path) {
  TensorMap inputs;
  for (auto& [name, tensor] : readSafetensors(path).tensors)
    inputs.emplace(name.starts_with("in.") ? name.substr(3) : name, tensor);
  return inputs;
}

TraceInputs inputsFor(const std::string& path, const DerivationRequest& request) {
  TraceInputs inputs{request.inputs, request.numbers, request.shapes, request.seed, "given"};
  if (!request.data.batch.empty()) {  // names of no input are ignored when it is traced
    const auto batch = readBatchFile(request.data.batch);
    inputs.tensors.insert(batch.tensors.begin(), batch.tensors.end());
    inputs.numbers.insert(batch.numbers.begin(), batch.numbers.end());
  }
  const bool nothingGiven = inputs.tensors.empty() && inputs.numbers.empty() && inputs.shapes.empty();
  const auto beside = inputsBeside(path);
  if (std::error_code ignored; nothingGiven && std::filesystem::exists(beside, ignored)) {
    inputs.tensors = readInputs(beside);
    inputs.source = "from " + std::filesystem::path(beside).filename().string();
  }
  return inputs;
}

std::uintmax_t fileSize(const std::string& path) {
  std::error_code ignored;
  const auto size = std::filesystem::file_size(path, ignored);
  return ignored ? 0 : size;
}

}  // namespace

ModelFile readTracedFile(const std::shared_ptr<const Archive>& archive, const DerivationRequest& request,
                         const Progress& progress) {
  const auto& path = archive->place();
  try {
    probe(path, progress);
    const MemoryBudget budget(openingMemory(fileSize(path)));
    return traceTorchScript(archive, inputsFor(path, request), progress);
  } catch (const Error& e) {
    throw e.code() == ErrorCode::cancelled || e.place().starts_with(path) ? e : e.at(path);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::badInput, "does not fit into memory", path);
  }
}

std::string inputsBeside(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".inputs.safetensors").string();
}

}  // namespace retrograd
