#include "core/cut/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/user_choice.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

constexpr double slack = 1.05;  ///< how much dearer than need be the dearest stage may get to send less

/// Ops of a computation between two places where it may be cut: no stage has a part of one.
struct Block {
  std::size_t begin = 0;
  double cost = 0;
};

std::vector<Block> blocksOf(const Document& document, const Computation& computation, const std::vector<double>& cost) {
  const auto& ops = computation.trace.ops;
  const auto fixed = uncuttable(document, computation);
  std::vector<Block> blocks;
  bool hasWork = true;  // markers alone make no stage: they stay with what is before them
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (blocks.empty() || (!fixed[i] && hasWork)) {
      blocks.push_back({i, 0});
      hasWork = false;
    }
    blocks.back().cost += cost[i];
    hasWork |= !isStageMarker(document, ops[i]);
  }
  if (!hasWork && blocks.size() > 1) blocks.pop_back();
  return blocks;
}

/// How many stages it takes when none may cost more than `limit`, which no single block does.
std::size_t stagesWithin(const std::vector<Block>& blocks, double limit) {
  std::size_t count = 1;
  double sum = 0;
  for (const auto& block : blocks) {
    if (sum + block.cost > limit && sum > 0) {
      ++count;
      sum = 0;
    }
    sum += block.cost;
  }
  return count;
}

double leastLimit(const std::vector<Block>& blocks, std::size_t stages) {
  double low = 0, high = 0;
  for (const auto& block : blocks) {
    low = std::max(low, block.cost);
    high += block.cost;
  }
  for (int i = 0; i < 80 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    (stagesWithin(blocks, middle) <= stages ? high : low) = middle;
    if (middle <= low && middle >= high) break;
  }
  return high;
}

/// The cuts that send fewest bytes when no stage costs more than `limit`: for each number of stages the least sum up to
/// each block, over a window that slides.
Cuts cheapestCuts(const std::vector<Block>& blocks, const std::vector<std::int64_t>& bytes, std::size_t stages,
                  double limit) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const std::size_t n = blocks.size();
  std::vector<double> before(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) before[i + 1] = before[i] + blocks[i].cost;
  const double allowed = limit + 1e-9 * before[n];
  std::vector<double> best(n + 1, never);
  best[0] = 0;
  std::vector<std::vector<std::int32_t>> from(stages, std::vector<std::int32_t>(n + 1, -1));
  for (std::size_t stage = 0; stage < stages; ++stage) {
    std::vector<double> next(n + 1, never);
    std::deque<std::size_t> window;  // starts of this stage, by rising sum
    for (std::size_t end = 1; end <= n; ++end) {
      const auto start = end - 1;
      while (!window.empty() && best[window.back()] >= best[start]) window.pop_back();
      if (best[start] != never) window.push_back(start);
      while (!window.empty() && before[end] - before[window.front()] > allowed) window.pop_front();
      if (window.empty()) continue;
      next[end] = best[window.front()] + (end < n ? static_cast<double>(bytes[blocks[end].begin]) : 0);
      from[stage][end] = static_cast<std::int32_t>(window.front());
    }
    best = std::move(next);
  }
  Cuts cuts;
  auto end = n;
  for (std::size_t stage = stages; stage-- > 1;) {
    end = from[stage][end];
    cuts.push_back(blocks[end].begin);
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

/// Every op's operands and outputs at its position.
template <class Visit>
void forEachUse(const Document& document, const Computation& computation, Visit&& visit) {
  for (std::size_t i = 0; i < computation.trace.ops.size(); ++i) {
    for (auto id : document.operands(computation.trace.ops[i]))
      if (id) visit(i, id, false);
    for (auto id : document.outputs(computation.trace.ops[i]))
      if (id) visit(i, id, true);
  }
}

std::vector<double> weightCosts(const Document& document, const Computation& computation,
                                const std::function<double(const InputSpec&, ValueId)>& costOf) {
  std::unordered_map<ValueId, const InputSpec*> weights;
  for (const auto& input : computation.inputs)
    if (input.value && (input.kind == InputKind::parameter || input.kind == InputKind::buffer))
      weights.emplace(input.value, &input);
  std::vector<double> cost(computation.trace.ops.size(), 0);
  std::unordered_set<StorageId> paid;
  forEachUse(document, computation, [&](std::size_t i, ValueId id, bool isOutput) {
    if (const auto weight = weights.find(id);
        !isOutput && weight != weights.end() && paid.insert(document.value(id).storage).second)
      cost[i] += costOf(*weight->second, id);
  });
  return cost;
}

}  // namespace

