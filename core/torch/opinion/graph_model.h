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

/// A graph cannot be a model: it has ops that are not here, or does not hold together.
struct NotPossible {
  std::string reason;
};

/// Opens a graph as a model and derives it. Throws NotPossible with what the analysis says of it.
GraphModel openGraph(const fx::Graph& graph, const std::string& place, const jobs::ListingOptions& options,
                     const DerivationRequest& request, const Progress& progress);

}  // namespace retrograd
