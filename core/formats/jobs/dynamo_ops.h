#pragma once
#include <string>
#include <vector>

#include "core/formats/fx/fx_graph.h"

namespace retrograd::jobs {

/// A call of Dynamo's graph, and what it means for autograd.
struct DynamoOp {
  std::string name;  ///< without module and class: "sum", "matmul", "_get_data_attr"; the word of an operator: "mul"
  const fx::Source* source = nullptr;  ///< null where the graph has none
  bool recorded = true;   ///< false under no_grad and inference_mode, and for torch.autograd.grad without create_graph
  bool detaches = false;  ///< detach(), .data
  bool writes = false;    ///< in place
  bool hasOwnBackward = false;  ///< in the forward of an autograd.Function, or a hook
  bool isInner = false;        ///< such a backward, which runs in the forward: a gradient within the function passes it
  bool detachedLater = false;  ///< its result is detached in place, and was read before that
  bool makesTensor = false;    ///< its result is a tensor, as the graph declares it
};

/// The calls of Dynamo's graph in the order in which they ran, those of bodies (checkpointing, autograd.Function) in
/// their place. Points into the graph.
std::vector<DynamoOp> dynamoOps(const fx::Graph& dynamo);

/// The word of an operator: "add" of "+", "setitem" of "[]="; "operator" for one that is not known.
std::string operatorName(const std::string& sign);

}  // namespace retrograd::jobs
