#pragma once
#include <memory>
#include <string>

#include "core/base/progress.h"
#include "core/derivation/analysis.h"
#include "core/formats/fx/fx_graph.h"
#include "core/formats/listing/listing.h"

namespace retrograd {

/// A graph of a job as a model.
struct GraphModel {
  jobs::Listing listing;
  std::shared_ptr<const Analysis> analysis;
};

/// Why a compile cannot be compared: a graph has ops that are not here or does not hold together, data are missing.
struct NotPossible {
  std::string reason;
  std::string op = {};  ///< the op that is why, where one is: "torch.ops.aten._scaled_mm.default"
};

/// Opens a graph as a model and derives it. Inputs of the request that the graph lacks are left out. Opaque calls are
/// taken by stand-ins (stand_ins.h), whose coefficients are the same wherever a call has the same name; what the
/// request fills in is taken instead. Throws NotPossible with what the analysis says of it.
GraphModel openGraph(const fx::Graph& graph, const std::string& place, const jobs::ListingOptions& options,
                     const DerivationRequest& request, const Progress& progress);

/// To run a graph as it is: nothing of it is differentiated.
DerivationRequest runRequest(std::uint64_t seed, const TensorMap& filled);

/// The type of a graph's value with the sizes that the job met. Throws NotPossible where the log does not say one.
TensorMeta metaOf(const fx::Type& type, const SizeBindings& sizes, const std::string& name);

}  // namespace retrograd
