#include "core/torch/opinion/opaque_ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "core/formats/listing/stand_ins.h"
#include "core/torch/opinion/graph_model.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {

OpaqueOps opaqueOps(const JobGraphs& graphs) {
  std::map<std::string, jobs::OpaqueCall> known;
  if (graphs.joint)
    for (const auto& call : jobs::opaqueCalls(*graphs.joint, lookupSymbol)) known.emplace(call.name, call);
  OpaqueOps ops;
  for (const auto* graph : {&graphs.forward, &graphs.backward}) {
    for (const auto& call : jobs::opaqueCalls(*graph, lookupSymbol)) {
      const auto& node = graph->nodes[call.node];
      const auto source = sourceText(*graph, node);
      const auto text =
          fmt::format("{} ({}, line {} of the {} graph{}{})", call.op, call.name, node.line,
                      graph == &graphs.forward ? "forward" : "backward", source.empty() ? "" : ", ", source);
      if (call.writes)
        throw NotPossible{"an op that cannot run here may write to what it is given, which the graph does not show: " +
                          text};
      const auto [same, isNew] = known.emplace(call.name, call);
      const bool isBackward = graph == &graphs.backward;
      if ((isNew && (graphs.joint || isBackward)) || same->second.op != call.op)
        throw NotPossible{fmt::format(
            "an op that cannot run here is not in the {} graph, so that nothing says what its results are: {}",
            graphs.joint ? "joint" : "forward", text)};
      if (same->second.arguments != call.arguments)
        throw NotPossible{
            "an op that cannot run here has other arguments than the same op of the joint or the forward graph: " +
            text};
      ops.calls.push_back(text);
      ops.results.insert(call.results.begin(), call.results.end());
    }
  }
  return ops;
}

void requireResults(const OpaqueOps& ops, const TensorMap& filled) {
  for (const auto& [name, tensor] : filled)
    if (!ops.results.contains(name))
      throw Error(ErrorCode::badUse,
                  ops.results.empty()
                      ? "the compile has no opaque op whose result could be filled in"
                      : fmt::format("no opaque op has this result; they have {}", fmt::join(ops.results, ", ")),
                  "fill " + name);
}

}  // namespace retrograd
