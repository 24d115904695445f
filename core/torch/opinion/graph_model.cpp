#include "core/torch/opinion/graph_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/formats/listing/stand_ins.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/tracing/drawn_input.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {
namespace {

void refuseErrors(const std::vector<Problem>& problems) {
  NotPossible refusal;
  for (const auto& problem : problems) {
    if (problem.severity != Problem::Severity::error) continue;
    refusal.reason += (refusal.reason.empty() ? "" : "; ") + problem.message;
    if (const auto at = problem.place.find("torch.ops."); refusal.op.empty() && at != std::string::npos)
      refusal.op = problem.place.substr(at, problem.place.find_first_of(" :,", at) - at);
  }
  if (!refusal.reason.empty()) throw refusal;
}

GraphModel openPlain(const fx::Graph& graph, const std::string& place, const jobs::ListingOptions& options,
                     DerivationRequest request, const Progress& progress) {
  GraphModel model{.listing = jobs::listingOf(graph, lookupSymbol, options)};
  const auto& names = model.listing.inputs;
  std::erase_if(request.inputs,
                [&](const auto& input) { return std::ranges::find(names, input.first) == names.end(); });
  auto file = jobs::modelOf(model.listing, place);
  refuseErrors(file.problems);
  model.analysis = analyse(std::move(file), request, progress);
  refuseErrors(model.analysis->problems);
  return model;
}

}  // namespace

DerivationRequest runRequest(std::uint64_t seed, const TensorMap& filled) {
  return {.exactCotangents = true, .gradInputs = std::vector<std::string>(), .filled = filled, .seed = seed};
}

TensorMeta metaOf(const fx::Type& type, const SizeBindings& sizes, const std::string& name) {
  TensorMeta meta{.dtype = type.dtype};
  for (const auto& text : type.sizes) {
    const auto size = evaluateSize(text, sizes);
    if (!size) throw NotPossible{fmt::format("the log does not say the size {} of {}", text, name)};
    meta.sizes.push_back(*size);
  }
  meta.strides = contiguousStrides(meta.sizes);
  return meta;
}

GraphModel openGraph(const fx::Graph& graph, const std::string& place, const jobs::ListingOptions& options,
                     const DerivationRequest& request, const Progress& progress) {
  auto inner = request;
  inner.filled.clear();  // of another graph of the compile, where this one has no opaque call
  if (jobs::opaqueCalls(graph, lookupSymbol).empty()) return openPlain(graph, place, options, inner, progress);
  std::vector<std::string> filled;
  for (const auto& [name, tensor] : request.filled) filled.push_back(name);
  const auto stood = jobs::withStandIns(graph, lookupSymbol, filled);
  auto moved = options;
  if (!options.unrecorded.empty()) {
    moved.unrecorded.clear();
    for (const auto node : stood.origins)
      moved.unrecorded.push_back(node < options.unrecorded.size() ? options.unrecorded[node] : char{0});
  }
  moved.writes.clear();
  for (const auto& [node, written] : options.writes)
    moved.writes.emplace(stood.values[graph.inputs.size() + node] - stood.graph.inputs.size(), stood.values[written]);
  constexpr std::uint64_t seed = 0;  // whatever the run's: a forward and its backward have different ones
  for (const auto i : stood.inputs) {
    const auto& input = stood.graph.inputs[i];
    const auto given = request.filled.find(input.name);
    inner.inputs[input.name] =
        given != request.filled.end()
            ? given->second
            : drawnInput(metaOf(stood.graph.types[input.type], options.sizes, input.name), input.name, seed);
  }
  return openPlain(stood.graph, place, moved, inner, progress);
}

}  // namespace retrograd
