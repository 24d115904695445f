#include "core/torch/reading/formats.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/formats/folder/folder.h"
#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/job_log.h"
#include "core/formats/kinds/file_kind.h"
#include "core/formats/read/read_file.h"
#include "core/formats/recording/recording.h"
#include "core/formats/repro/repro_inputs.h"
#include "core/formats/torchscript/torchscript_archive.h"
#include "core/torch/fx/repro_model.h"
#include "core/torch/reading/job_model.h"
#include "core/torch/reading/read_model.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/reading/traced_file.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {
namespace {

namespace fs = std::filesystem;

bool isFile(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_directory(path, ignored);
}

bool isOfRanks(const std::string& path) { return !ranksIn(path).empty(); }

/// Archives, which may be large, are not searched.
bool isRepro(const std::string& path) {
  if (isReproFolder(path)) return true;
  if (!isFile(path)) return false;
  const auto bytes = mapFile(path);
  return !looksLikeZip(bytes.span()) && fx::looksLikeRepro(bytes.text());
}

bool isSession(const std::string& path) { return isFile(path) && isSessionFile(path); }

/// As torch.cuda.memory._dump_snapshot writes it, or packed with gzip or xz.
bool isPickleFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char first[2]{};
  if (!isFile(path) || !file.read(first, sizeof first)) return false;
  const std::string_view begin(first, sizeof first);
  return begin[0] == '\x80' || begin == "\x1f\x8b" || begin == "\xfd\x37";
}

ModelFile readCaptured(const std::string& path, const DerivationRequest& request, const Progress& progress) {
  return readModel(chooseGraph(path)->graph.model, request, progress);
}

ModelFile readStep(const std::string& path, const DerivationRequest&, const Progress& progress) {
  return readRecording(path, lookupSymbol, progress);
}

ModelFile readRanks(const std::string& path, const DerivationRequest&, const Progress&) {
  throw Error(ErrorCode::badUse,
              "holds a recording of each rank: name one of them, such as " + ranksIn(path).front() +
                  "; `retrograd check` takes all of them",
              path);
}

ModelFile readJob(const std::string& path, const DerivationRequest& request, const Progress& progress) {
  return readJobModel(path, request.data, progress);
}

ModelFile readRepro(const std::string& path, const DerivationRequest& request, const Progress& progress) {
  return readReproModel(reproScript(path), request.seed, progress);
}

ModelFile readSession(const std::string& path, const DerivationRequest&, const Progress& progress) {
  return modelOfSession(path, progress);
}

ModelFile readProgram(const std::string& path, const DerivationRequest& request, const Progress& progress) {
  return readModelFile(path, lookupSymbol, progress, [&](const std::shared_ptr<const Archive>& archive) {
    return isTorchScript(*archive) ? std::optional(readTracedFile(archive, request, progress)) : std::nullopt;
  });
}

/// From those that only a folder's files tell to those that any file might be.
constexpr std::array formats{
    FormatEntry{.format = Format::recording, .looksLike = isRecording, .read = readStep, .isDerived = false},
    FormatEntry{.format = Format::ranks, .looksLike = isOfRanks, .read = readRanks, .isDerived = false},
    FormatEntry{Format::captured, isRecordedFolder, readCaptured},
    FormatEntry{.format = Format::job, .looksLike = jobs::isJobLog, .read = readJob, .hasCompiles = true},
    FormatEntry{Format::repro, isRepro, readRepro},
    FormatEntry{Format::session, isSession, readSession},
    // One that is no memory snapshot is refused by name, as all that is no program.
    FormatEntry{Format::pickle, isPickleFile, readProgram},
    FormatEntry{Format::model, [](const std::string&) { return true; }, readProgram},
};

}  // namespace

const FormatEntry& formatOf(const std::string& path) {
  return *std::find_if(formats.begin(), formats.end(), [&](const auto& entry) { return entry.looksLike(path); });
}

bool isOf(Format format, const std::string& path) { return formatOf(path).format == format; }

}  // namespace retrograd
