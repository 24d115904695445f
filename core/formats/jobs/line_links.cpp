#include "core/formats/jobs/line_links.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace retrograd::jobs {
namespace {

using Kind = fx::Expression::Kind;

/// "aten.gelu_backward.default" and "aten.gelu.default" have the same name.
std::string_view opFamily(const fx::Node& node) {
  if (!node.call.is(Kind::call) || !node.call.items[0].is(Kind::path)) return {};
  std::string_view target = node.call.items[0].text;
  target = target.substr(0, target.rfind('.'));
  target = target.substr(target.rfind('.') + 1);
  if (target.ends_with("_backward")) target.remove_suffix(9);
  return target;
}

}  // namespace

std::map<std::string, ForwardLink> linksByLine(const fx::Graph& forward, std::size_t forwardNodes,
                                               const fx::Graph& backward) {
  std::map<std::pair<std::string_view, int>, std::vector<const fx::Node*>> byLine;
  for (std::size_t i = 0; i < std::min(forwardNodes, forward.nodes.size()); ++i) {
    const auto& node = forward.nodes[i];
    if (node.source == fx::noIndex || !node.call.is(Kind::call)) continue;
    const auto& source = forward.sources[node.source];
    if (!source.file.empty() && !source.backward) byLine[{source.file, source.line}].push_back(&node);
  }
  std::map<std::string, ForwardLink> links;
  const auto tangent = std::find_if(backward.inputs.begin(), backward.inputs.end(),
                                    [](const auto& input) { return input.name.starts_with("tangents_"); });
  for (const auto& node : backward.nodes) {
    if (!node.call.is(Kind::call)) continue;
    if (tangent != backward.inputs.end()) links[node.name] = {tangent->name, {}};
    if (node.source == fx::noIndex) continue;
    const auto& source = backward.sources[node.source];
    const auto found = byLine.find({source.file, source.line});
    if (found == byLine.end()) continue;
    const auto& candidates = found->second;
    const auto same = std::find_if(candidates.begin(), candidates.end(),
                                   [&](const auto* candidate) { return opFamily(*candidate) == opFamily(node); });
    const auto* chosen = same == candidates.end() ? candidates.back() : *same;
    if (chosen->call.items[0].text.starts_with("torch.ops."))
      links[node.name] = {chosen->name, chosen->call.items[0].text};
  }
  return links;
}

std::size_t backwardBorder(const fx::Graph& joint) {
  const auto isTangent = [](const fx::Input& input) {
    return input.descriptor.text.find("TangentAOTInput(") != std::string::npos || input.name.starts_with("tangents_");
  };
  std::vector<char> depends(joint.valueCount(), 0), isNeeded(joint.valueCount(), 0);
  std::size_t primals = 0;
  for (std::size_t i = 0; i < joint.inputs.size(); ++i) {
    depends[i] = isTangent(joint.inputs[i]);
    primals += !depends[i];
  }
  // What the results come from is of the forward, also where a gradient within the program made it.
  for (std::size_t i = 0; i < joint.outputs.size() - std::min(joint.outputs.size(), primals); ++i)
    fx::forEachValue(joint.outputs[i].value, [&](std::size_t value) { isNeeded[value] = 1; });
  for (std::size_t i = joint.nodes.size(); i-- > 0;)
    if (isNeeded[joint.inputs.size() + i])
      fx::forEachValue(joint.nodes[i].call, [&](std::size_t value) { isNeeded[value] = 1; });
  for (std::size_t i = 0; i < joint.nodes.size(); ++i) {
    const auto& node = joint.nodes[i];
    bool isBackward = node.source != fx::noIndex && joint.sources[node.source].backward;
    fx::forEachValue(node.call, [&](std::size_t value) { isBackward |= depends[value] != 0; });
    if (isBackward && !isNeeded[joint.inputs.size() + i]) return i;
  }
  return joint.nodes.size();
}

}  // namespace retrograd::jobs
