#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/debug/analysis.h"
#include "core/pipeline/cuts.h"
#include "core/pipeline/split.h"

namespace retrograd {

enum class Balance : std::uint8_t { time, parameters, bytes };

/// How a model is to be cut. Nothing asked for: at the file's markers.
struct CutRequest {
  std::vector<std::string> at;        ///< points (cuts.h); beside the file's markers
  std::size_t stages = 0;             ///< cut by policy into this many; 0: no policy
  Balance balance = Balance::time;
  PipelineOptions options;
  std::string loss;                   ///< specification or name (loss.h); empty: every output has a cotangent
};

/// A model cut, not yet derived stage by stage.
struct CutModel {
  ModelFile model;                         ///< as it was read, in a document of its own
  std::shared_ptr<const Analysis> whole;   ///< derived in one piece; null where `derive` was not asked for and not needed
  Cuts cuts;
  PipelineSplit split;
  std::vector<std::string> notes;          ///< "no cut is asked for and the file has no marker: one stage"
};

/// What to derive a file with that was read.
using OptionsFor = std::function<AnalysisOptions(const ModelFile&)>;

/// Reads and cuts. Throws Error(badUse) for points and a policy together, for a policy on a file with markers (P18), and as the functions of
/// cuts.h, balance.h, loss.h and split.h; Error as readModel() and analyse().
CutModel openCut(const std::string& path, const CutRequest& request, const AnalysisOptions& reading, const OptionsFor& optionsFor, bool derive,
                 const Progress& progress = {});

}  // namespace retrograd
