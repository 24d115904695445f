#include "core/torch/stages/measure.h"

#include "core/torch/session/session.h"

namespace retrograd {

OpCosts measuredCosts(const std::shared_ptr<const Analysis>& whole, const Progress& progress) {
  SessionOptions options;
  options.historyBytes = 0;
  Session session(whole, options);
  session.runTo(session.size(), progress);
  session.restart();
  session.runTo(session.size(), progress);
  const auto& measures = session.measures();
  return costsByOrigin(*whole, [&](std::size_t i, BoundSymbolId) { return measures[i].seconds; });
}

}  // namespace retrograd
