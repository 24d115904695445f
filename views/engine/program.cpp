#include "views/engine/program.h"

namespace retrograd::views {

Program::Program(std::shared_ptr<const Analysis> analysis) : analysis_(analysis), steps_(std::move(analysis)) {
  positions_.assign(analysis_->document->boundSymbolCount(), -1);
  for (std::size_t i = 0; i < size(); ++i) positions_[opAt(i).index] = static_cast<std::int32_t>(i);
}

std::optional<std::size_t> Program::positionOf(BoundSymbolId op) const {
  const auto target = executed(op);
  if (!target) return std::nullopt;
  return static_cast<std::size_t>(positions_[target.index]);
}

BoundSymbolId Program::executed(BoundSymbolId op) const {
  if (!analysis_ || !op) return {};
  const auto runs = [&](BoundSymbolId id) { return positions_[id.index] >= 0; };
  if (runs(op)) return op;
  if (analysis_->document->boundSymbol(op).origin.role != Role::none) return {};
  for (auto derived : analysis_->links.derived(op))
    if (runs(derived)) return derived;
  return {};
}

}  // namespace retrograd::views
