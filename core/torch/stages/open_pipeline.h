#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/cut/cut_request.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// A model cut, not yet derived stage by stage.
struct CutModel {
  ModelFile model;  ///< as it was read, in a document of its own
  std::shared_ptr<const Analysis>
      whole;  ///< derived in one piece; null where `derive` was not asked for and not needed
  Cuts cuts;
  PipelineSplit split;
  std::vector<std::string> notes;  ///< "no cut is asked for and the file has no marker: one stage"
};

/// What to derive a file with that was read.
using RequestFor = std::function<DerivationRequest(const ModelFile&)>;

/// Reads and cuts. Throws Error(badUse) as the functions of cut_request.h, balance.h, loss.h and pipeline_split.h;
/// Error as readModel() and analyse().
CutModel openCut(const std::string& path, const CutRequest& request, const DerivationRequest& reading,
                 const RequestFor& requestFor, bool derive, const Progress& progress = {});

/// A model as it was read, derived in one piece; with a `loss` (loss.h) for its gradient of 1 alone. Throws Error as
/// analyse() and lossOutput(); unsupportedOp where its backward cannot be derived.
std::shared_ptr<const Analysis> deriveWhole(const ModelFile& model, const std::string& loss, DerivationRequest options,
                                            const Progress& progress = {});

/// A cotangent of 1 for the loss (loss.h) and none for the other outputs. Throws as lossOutput() and
/// requireScalarLoss().
void seedLoss(DerivationRequest& options, const Document& document, const Computation& computation,
              const std::string& loss);

/// analyse() of a model that was read from `path`, with a gradient of 1 at `loss` and at no other output. Empty: as
/// analyse().
std::shared_ptr<const Analysis> analyseForLoss(ModelFile file, const std::string& path, const std::string& loss,
                                               DerivationRequest options, const Progress& progress = {});

}  // namespace retrograd
