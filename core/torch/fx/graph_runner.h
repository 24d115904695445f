#pragma once
// Only .cpp files of this folder include this: it shows LibTorch's types.
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/fx/fx_graph.h"
#include "core/torch/tracing/computation_recorder.h"

namespace retrograd {

/// Runs a graph of torch.fx node by node. The recorder has to be installed above autograd (AboveAutograd); it sees the
/// ops. Devices in the graph are taken for the CPU. Numbers are computed here.
class GraphRunner {
 public:
  GraphRunner(const fx::Graph& graph, ComputationRecorder& recorder, Document& document, std::string path);

  /// The graph's outputs. Throws Error naming path and line.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs, const Progress& progress);
  /// Whether a device other than the CPU was named.
  bool movedDevices() const { return moved_; }

 private:
  c10::IValue evaluate(const fx::Expression& expression);
  c10::IValue call(const fx::Expression& expression);
  c10::IValue callOp(const std::string& target, const fx::Expression& expression);
  c10::IValue item(const c10::IValue& container, const c10::IValue& index) const;
  c10::IValue arithmetic(const std::string& sign, const c10::IValue& a, const c10::IValue& b) const;
  Argument argument(const fx::Expression& expression, std::vector<c10::IValue>& operands);

  const fx::Graph& graph_;
  ComputationRecorder& recorder_;
  Document& document_;
  std::string path_;
  std::vector<c10::IValue> values_;
  bool moved_ = false;
};

}  // namespace retrograd
