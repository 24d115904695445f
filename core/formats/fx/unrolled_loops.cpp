#include "core/formats/fx/unrolled_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace retrograd::fx {
namespace {

using Kind = Expression::Kind;
using Items = std::vector<Expression>;
using SizeOf = std::function<std::optional<std::int64_t>(const std::string&)>;

constexpr std::int64_t mostOps = 200'000;
constexpr int deepest = 30;

bool isList(const Expression& e) { return e.is(Kind::list) || e.is(Kind::tuple); }

/// A loop over the first dimension of tensors: what its body takes, in this order.
struct Loop {
  const Graph* body = nullptr;
  Items carried, over, others;
  std::int64_t length = 0;
};

class Unroller {
 public:
  Unroller(const Graph& graph, const SizeOf& sizes, int depth)
      : from_(graph), sizes_(sizes), depth_(depth), to_(graph) {
    to_.nodes.clear();
  }

  Graph run() {
    moved_.resize(from_.valueCount());
    for (std::size_t i = 0; i < from_.inputs.size(); ++i) moved_[i] = valueAt(static_cast<std::int64_t>(i));
    for (std::size_t n = 0; n < from_.nodes.size(); ++n) visit(n);
    for (auto& output : to_.outputs) output.value = moved(output.value, moved_);
    return std::move(to_);
  }

 private:
  static Expression moved(const Expression& e, const Items& values) {
    if (e.is(Kind::value)) return values[e.valueIndex()];
    auto copy = e;
    for (auto& item : copy.items) item = moved(item, values);
    return copy;
  }

  Expression add(Node node) {
    to_.nodes.push_back(std::move(node));
    return valueAt(static_cast<std::int64_t>(to_.valueCount() - 1));
  }

  void visit(std::size_t n) {
    const auto& node = from_.nodes[n];
    const auto value = from_.inputs.size() + n;
    auto copy = node;
    if (const auto loop = loopOf(node.call)) {
      results_.emplace(value, unroll(node, *loop));
      copy.call = path("self." + node.name);  // nobody reads it any more
    } else if (const auto* result = resultOf(node.call)) {
      copy.call = *result;
    } else {
      copy.call = moved(node.call, moved_);
    }
    moved_[value] = add(std::move(copy));
  }

  /// What an item of a loop that was unrolled is; null for any other call.
  const Expression* resultOf(const Expression& e) const {
    if (!e.is(Kind::item) || !e.items[0].is(Kind::value) || !e.items[1].is(Kind::integer)) return nullptr;
    const auto loop = results_.find(e.items[0].valueIndex());
    if (loop == results_.end() || e.items[1].integer < 0 || e.items[1].integer >= std::ssize(loop->second))
      return nullptr;
    return &loop->second[static_cast<std::size_t>(e.items[1].integer)];
  }

  const Graph* bodyOf(const Expression& e) const {
    if (!e.is(Kind::value) || e.valueIndex() < from_.inputs.size()) return nullptr;
    const auto attribute = ownAttribute(from_.nodes[e.valueIndex() - from_.inputs.size()].call);
    return attribute ? from_.body(*attribute) : nullptr;
  }

  /// How long the tensors are that a loop is over.
  std::optional<std::int64_t> lengthOf(const Items& over) const {
    std::optional<std::int64_t> length;
    for (const auto& e : over) {
      const auto type = e.is(Kind::value) ? from_.valueType(e.valueIndex()) : noIndex;
      if (type == noIndex || from_.types[type].kind != Type::Kind::tensor || from_.types[type].sizes.empty())
        return std::nullopt;
      const auto size = sizes_(from_.types[type].sizes.front());
      if (!size || (length && *length != *size)) return std::nullopt;
      length = size;
    }
    return length;
  }

