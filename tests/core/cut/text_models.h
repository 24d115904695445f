#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/cut/pipeline_split.h"
#include "core/formats/text/text_trace.h"
#include "tests/core/formats/stub_symbols.h"

namespace retrograd::test {

inline std::optional<Symbol> pipelineLookup(std::string_view name) {
  if (name != "pippy._pipe_split.default") return stubLookup(name);
  Symbol symbol;
  symbol.name = name;
  symbol.schema = "pippy::_pipe_split() -> ()";
  symbol.known = true;
  return symbol;
}

inline ModelFile modelOf(const std::string& text) { return readTextModel(text, "model.txt", pipelineLookup); }

inline Cuts markers(const ModelFile& model) { return markedCuts(*model.document, model.computation); }
inline PipelineSplit splitOf(const ModelFile& model, const Cuts& cuts, const PipelineOptions& options = {}) {
  return splitPipeline(*model.document, model.computation, cuts, options);
}
inline PipelineSplit splitAtMarkers(const ModelFile& model, const PipelineOptions& options = {}) {
  return splitOf(model, markers(model), options);
}

using Names = std::vector<std::string>;

inline Names opsOf(const ModelFile& model, const PipelineStage& stage) {
  Names names;
  for (auto op : stage.ops) {
    const auto outputs = model.document->outputs(op);
    names.push_back(outputs.empty() ? model.document->opName(op) : model.document->displayName(outputs[0]));
  }
  return names;
}
/// "0>2 h[0]": value h is sent from stage 0 to stage 2 as its output 0; "in" for an input of the model.
inline Names edgesOf(const ModelFile& model, const PipelineSplit& split) {
  Names names;
  for (const auto& edge : split.edges)
    names.push_back((edge.source < 0 ? "in" : std::to_string(edge.source)) + ">" + std::to_string(edge.destination) +
                    " " + model.document->displayName(edge.value) +
                    (edge.source < 0 ? "" : "[" + std::to_string(edge.output) + "]"));
  return names;
}
inline Names heldBy(const ModelFile& model, const PipelineStage& stage) {
  Names names;
  for (auto i : stage.held) names.push_back(model.computation.inputs[i].target);
  return names;
}

/// what() of the Error that `body` throws; empty where it throws none.
template <class Body>
std::string errorOf(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace retrograd::test
