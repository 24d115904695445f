#include "core/torch/opinion/suspect.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "core/torch/tracing/op_table.h"

namespace retrograd {
namespace {

using Kind = fx::Expression::Kind;

bool isHalf(std::uint32_t type, const fx::Graph& graph) {
  return type != fx::noIndex && graph.types[type].kind == fx::Type::Kind::tensor &&
         (graph.types[type].dtype == DType::bf16 || graph.types[type].dtype == DType::f16);
}

/// An op that computes in 16 bits; casts and views do not.
bool computesInHalf(const fx::Node& node, const fx::Graph& graph) {
  if (!isHalf(node.type, graph) || !node.call.is(Kind::call)) return false;
  const auto symbol = lookupSymbol(
      std::string_view(node.call.items[0].text).substr(std::min<std::size_t>(10, node.call.items[0].text.size())));
  return symbol && !symbol->isView && symbol->name != "aten._to_copy.default";
}

}  // namespace

std::optional<std::size_t> producerOf(const JobGraphs& graphs, std::size_t output) {
  const auto& value = graphs.backward.outputs[output].value;
  if (!value.is(Kind::value) || value.valueIndex() < graphs.backward.inputs.size()) return std::nullopt;
  return value.valueIndex() - graphs.backward.inputs.size();
}

std::optional<std::size_t> suspectOf(const JobGraphs& graphs, const std::vector<std::size_t>& wrong,
                                     const std::vector<std::size_t>& right) {
  const auto& graph = graphs.backward;
  if (wrong.size() > 64) return std::nullopt;
  std::vector<std::uint64_t> reaches(graph.valueCount(), 0);
  std::vector<char> reachesRight(graph.valueCount(), 0);
  const auto mark = [&](std::size_t output, auto&& use) { fx::forEachValue(graph.outputs[output].value, use); };
  for (std::size_t k = 0; k < wrong.size(); ++k)
    mark(wrong[k], [&](std::size_t v) { reaches[v] |= std::uint64_t{1} << k; });
  for (const auto output : right) mark(output, [&](std::size_t v) { reachesRight[v] = 1; });
  const auto all = wrong.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << wrong.size()) - 1;
  std::optional<std::size_t> found, lowered;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const auto value = graph.inputs.size() + n;
    const bool isSuspect = reaches[value] == all && !reachesRight[value];
    if (!found && isSuspect) found = n;
    if (isSuspect && computesInHalf(graph.nodes[n], graph)) lowered = n;
    fx::forEachValue(graph.nodes[n].call, [&](std::size_t v) {
      reaches[v] |= reaches[value];
      reachesRight[v] |= reachesRight[value];
    });
  }
  return lowered && !graphs.forward.inputs.empty() && !isHalf(graphs.forward.inputs[wrong.front()].type, graphs.forward)
             ? lowered
             : found;
}

}  // namespace retrograd
