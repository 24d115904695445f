#include "core/cut/cut_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"

namespace retrograd {

void requireOneWay(const CutRequest& request) {
  if (request.stages > 0 && !request.at.empty())
    badUse("Cannot specify both points to cut at and a policy (a number of stages). Please use only one of them.");
}

Cuts pointCuts(const ModelFile& model, const CutRequest& request, const ModuleCalls& calls) {
  requireOneWay(request);
  const auto marked = request.useMarkers ? markedCuts(*model.document, model.computation) : Cuts();
  if (request.stages > 0 && !marked.empty())
    badUse(
        fmt::format("Cannot specify both: the file has {} stage marker{} of its own, and a "
                    "policy is asked for. Please use only one of them.",
                    marked.size(), marked.size() == 1 ? "" : "s"));
  auto cuts = cutsAt(*model.document, model.computation, request.at, calls);
  cuts.insert(cuts.end(), marked.begin(), marked.end());
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

namespace {

bool isShared(const PipelineSplit& split, const std::string& parameter) {
  return std::any_of(split.shared.begin(), split.shared.end(), [&](const SharedParameter& shared) {
    return std::find(shared.names.begin(), shared.names.end(), parameter) != shared.names.end();
  });
}

}  // namespace

std::vector<std::string> cutNotes(const ModelFile& model, const CutRequest& request, const Cuts& cuts,
                                  const PipelineSplit& split) {
  std::vector<std::string> notes;
  if (cuts.empty() && request.stages == 0)
    notes.push_back(request.useMarkers ? "no cut is asked for and the file has no stage marker: it is one stage"
                                       : "no cut is asked for: it is one stage");
  notes.insert(notes.end(), split.notes.begin(), split.notes.end());
  for (const auto& input : unusedInputs(*model.document, model.computation))
    notes.push_back(
        fmt::format("input {} is used by no op: at export it may have been one tensor with another input", input));
  for (const auto& [parameter, use] : request.options.multiUseOf)
    if (use == MultiUse::transmit && !isShared(split, parameter))
      notes.push_back(fmt::format("parameter {} is used by no two stages: it is not transmitted", parameter));
  for (const auto& parameter : split.unused)
    notes.push_back(fmt::format("parameter {} is used by no stage", parameter));
  return notes;
}

}  // namespace retrograd
