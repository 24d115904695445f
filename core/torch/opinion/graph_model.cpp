#include "core/torch/opinion/graph_model.h"

#include <vector>

#include "core/torch/analysis/analyse.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {
namespace {

std::string errorsOf(const std::vector<Problem>& problems) {
  std::string text;
  for (const auto& problem : problems)
    if (problem.severity == Problem::Severity::error) text += (text.empty() ? "" : "; ") + problem.message;
  return text;
}

}  // namespace

GraphModel openGraph(const fx::Graph& graph, const std::string& place, const jobs::ListingOptions& options,
                     const DerivationRequest& request, const Progress& progress) {
  GraphModel model;
  model.listing = jobs::listingOf(graph, lookupSymbol, options);
  auto file = jobs::modelOf(model.listing, place);
  if (const auto unknown = errorsOf(file.problems); !unknown.empty()) throw NotPossible{unknown};
  model.analysis = analyse(std::move(file), request, progress);
  if (const auto unknown = errorsOf(model.analysis->problems); !unknown.empty()) throw NotPossible{unknown};
  return model;
}

}  // namespace retrograd
