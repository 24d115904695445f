#include "core/torch/reading/read_model.h"

#include <filesystem>

#include "core/formats/checkpoint/given_weights.h"
#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/job_log.h"
#include "core/formats/kinds/file_kind.h"
#include "core/formats/read/read_file.h"
#include "core/formats/recording/recording.h"
#include "core/formats/repro/repro_inputs.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/formats/torchscript/torchscript_archive.h"
#include "core/torch/execution/memory_budget.h"
#include "core/torch/fx/repro_model.h"
#include "core/torch/reading/job_model.h"
#include "core/torch/reading/probe.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/torchscript/trace_torchscript.h"
#include "core/torch/tracing/op_table.h"

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

ModelFile readTorchScript(const std::shared_ptr<const Archive>& archive, const DerivationRequest& request,
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

/// Archives, which may be large, are not searched.
bool isRepro(const ByteRegion& bytes) { return !looksLikeZip(bytes.span()) && fx::looksLikeRepro(bytes.text()); }

ModelFile readOwn(const std::string& path, const DerivationRequest& request, const Progress& progress) {
  if (isRecording(path)) return readRecording(path, lookupSymbol, progress);
  requireOneRank(path);
  if (jobs::isJobLog(path)) return readJobModel(path, request.data, progress);
  if (!request.data.compile.empty() || request.data.rank)
    throw Error(ErrorCode::badUse,
                "is not a log of torch.compile; --compile and --rank choose among the graphs of a log", path);
  if (const auto script = reproScript(path); isRepro(mapFile(script)))
    return readReproModel(script, request.seed, progress);
  if (isSessionFile(path)) return modelOfSession(path, progress);
  return readModelFile(path, lookupSymbol, progress, [&](const std::shared_ptr<const Archive>& archive) {
    return isTorchScript(*archive) ? std::optional(readTorchScript(archive, request, progress)) : std::nullopt;
  });
}

}  // namespace

std::string inputsBeside(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".inputs.safetensors").string();
}

ModelFile readModel(const std::string& path, const DerivationRequest& request, const Progress& progress) {
  auto file = readOwn(path, request, progress);
  auto data = request.data;
  data.ofWhole |= file.isPart;
  bindWeights(file, data, progress);
  return file;
}

}  // namespace retrograd