std::vector<char> uncuttable(const Document& document, const Computation& computation) {
  const auto& ops = computation.trace.ops;
  std::unordered_map<StorageId, std::size_t> first, lastWrite;
  forEachUse(document, computation, [&](std::size_t i, ValueId id, bool) {
    if (const auto storage = document.value(id).storage) first.try_emplace(storage, i);
  });
  for (std::size_t i = 0; i < ops.size(); ++i)
    for (auto id : writtenOperands(document, ops[i]))
      if (const auto storage = document.value(id).storage) lastWrite[storage] = i;
  // A buffer's new content that the graph returns: what reads the old one belongs to the stage that makes the new.
  for (const auto& output : computation.outputs) {
    if (output.kind != OutputKind::bufferMutation && output.kind != OutputKind::parameterMutation) continue;
    if (!output.value || !document.value(output.value).producer) continue;
    const auto made = std::find(ops.begin(), ops.end(), document.value(output.value).producer);
    for (const auto& input : computation.inputs)
      if (made != ops.end() && input.value && input.target == output.target && document.value(input.value).storage) {
        auto& write = lastWrite[document.value(input.value).storage];
        write = std::max<std::size_t>(write, made - ops.begin());
      }
  }
  std::vector<int> opened(ops.size() + 2, 0);
  for (const auto& [storage, write] : lastWrite) {
    const auto begin = first.find(storage);
    if (begin == first.end() || begin->second >= write) continue;
    ++opened[begin->second + 1];
    --opened[write + 1];
  }
  std::partial_sum(opened.begin(), opened.end(), opened.begin());
  std::vector<char> fixed(ops.size() + 1, 0);
  for (std::size_t i = 0; i <= ops.size(); ++i) fixed[i] = opened[i] > 0 || i == 0 || i == ops.size();
  return fixed;
}

std::vector<std::int64_t> bytesAcross(const Document& document, const Computation& computation) {
  const auto size = computation.trace.ops.size() + 2;
  std::unordered_map<ValueId, std::pair<std::size_t, std::size_t>> life;  // made at, last used at
  forEachUse(document, computation, [&](std::size_t i, ValueId id, bool isOutput) {
    if (isOutput) life.try_emplace(id, i, i);
    else if (const auto it = life.find(id); it != life.end()) it->second.second = i;
  });
  std::vector<std::int64_t> bytes(size, 0);
  for (const auto& [id, span] : life) {
    const std::int64_t each = document.isTensor(id) ? document.meta(id).bytes() : 8;
    bytes[span.first + 1] += each;
    bytes[span.second + 1] -= each;
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  bytes.resize(size - 1);
  return bytes;
}

Cuts balancedCuts(const Document& document, const Computation& computation, std::size_t stages,
                  const std::vector<double>& cost) {
  if (stages < 2) return {};
  const auto blocks = blocksOf(document, computation, cost);
  if (blocks.size() < stages) {
    const auto& ops = computation.trace.ops;
    const std::size_t count =
        std::count_if(ops.begin(), ops.end(), [&](BoundSymbolId op) { return !isStageMarker(document, op); });
    const char* why =
        count > blocks.size() ? ", because a cut may not part a write in place from what shares its memory" : "";
    throw Error(ErrorCode::badUse,
                fmt::format("the model has {} ops and cannot be cut into {} stages; {} is the most{}", count, stages,
                            blocks.size(), why),
                nameOf(UserChoice::stages));
  }
  return cheapestCuts(blocks, bytesAcross(document, computation), stages, slack * leastLimit(blocks, stages));
}

std::vector<double> parameterCosts(const Document& document, const Computation& computation) {
  return weightCosts(document, computation, [&](const InputSpec& input, ValueId id) {
    return input.kind == InputKind::parameter ? static_cast<double>(document.meta(id).elements()) : 0.0;
  });
}

std::vector<double> byteCosts(const Document& document, const Computation& computation) {
  auto cost = weightCosts(document, computation, [&](const InputSpec&, ValueId id) {
    return document.isTensor(id) ? static_cast<double>(document.meta(id).bytes()) : 0.0;
  });
  std::unordered_set<StorageId> seen;
  for (const auto& input : computation.inputs)
    if (input.value && document.value(input.value).storage) seen.insert(document.value(input.value).storage);
  forEachUse(document, computation, [&](std::size_t i, ValueId id, bool isOutput) {
    const auto storage = document.value(id).storage;
    if (isOutput && storage && seen.insert(storage).second)
      cost[i] += static_cast<double>(document.storage(storage).bytes);
  });
  return cost;
}

}  // namespace retrograd
