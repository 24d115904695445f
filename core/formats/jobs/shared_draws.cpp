#include "core/formats/jobs/shared_draws.h"

#include <fmt/format.h>

#include <unordered_map>

namespace retrograd {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

Expression valueOf(std::size_t value) {
  Expression e;
  e.kind = Kind::value;
  e.integer = static_cast<std::int64_t>(value);
  return e;
}

/// `items[1]` where this is `value[items[1]]` with a plain number.
std::optional<std::int64_t> itemOf(const Expression& call, std::size_t value) {
  if (!call.is(Kind::item) || !call.items[0].is(Kind::value) || !call.items[1].is(Kind::integer)) return std::nullopt;
  return call.items[0].valueIndex() == value ? std::optional(call.items[1].integer) : std::nullopt;
}

/// A call that runs the op in its argument `op`; the values are those of its arguments behind it.
bool runsWithState(const Expression& call, std::string_view path, std::size_t op) {
  return call.isCallOf(path) && call.items.size() > op && call.items[op].is(Kind::path);
}

constexpr std::string_view saves = "torch.ops.higher_order.run_and_save_rng_state",
                           repeats = "torch.ops.higher_order.run_with_rng_state";

bool isInductorDraw(const Expression& call) {
  return call.isCallOf("torch.ops.prims.inductor_random.default") ||
         call.isCallOf("torch.ops.prims.inductor_randint.default");
}

/// The call whose generator's state the output of the forward is; nullopt for anything else.
std::optional<std::size_t> callOfState(const fx::Graph& forward, std::size_t output) {
  const auto& value = forward.outputs[output].value;
  if (!value.is(Kind::value) || value.valueIndex() < forward.inputs.size()) return std::nullopt;
  const auto& item = forward.nodes[value.valueIndex() - forward.inputs.size()].call;
  if (!item.is(Kind::item) || !item.items[0].is(Kind::value) || !item.items[1].is(Kind::integer) ||
      item.items[1].integer != 0)
    return std::nullopt;
  const auto base = item.items[0].valueIndex();
  if (base < forward.inputs.size() || !runsWithState(forward.nodes[base - forward.inputs.size()].call, saves, 1))
    return std::nullopt;
  return base;
}

class Sharer {
 public:
  explicit Sharer(JobGraphs& graphs) : graphs_(graphs), forward_(graphs.forward), backward_(graphs.backward) {}

  void share() {
    std::unordered_map<std::size_t, std::size_t>
        calls;  // by input of the backward that is a state: the call of the forward
    for (std::size_t i = 0; i < backward_.inputs.size(); ++i) {
      if (!graphs_.savedFrom[i]) continue;
      if (const auto call = callOfState(forward_, *graphs_.savedFrom[i])) calls.emplace(i, *call);
    }
    drawPlainly(forward_);
    const auto first = backward_.inputs.size();
    for (std::size_t n = 0; n < backward_.nodes.size(); ++n) {
      const auto& call = backward_.nodes[n].call;
      if (isInductorDraw(call)) shareNamed(n);
      if (!runsWithState(call, repeats, 2) || !call.items[1].is(Kind::value)) continue;
      const auto drawn = calls.find(call.items[1].valueIndex());
      if (drawn == calls.end()) continue;
      if (backward_.nodes[n].type != fx::noIndex) {
        give(n, drawn->second);
        continue;
      }
      for (auto& later : backward_.nodes)
        if (const auto item = itemOf(later.call, first + n))
          give(static_cast<std::size_t>(&later - backward_.nodes.data()), forwardItem(drawn->second, *item));
      backward_.nodes[n].call = valueOf(drawn->first);  // nobody reads it
    }
    for (const auto& [input, call] : calls) backward_.inputs[input].dropped = true;
  }

 private:
  /// The three graphs have the same names.
  void shareNamed(std::size_t n) {
    for (std::size_t k = 0; k < forward_.nodes.size(); ++k)
      if (forward_.nodes[k].name == backward_.nodes[n].name && isInductorDraw(forward_.nodes[k].call))
        return give(n, forward_.inputs.size() + k);
  }

  /// The value of the forward that is this result of a call; a new one where nobody took it.
  std::size_t forwardItem(std::size_t call, std::int64_t item) {
    for (std::size_t k = 0; k < forward_.nodes.size(); ++k)
      if (itemOf(forward_.nodes[k].call, call) == item) return forward_.inputs.size() + k;
    fx::Node node;
    node.name = fmt::format("{}_item_{}", forward_.valueName(call), item);
    node.call.kind = Kind::item;
    node.call.items = {valueOf(call), Expression()};
    node.call.items[1].kind = Kind::integer;
    node.call.items[1].integer = item;
    forward_.nodes.push_back(std::move(node));
    return forward_.valueCount() - 1;
  }

  /// The node of the backward becomes this value of the forward.
  void give(std::size_t node, std::size_t value) {
    auto& call = backward_.nodes[node].call;
    call = Expression();
    call.kind = Kind::path;
    call.text = "self.drawn_in_forward";
    graphs_.shared.emplace_back(node, forward_.outputs.size());
    forward_.outputs.push_back({valueOf(value), {}, 0});
  }

  JobGraphs& graphs_;
  fx::Graph& forward_;
  fx::Graph& backward_;
};

}  // namespace

void drawPlainly(fx::Graph& forward) {
  const auto first = forward.inputs.size();
  for (std::size_t n = 0; n < forward.nodes.size(); ++n) {
    auto& call = forward.nodes[n].call;
    if (!runsWithState(call, saves, 1)) continue;
    call.items.erase(call.items.begin());
    std::vector<std::size_t> states, results;
    for (std::size_t k = n + 1; k < forward.nodes.size(); ++k) {
      const auto item = itemOf(forward.nodes[k].call, first + n);
      if (item == 0) states.push_back(first + k);
      if (item == 1) results.push_back(first + k);
    }
    for (const auto result : results) {
      for (auto& later : forward.nodes)
        if (itemOf(later.call, result)) later.call.items[0].integer = static_cast<std::int64_t>(first + n);
    }
    for (const auto& aliases : {states, results})
      for (const auto alias : aliases) forward.nodes[alias - first].call = valueOf(first + n);
    for (auto& output : forward.outputs)
      for (const auto state : states)
        if (output.value.is(Kind::value) && output.value.valueIndex() == state) output.value = Expression();
  }
}

void shareDraws(JobGraphs& graphs) { Sharer(graphs).share(); }

}  // namespace retrograd
