#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/tensor_meta.h"
#include "core/formats/fx/fx_graph.h"
#include "core/trace/size_expression.h"
#include "core/trace/symbol.h"
#include "core/trace/trace.h"

namespace retrograd::jobs {

/// How a graph of a job becomes a printed trace.
struct ListingOptions {
  TraceKind kind = TraceKind::computation;
  SizeBindings sizes;  ///< what size symbols stood for; those that lack are taken as 2 and more, and named in the notes
  bool anyCall = false;  ///< calls of functions and methods are opaque ops ("torch.ops.Tensor.view.default"), where
                         ///< else they are refused
  bool runnable =
      false;  ///< to be run: ops of `prims` in terms of `aten`, which LibTorch has, and no types but the inputs'
  std::vector<std::size_t> outputs;  ///< positions of the outputs to return; empty: all
  bool returnsAll = true;
  std::map<std::string, std::string>
      origins;  ///< by node: what its comment says of where it comes from ("forward: mm: \"torch.ops...\"")
  std::size_t backwardFrom = static_cast<std::size_t>(-1);  ///< joint: the first node of the backward
  std::map<std::string, TensorMeta> given;    ///< by input: what it is in fact, where that has another dtype
  std::vector<char> unrecorded;               ///< by node: ran under no_grad; empty: none did
  std::map<std::size_t, std::size_t> writes;  ///< by node: the value that it overwrites under no_grad, instead of
                                              ///< being another one
  std::size_t results =
      0;  ///< joint, forward: outputs[0..results) are the program's; gradients or what is saved follow
};

/// A graph as a printed trace (docs/text-form.md), which the reader of such texts reads.
struct Listing {
  std::string text;
  std::vector<std::string> inputs;     ///< names of the trace's inputs, tensors alone, in order
  std::vector<std::size_t> positions;  ///< of each of them among the graph's inputs
  std::vector<std::string>
      outputs;  ///< by position in the graph's outputs that are returned: the name of a value, "None" or a literal
  std::map<std::string, std::string> constants;  ///< of the inputs, those that are constants of the compiled program:
                                                 ///< its attribute, "_tensor_constant0"
  std::vector<std::string> notes;                ///< what was taken for granted
  bool assumedSizes = false;                     ///< a size symbol was given a value, because the log does not say it
  std::map<std::string, int> lines;              ///< line of each node in the log's text, by name
};

/// Writes an ATen graph as a trace. Numbers of sizes are worked out from `options.sizes`. `lookup` gives schemas, which
/// say how many results an op has. Throws Error(badInput) naming node and line for what is not an ATen graph: calls of
/// methods and functions, values used before they are made.
Listing listingOf(const fx::Graph& graph, const SymbolLookup& lookup, const ListingOptions& options);

}  // namespace retrograd::jobs
