#include "core/torch/opening/open_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/torch/execution/device.h"
#include "core/torch/judging/other_device.h"
#include "core/torch/reading/formats.h"
#include "core/torch/reading/read_model.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/stages/open_pipeline.h"

namespace retrograd {
namespace {

std::shared_ptr<const Analysis> openSession(const OpenRequest& request, const Progress& progress) {
  auto stored = loadSession(request.path, progress, request.rules);
  if (request.asksForNothing()) return stored;
  auto options = overlaid(*stored, request.forFile(stored->file, request.given()));
  request.layOver(options);  // also what is asked for and is the default
  if (!request.loss.empty()) {
    if (options.order > 1)
      throw Error(ErrorCode::badUse, "the outputs of a session of gradients of gradients cannot be losses",
                  request.path);
    seedLoss(options, *stored->document, stored->computation(), request.loss);
  }
  return deriveAnew(*stored, options, progress);
}

/// `notes`: what is to be said of the file besides what reading it finds.
std::shared_ptr<const Analysis> openFile(const OpenRequest& request, std::vector<Problem> notes,
                                         const Progress& progress, const OnRead& onRead) {
  const auto& format = formatOf(request.path);
  if (!request.drawn && format.format == Format::session) return openSession(request, progress);
  const auto given = request.given();
  auto file = readModel(format, request.path, request.forReading(given), progress);
  if (onRead) onRead(file);
  std::move(notes.begin(), notes.end(), std::back_inserter(file.problems));
  if (request.drawn && !file.traced) file.sampleInputs.clear();  // a traced file has drawn its inputs already
  auto options = request.forFile(file, given);
  return analyseForLoss(std::move(file), request.path, request.loss, std::move(options), progress);
}

/// The request for a folder's graph, on what was recorded with it unless other inputs are asked for.
OpenRequest atGraph(OpenRequest request, const FolderGraph& graph) {
  request.path = graph.model;
  if (request.inputs.empty() && !request.drawn) request.inputs = graph.values;
  if (request.onRecordedDevice && !request.device && !graph.device.empty())
    request.device = deviceAsRecorded(graph.device, devices());
  return request;
}

std::shared_ptr<const Analysis> openRecorded(const OpenRequest& request, const FolderChoice& choice,
                                             const Progress& progress, const OnRead& onRead) {
  const auto& device = choice.graph.device;
  auto analysis = openFile(atGraph(request, choice.graph), notesOf(choice, request.path), progress, onRead);
  if (!device.empty() && drawsElsewhere(*analysis, true))
    std::const_pointer_cast<Analysis>(analysis)->problems.push_back(
        {Problem::Severity::note,
         fmt::format("the step drew random numbers on {}; --device cuda draws them again, here others are drawn",
                     device),
         request.path, -1});
  return analysis;
}

}  // namespace

std::vector<Problem> notesOf(const FolderChoice& choice, const std::string& path) {
  std::vector<Problem> notes;
  if (!choice.failure.empty())
    notes.push_back({Problem::Severity::note, "recorded because " + choice.failure, path, -1});
  for (const auto& line : choice.cannotReplay)
    notes.push_back({Problem::Severity::warning, "cannot be replayed: " + line, path, -1});
  return notes;
}

std::shared_ptr<const Analysis> openModel(const OpenRequest& request, const Progress& progress, const OnRead& onRead) {
  if (isOf(Format::captured, request.path)) return openRecorded(request, *chooseGraph(request.path), progress, onRead);
  return openFile(request, {}, progress, onRead);
}

}  // namespace retrograd
