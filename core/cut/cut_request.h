#pragma once
#include <string>
#include <vector>

#include "core/cut/cuts.h"
#include "core/cut/pipeline_split.h"
#include "core/formats/model/model_file.h"

namespace retrograd {

/// What stages of equal load have equal: time as measured by a run, time as estimated from the traces alone,
/// parameters, or bytes.
enum class Balance : std::uint8_t { time, estimate, parameters, bytes };

/// How a model is to be cut. Nothing asked for: at the file's markers.
struct CutRequest {
  std::vector<std::string> at;  ///< points (cuts.h), besides the file's markers
  std::size_t stages = 0;       ///< cut by policy into this many; 0: no policy
  Balance balance = Balance::time;
  bool useMarkers = true;  ///< false: as if the file had none
  PipelineOptions options;
  std::string loss;  ///< specification or name (loss.h); empty: every output has a cotangent

  bool operator==(const CutRequest&) const = default;
};

/// Throws Error(badUse) for points and a policy together: known before a file is read.
void requireOneWay(const CutRequest& request);

/// The cuts of markers and points. Throws as requireOneWay, Error(badUse) for a policy on a file with markers, and as
/// cuts.h says.
Cuts pointCuts(const ModelFile& model, const CutRequest& request, const ModuleCalls& calls = {});

/// What people should know of a cut: "it is one stage", stages left out, inputs and parameters that nobody uses.
std::vector<std::string> cutNotes(const ModelFile& model, const CutRequest& request, const Cuts& cuts,
                                  const PipelineSplit& split);

}  // namespace retrograd
