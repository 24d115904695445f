#include "views/engine/program.h"

namespace retrograd::views {

Program::Program(std::shared_ptr<const Analysis> analysis) : analysis_(analysis), steps_(std::move(analysis)) {
  auto positions = std::make_shared<OpPositions>();
  positions->assign(analysis_->document->boundSymbolCount(), -1);
  for (std::size_t i = 0; i < size(); ++i) (*positions)[opAt(i)] = static_cast<std::int32_t>(i);
  positions_ = std::move(positions);
}

std::optional<std::size_t> Program::positionOf(BoundSymbolId op) const {
  const auto target = executed(op);
  if (!target) return std::nullopt;
  return static_cast<std::size_t>((*positions_)[target]);
}

BoundSymbolId Program::executed(BoundSymbolId op) const {
  if (!analysis_ || !op) return {};
  const auto runs = [&](BoundSymbolId id) { return (*positions_)[id] >= 0; };
  if (runs(op)) return op;
  if (analysis_->document->boundSymbol(op).origin.role != Role::none) return {};
  for (auto derived : analysis_->links.derived(op))
    if (runs(derived)) return derived;
  return {};
}

}  // namespace retrograd::views
