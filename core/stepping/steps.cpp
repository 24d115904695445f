#include "core/stepping/steps.h"

#include <algorithm>

#include "core/trace/op_traits.h"

namespace retrograd {

Steps::Steps(std::shared_ptr<const Analysis> analysis)
    : analysis_(std::move(analysis)),
      forwardSize_(analysis_->forward.ops.size()),
      backwardSize_(analysis_->backward.ops.size()) {}

BoundSymbolId Steps::opAt(std::size_t position) const {
  if (position >= size()) return {};
  return position < forwardSize_ ? analysis_->forward.ops[position] : analysis_->backward.ops[position - forwardSize_];
}

/// A region in which ops run under another mode, or are run again in the backward: it does nothing by itself.
bool Steps::isRegion(BoundSymbolId op) const { return hasTrait(analysis_->document->symbol(op).name, OpTrait::region); }

/// The ops of the computation that the position's op is within, the innermost first.
std::vector<BoundSymbolId> Steps::around(std::size_t position) const {
  std::vector<BoundSymbolId> all;
  if (position >= size()) return all;
  const auto& document = *analysis_->document;
  for (auto op = OriginLinks::origin(document, opAt(position)); op; op = document.boundSymbol(op).parent)
    if (!isRegion(op)) all.push_back(op);
  return all;
}

bool Steps::within(std::size_t position, BoundSymbolId outer) const {
  const auto all = around(position);
  return std::find(all.begin(), all.end(), outer) != all.end();
}

/// Whether the op before this position is within `outer` too, on the same side of the border.
bool Steps::joined(std::size_t position, BoundSymbolId outer) const {
  return position > 0 && position != forwardSize_ && position < size() && within(position - 1, outer) &&
         within(position, outer);
}

std::size_t Steps::endOf(std::size_t position, BoundSymbolId outer) const {
  auto end = position + 1;
  while (joined(end, outer)) ++end;
  return end;
}

std::size_t Steps::beginOf(std::size_t position, BoundSymbolId outer) const {
  while (joined(position, outer)) --position;
  return position;
}

std::size_t Steps::wholeGoal(Step step, std::size_t from) const {
  const auto border = [&](std::size_t position) { return position >= forwardSize_ ? forwardSize_ : 0; };
  switch (step) {
    case Step::into: return from + 1;
    case Step::intoBack: return from - 1;
    case Step::over: {
      BoundSymbolId whole;
      for (auto outer : around(from)) {
        if (joined(from, outer)) break;
        whole = outer;
      }
      return whole ? endOf(from, whole) : from + 1;
    }
    case Step::overBack: {
      BoundSymbolId whole;
      for (auto outer : around(from - 1)) {
        if (joined(from, outer)) break;
        whole = outer;
      }
      return whole ? beginOf(from - 1, whole) : from - 1;
    }
    case Step::out:
      for (auto outer : around(from))
        if (joined(from, outer)) return endOf(from, outer);
      return from < forwardSize_ ? forwardSize_ : size();
    case Step::outBack:
      for (auto outer : around(from))
        if (joined(from, outer)) return beginOf(from, outer);
      return border(from - 1);
  }
  return from;
}

std::size_t Steps::goal(Step step, std::size_t from, const Stops& stops) const {
  const bool back = step == Step::intoBack || step == Step::overBack || step == Step::outBack;
  from = std::min(from, size());
  if (from == (back ? 0 : size())) return from;
  const auto whole = wholeGoal(step, from);
  if (!stops) return whole;
  for (auto at = back ? from - 1 : from + 1; at != whole; back ? --at : ++at)
    if (stops(opAt(at))) return at;
  return whole;
}

}  // namespace retrograd
