#include "core/pipeline/measure.h"

#include <unordered_map>

#include "core/debug/session.h"

namespace retrograd {

std::vector<double> timeCosts(const std::shared_ptr<const Analysis>& whole, const Progress& progress) {
  SessionOptions options;
  options.keepHistory = false;
  Session session(whole, options);
  session.runTo(session.size(), progress);
  session.restart();
  session.runTo(session.size(), progress);

  const auto& document = *whole->document;
  const auto& ops = whole->computation().trace.ops;
  std::unordered_map<BoundSymbolId, std::size_t> position;
  for (std::size_t i = 0; i < ops.size(); ++i) position.emplace(ops[i], i);
  std::vector<double> cost(ops.size(), 0);
  for (std::size_t i = 0; i < session.size(); ++i) {
    auto op = document.boundSymbol(session.opAt(i)).origin.op;
    while (op && document.boundSymbol(op).parent && !position.contains(op)) op = document.boundSymbol(op).parent;
    if (const auto it = position.find(op); op && it != position.end()) cost[it->second] += session.measures()[i].seconds;
  }
  return cost;
}

}  // namespace retrograd
