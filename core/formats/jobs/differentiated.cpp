#include "core/formats/jobs/differentiated.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/formats/jobs/line_links.h"

namespace retrograd {
bool fitsJoint(const JobGraphs& graphs) {
  if (!graphs.joint) return false;
  const auto& joint = *graphs.joint;
  const auto primals = primalsOf(graphs.forward);
  if (joint.inputs.size() < primals || joint.outputs.size() < graphs.results) return false;
  for (std::size_t i = 0; i < primals; ++i)
    if (joint.inputs[i].name != graphs.forward.inputs[i].name) return false;
  return true;
}

std::string shortList(const std::vector<std::string>& texts) {
  constexpr std::size_t shown = 4;
  const auto end = texts.begin() + std::min(shown, texts.size());
  auto list = fmt::format("{}", fmt::join(texts.begin(), end, "; "));
  if (texts.size() > shown) list += fmt::format("; and {} more", texts.size() - shown);
  return list;
}

Differentiated differentiatedForward(const JobGraphs& graphs, bool takesJoint) {
  // Nothing is differentiated of a graph for inference, or of one that has its backward inside.
  const bool isWhole = graphs.computed == jobs::GraphKind::inference || graphs.computed == jobs::GraphKind::other;
  Differentiated found{graphs.forward, false, graphs.dynamo || isWhole, {}, graphs.forwardPlace};
  if (!graphs.dynamo || isWhole) return found;
  std::vector<char> differentiated;
  for (std::size_t i = 0; i < primalsOf(graphs.forward); ++i) differentiated.push_back(isDifferentiated(graphs, i));
  if (takesJoint && fitsJoint(graphs)) {
    found.cuts = jobs::autogradCuts(*graphs.joint, jobs::backwardBorder(*graphs.joint), differentiated, *graphs.dynamo);
    if (!found.cuts.matter()) {
      found.cuts = {};
      return found;
    }
    found.graph = forwardPart(*graphs.joint, graphs.results, graphs.forwardPlace);
    found.ofJoint = true;
  } else {
    found.cuts = jobs::autogradCuts(graphs.forward, graphs.forward.nodes.size(), differentiated, *graphs.dynamo);
  }
  jobs::letPass(found.graph, found.cuts);
  return found;
}

std::vector<std::string> warningsOf(const Differentiated& forward) {
  std::vector<std::string> warnings;
  if (!forward.isKnown)
    warnings.emplace_back(
        "the log has no Dynamo graph, which shows what ran under no_grad or was detached: gradients are derived as if "
        "nothing was");
  if (!forward.cuts.ownBackwards.empty())
    warnings.push_back(
        fmt::format("the program has a backward of its own (autograd.Function or a hook) at {}: gradients derived here "
                    "are those of its forward's ops",
                    shortList(forward.cuts.ownBackwards)));
  std::vector<std::string> doubts;
  for (const auto& doubt : forward.cuts.doubts) doubts.push_back(doubt.text);
  if (!doubts.empty())
    warnings.push_back(
        fmt::format("the log does not show whether autograd recorded {}: gradients through it may be cut "
                    "where the program does not cut them, or not be cut where it does",
                    shortList(doubts)));
  return warnings;
}

}  // namespace retrograd
