#pragma once
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/formats/files/mapping_watch.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {

/// Interprets a computation with LibTorch's autograd on, higher-order ops included. In-place ops write in place.
class EagerInterpreter {
 public:
  explicit EagerInterpreter(const Analysis& analysis);

  void bind(ValueId id, c10::IValue value);
  const c10::IValue& value(ValueId id) const;
  void run(const std::vector<BoundSymbolId>& ops);
  /// As run() with the ops of a whole trace, of which only inputs and outputs stay; what autograd saves stays there.
  void runTrace(const Trace& trace);
  /// What to do with each tensor that an op gives, in regions too.
  void onTensor(std::function<void(const at::Tensor&)> visitor) { onTensor_ = std::move(visitor); }
  /// Whether the value was not computed because of an opaque op.
  bool isLeftOut(ValueId id) const { return walk_ && left_.reason(id); }

 private:
  void runAny(BoundSymbolId op);
  void runOp(BoundSymbolId op);
  void runHigherOrder(BoundSymbolId op);
  void runNumber(BoundSymbolId op);
  void runWithEffects(BoundSymbolId op, const CallPattern& pattern);
  std::vector<c10::IValue> runSubgraph(const Subgraph& graph, const std::vector<c10::IValue>& arguments);
  std::vector<c10::IValue> loop(const std::string& kind, const Subgraph& graph,
                                const std::vector<std::vector<c10::IValue>>& lists);
  c10::IValue argument(BoundSymbolId op, const Argument& argument) const;
  std::vector<c10::IValue> arguments(BoundSymbolId op, const Argument& list) const;
  void bindOutputs(BoundSymbolId op, const std::vector<c10::IValue>& results);

  const Analysis& analysis_;
  const Document& document_;
  std::unordered_map<std::int32_t, c10::IValue> values_;
  LeftOut left_;
  std::optional<LeftOutWalk> walk_;  // where there are opaque ops
  FilesInUse files_;                 // that tensors lie in
  std::function<void(const at::Tensor&)> onTensor_;
};

}  // namespace retrograd
