#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/fx/fx_graph.h"
#include "core/formats/jobs/line_links.h"
#include "core/formats/model/model_file.h"
#include "core/sizes/size_expression.h"
#include "core/trace/symbol.h"
#include "core/trace/trace.h"

namespace retrograd::jobs {

/// How a graph of a job becomes a trace.
struct ListingOptions {
  TraceKind kind = TraceKind::computation;
  SizeBindings sizes;  ///< what size symbols stood for; those that lack are taken as 2 and more, and named in the notes
  bool anyCall = false;  ///< calls of functions and methods are opaque ops ("torch.ops.Tensor.view.default"), where
                         ///< else they are refused
  bool runnable =
      false;  ///< to be run: ops of `prims` in terms of `aten`, which LibTorch has, and no types but the inputs'
  std::vector<std::size_t> outputs;  ///< positions of the outputs to return; empty: all
  bool returnsAll = true;
  std::map<std::string, ForwardLink> origins;  ///< by node of the backward: the op of the forward that it comes from
  std::size_t backwardFrom = static_cast<std::size_t>(-1);  ///< joint: the first node of the backward
  std::map<std::string, TensorMeta> given;    ///< by input: what it is in fact, where that has another dtype
  std::vector<char> unrecorded;               ///< by node: ran under no_grad; empty: none did
  std::map<std::size_t, std::size_t> writes;  ///< by node: the value that it overwrites under no_grad, instead of
                                              ///< being another one
  std::size_t results =
      0;  ///< joint, forward: outputs[0..results) are the program's; gradients or what is saved follow
};

/// A graph as a trace in a document of its own.
struct Listing {
  std::shared_ptr<Document> document;
  Trace trace;
  std::vector<OutputSpec> results;               ///< of a computation: its outputs, parallel to trace.outputs
  std::vector<Problem> problems;                 ///< ops of a computation that LibTorch does not have
  std::vector<std::string> inputs;               ///< names of the trace's inputs, tensors alone, in order
  std::vector<std::size_t> positions;            ///< of each of them among the graph's inputs
  std::map<std::string, std::string> constants;  ///< of the inputs, those that are constants of the compiled program:
                                                 ///< its attribute, "_tensor_constant0"
  std::vector<std::string> notes;                ///< what was taken for granted
  bool assumedSizes = false;                     ///< a size symbol was given a value, because the log does not say it
};

/// Builds the trace of an ATen graph. Numbers of sizes are worked out from `options.sizes`. `lookup` gives schemas,
/// which say how many results an op has; of an op that it does not know, arguments that no trace has are texts. Throws
/// Error(badInput) naming node and line for what is not an ATen graph: calls of methods and functions, values used
/// before they are made, arguments that do not fit the schema.
Listing listingOf(const fx::Graph& graph, const SymbolLookup& lookup, const ListingOptions& options);

/// A computation as a file to open: its inputs are described and have no data. `path`: of the file, for messages.
ModelFile modelOf(const Listing& listing, const std::string& path);

}  // namespace retrograd::jobs
