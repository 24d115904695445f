#include "core/cut/op_costs.h"

#include "core/base/error.h"
#include "core/base/id_vector.h"
#include "core/cut/balance.h"
#include "core/split/op_cost.h"

namespace retrograd {

namespace {

/// By op of the document, the position in the computation's ops of what it comes from; -1 where it comes from none.
IdVector<BoundSymbolId, std::int32_t> originPositions(const Analysis& whole) {
  const auto& document = *whole.document;
  const auto& ops = whole.computation().trace.ops;
  IdVector<BoundSymbolId, std::int32_t> positions(document.boundSymbolCount(), -1);
  const auto at = [&](BoundSymbolId op) -> std::int32_t& { return positions[op]; };
  for (std::size_t i = 0; i < ops.size(); ++i) at(ops[i]) = static_cast<std::int32_t>(i);
  for (const auto* trace : {&whole.forward, &whole.backward})
    for (auto op : trace->ops) {
      auto from = document.boundSymbol(op).origin.op;
      while (from && at(from) < 0 && document.boundSymbol(from).parent)
        from = document.boundSymbol(from).parent;  // out of a region
      if (from) at(op) = at(from);
    }
  return positions;
}

}  // namespace

std::vector<double> OpCosts::total() const {
  auto sums = forward;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += backward[i];
  return sums;
}

OpCosts costsByOrigin(const Analysis& whole,
                      const std::function<double(std::size_t position, BoundSymbolId op)>& costOf) {
  OpCosts costs(whole.computation().trace.ops.size());
  const auto positions = originPositions(whole);
  std::size_t position = 0;
  const auto add = [&](const Trace& trace, std::vector<double>& sums) {
    for (auto op : trace.ops) {
      const auto cost = costOf(position++, op);
      if (const auto at = positions[op]; at >= 0) sums[at] += cost;
    }
  };
  add(whole.forward, costs.forward);
  add(whole.backward, costs.backward);
  return costs;
}

OpCosts estimatedCosts(const Analysis& whole) {
  return costsByOrigin(whole,
                       [&](std::size_t, BoundSymbolId op) { return static_cast<double>(opCost(*whole.document, op)); });
}

std::vector<double> balanceCosts(const ModelFile& model, const Analysis* whole, Balance balance) {
  switch (balance) {
    case Balance::parameters: return parameterCosts(*model.document, model.computation);
    case Balance::bytes: return byteCosts(*model.document, model.computation);
    case Balance::estimate:
      if (whole) return estimatedCosts(*whole).total();
      break;
    case Balance::time: break;
  }
  throw Error(ErrorCode::internal, "times come from a run or from derived traces");
}

}  // namespace retrograd
