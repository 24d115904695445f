#include "views/session/program.h"

namespace retrograd::views {

Program::Program(std::shared_ptr<const Analysis> analysis) : analysis_(std::move(analysis)) {
  forwardSize_ = analysis_->forward.ops.size();
  backwardSize_ = analysis_->backward.ops.size();
  positions_.assign(analysis_->document->boundSymbolCount(), -1);
  for (std::size_t i = 0; i < size(); ++i) positions_[static_cast<std::size_t>(opAt(i).index)] = static_cast<std::int32_t>(i);
}

BoundSymbolId Program::opAt(std::size_t position) const {
  if (position >= size()) return {};
  return position < forwardSize_ ? analysis_->forward.ops[position] : analysis_->backward.ops[position - forwardSize_];
}

std::optional<std::size_t> Program::positionOf(BoundSymbolId op) const {
  const auto target = executed(op);
  if (!target) return std::nullopt;
  return static_cast<std::size_t>(positions_[static_cast<std::size_t>(target.index)]);
}

BoundSymbolId Program::executed(BoundSymbolId op) const {
  if (!analysis_ || !op) return {};
  const auto runs = [&](BoundSymbolId id) { return positions_[static_cast<std::size_t>(id.index)] >= 0; };
  if (runs(op)) return op;
  if (analysis_->document->boundSymbol(op).origin.role != Role::none) return {};
  for (auto derived : analysis_->links.derived(op))
    if (runs(derived)) return derived;
  return {};
}

bool Program::sameGroup(std::size_t a, std::size_t b) const {
  if ((a < forwardSize_) != (b < forwardSize_)) return false;
  const auto& document = *analysis_->document;
  const auto x = OriginLinks::origin(document, opAt(a)), y = OriginLinks::origin(document, opAt(b));
  return x && x == y;
}

std::size_t Program::stepOver(std::size_t from, const std::set<BoundSymbolId>& breakpoints) const {
  if (from >= size()) return size();
  auto to = from + 1;
  while (to < size() && sameGroup(from, to) && !breakpoints.contains(opAt(to))) ++to;
  return to;
}

std::size_t Program::stepOverBack(std::size_t from, const std::set<BoundSymbolId>& breakpoints) const {
  if (from == 0) return 0;
  auto to = from - 1;
  while (to > 0 && sameGroup(from - 1, to - 1) && !breakpoints.contains(opAt(to))) --to;
  return to;
}

}  // namespace retrograd::views
