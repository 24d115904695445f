#include "core/layout/rungs.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/id_vector.h"

namespace retrograd::layout {
namespace {

BoundSymbolId operationOf(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  return bound.origin.role == Role::none ? BoundSymbolId() : bound.origin.op;
}

/// Ops of the bodies of a higher-order op, nested ones included.
void appendBodies(const Document& document, BoundSymbolId op, std::vector<BoundSymbolId>& ops) {
  forEachBody(document, op, [&](SubgraphId body) {
    for (auto inner : document.subgraph(body).ops) {
      ops.push_back(inner);
      appendBodies(document, inner, ops);
    }
  });
}

class RungBuilder {
 public:
  RungBuilder(const Document& document, const Trace& trace) : document_(document), trace_(trace) {}

  std::vector<Rung> run() {
    const auto border =
        trace_.kind == TraceKind::joint ? std::min(trace_.forwardCount, trace_.ops.size()) : trace_.ops.size();
    for (std::size_t i = 0; i < border; ++i) addForward(trace_.ops[i]);
    rungOf_.assign(document_.valueCount(), -1);
    dealBackward(border);
    return inOrder();
  }

 private:
  void addForward(BoundSymbolId op) {
    const auto operation = operationOf(document_, op);
    const bool continues = operation && !rungs_.empty() && rungs_.back().operation == operation;
    // A write to an input at the end of the forward is with the op that asked for it.
    const auto known = byOperation_.find(operation);
    if (!continues && operation && known != byOperation_.end() && (document_.boundSymbol(op).effects & effect::writes))
      return rungs_[known->second.back()].ops[Lane::forward].push_back(op);
    if (!continues) addRung(op, operation);
    rungs_.back().ops[Lane::forward].push_back(op);
    if (trace_.kind == TraceKind::computation) appendBodies(document_, op, rungs_.back().ops[Lane::forward]);
  }

  void addRung(BoundSymbolId op, BoundSymbolId operation) {
    auto module = document_.boundSymbol(op).module;
    if (!module && operation) module = document_.boundSymbol(operation).module;
    if (operation) byOperation_[operation].push_back(rungs_.size());
    rungs_.push_back({operation                               ? operation
                      : trace_.kind == TraceKind::computation ? op
                                                              : BoundSymbolId(),
                      module,
                      {}});
    after_.push_back(static_cast<std::int32_t>(rungs_.size()) - 1);
  }

  /// Runs of backward ops that come from one computation op.
  struct Stretch {
    BoundSymbolId operation;
    std::size_t begin, end;
  };

  void dealBackward(std::size_t border) {
    std::vector<Stretch> stretches;
    std::unordered_map<BoundSymbolId, std::size_t> count, seen;
    for (std::size_t i = border; i < trace_.ops.size(); ++i) {
      const auto operation = operationOf(document_, trace_.ops[i]);
      if (operation && !stretches.empty() && stretches.back().operation == operation) {
        stretches.back().end = i + 1;
      } else {
        stretches.push_back({operation, i, i + 1});
        ++count[operation];
      }
    }
    std::vector<BoundSymbolId> waiting;  // come from no op, and what they read does not either
    for (const auto& stretch : stretches) {
      auto rung =
          stretch.operation ? rungFor(stretch.operation, seen[stretch.operation]++, count[stretch.operation]) : -1;
      for (auto i = stretch.begin; i < stretch.end; ++i) {
        const auto op = trace_.ops[i];
        const auto place = rung >= 0 ? rung : rungOfLastOperand(op);
        if (place < 0) {
          waiting.push_back(op);
          continue;
        }
        for (auto early : std::exchange(waiting, {})) put(early, place);
        put(op, place);
      }
    }
    if (waiting.empty()) return;
    if (rungs_.empty()) addRung(waiting.front(), {});
    for (auto op : waiting) put(op, static_cast<std::int32_t>(rungs_.size()) - 1);
  }

  void put(BoundSymbolId op, std::int32_t rung) {
    rungs_[rung].ops[Lane::backward].push_back(op);
    for (auto output : document_.outputs(op))
      if (output) rungOf_[output] = rung;
  }

  std::int32_t rungOfLastOperand(BoundSymbolId op) const {
    const auto operands = document_.operands(op);
    for (auto it = operands.rbegin(); it != operands.rend(); ++it)
      if (*it && rungOf_[*it] >= 0) return rungOf_[*it];
    return -1;
  }

  /// The rung of the `stretch`-th of `count` stretches that come from an operation: the backward goes through a loop's
  /// iterations in reverse.
  std::int32_t rungFor(BoundSymbolId operation, std::size_t stretch, std::size_t count) {
    auto& instances = byOperation_[operation];
    if (instances.empty()) {
      // Nothing of its forward is left: its place is where it was in the computation.
      std::int32_t before = -1;
      for (std::size_t i = 0; i < rungs_.size(); ++i)
        if (rungs_[i].operation < operation && !rungs_[i].ops[Lane::forward].empty())
          before = static_cast<std::int32_t>(i);
      instances.push_back(rungs_.size());
      rungs_.push_back({operation, document_.boundSymbol(operation).module, {}});
      after_.push_back(before);
    }
    const auto n = instances.size();
    return static_cast<std::int32_t>(instances[n - 1 - std::min(n - 1, stretch * n / std::max<std::size_t>(count, 1))]);
  }

  /// Rungs that have no forward part move to their places.
  std::vector<Rung> inOrder() {
    std::vector<std::size_t> order(rungs_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return after_[a] < after_[b]; });
    std::vector<Rung> sorted;
    sorted.reserve(rungs_.size());
    for (auto i : order) sorted.push_back(std::move(rungs_[i]));
    return sorted;
  }

  const Document& document_;
  const Trace& trace_;
  std::vector<Rung> rungs_;
  std::vector<std::int32_t> after_;  ///< by rung: itself, or the rung it is put behind
  std::unordered_map<BoundSymbolId, std::vector<std::size_t>> byOperation_;
  IdVector<ValueId, std::int32_t> rungOf_;  ///< of what a backward op makes; -1: of no other
};

}  // namespace

std::vector<Rung> rungsOf(const Document& document, const Trace& trace) { return RungBuilder(document, trace).run(); }

}  // namespace retrograd::layout