  std::optional<Loop> loopOf(const Expression& e) const {
    const bool isScan = e.isCallOf("torch.ops.higher_order.scan");
    if ((!isScan && !e.isCallOf("torch.ops.higher_order.map_impl")) || depth_ > deepest) return std::nullopt;
    const std::size_t lists = isScan ? 3 : 2;
    if (e.items.size() != 2 + lists || !std::all_of(e.items.begin() + 2, e.items.end(), isList)) return std::nullopt;
    Loop loop;
    loop.body = bodyOf(e.items[1]);
    if (isScan) loop.carried = e.items[2].items;
    loop.over = e.items[lists].items;
    loop.others = e.items[lists + 1].items;
    const auto length = lengthOf(loop.over);
    if (loop.body == nullptr || !length || *length < 1 ||
        *length > mostOps / std::max<std::int64_t>(1, std::ssize(loop.body->nodes)) ||
        loop.body->inputs.size() != loop.carried.size() + loop.over.size() + loop.others.size() ||
        loop.body->outputs.size() < loop.carried.size())
      return std::nullopt;
    loop.length = *length;
    return loop;
  }

  /// The results of a loop: what is carried, then what each step gave, stacked.
  Items unroll(const Node& node, const Loop& loop) {
    const auto body = Unroller(*loop.body, sizes_, depth_ + 1).run();
    const auto types = static_cast<std::uint32_t>(to_.types.size()),
               sources = static_cast<std::uint32_t>(to_.sources.size());
    to_.types.insert(to_.types.end(), body.types.begin(), body.types.end());
    to_.sources.insert(to_.sources.end(), body.sources.begin(), body.sources.end());
    to_.bodies.insert(to_.bodies.end(), body.bodies.begin(), body.bodies.end());
    Items carried;
    for (const auto& e : loop.carried) carried.push_back(moved(e, moved_));
    std::vector<Items> given(body.outputs.size() - carried.size());
    for (std::int64_t step = 0; step < loop.length; ++step) {
      const auto prefix = fmt::format("{}_{}_", node.name, step);
      Items values = carried;
      for (std::size_t k = 0; k < loop.over.size(); ++k)
        values.push_back(
            add({fmt::format("{}x{}", prefix, k), noIndex, node.source,
                 callOf("torch.ops.aten.select.int",
                        {moved(loop.over[k], moved_), leaf(Kind::integer, {}, 0), leaf(Kind::integer, {}, step)}),
                 node.line}));
      for (const auto& e : loop.others) values.push_back(moved(e, moved_));
      for (const auto& inner : body.nodes) {
        auto copy = inner;
        copy.name = prefix + inner.name;
        if (copy.type != noIndex) copy.type += types;
        if (copy.source != noIndex) copy.source += sources;
        copy.call = moved(inner.call, values);
        values.push_back(add(std::move(copy)));
      }
      carried.clear();
      for (std::size_t k = 0; k < body.outputs.size(); ++k) {
        auto result = moved(body.outputs[k].value, values);
        if (k < loop.carried.size()) carried.push_back(std::move(result));
        else given[k - loop.carried.size()].push_back(std::move(result));
      }
    }
    Items results = std::move(carried);
    for (std::size_t k = 0; k < given.size(); ++k) {
      const bool isTensor =
          std::all_of(given[k].begin(), given[k].end(), [](const auto& e) { return e.is(Kind::value); });
      results.push_back(
          isTensor
              ? add({fmt::format("{}_stack_{}", node.name, k), noIndex, node.source,
                     callOf("torch.ops.aten.stack.default", {with(Kind::list, {}, std::move(given[k]))}), node.line})
              : Expression());
    }
    return results;
  }

  const Graph& from_;
  const SizeOf& sizes_;
  int depth_;
  Graph to_;
  Items moved_;                                     ///< by value of `from_`
  std::unordered_map<std::size_t, Items> results_;  ///< by loop (a value of `from_`)
};

}  // namespace

Graph withUnrolledLoops(const Graph& graph, const SizeOf& sizes) {
  const auto isLoop = [](const Node& node) {
    return node.call.isCallOf("torch.ops.higher_order.scan") || node.call.isCallOf("torch.ops.higher_order.map_impl");
  };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), isLoop)) return graph;
  return Unroller(graph, sizes, 0).run();
}

}  // namespace retrograd::fx
