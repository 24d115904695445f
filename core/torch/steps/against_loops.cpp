#include "core/torch/steps/against_loops.h"

#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/formats/recording/recording.h"
#include "core/judge/report.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/steps/optimizer_updates.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

using Names = std::set<std::string>;

bool isSame(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.layout() == b.layout() && at::equal(a, b);
}

/// Something that flowed in, of no name.
struct Given {
  ValueId value;
  at::Tensor tensor;
};

std::vector<Given> dataOf(const Analysis& analysis) {
  std::vector<Given> found;
  const auto& computation = analysis.computation();
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    const auto value = computation.trace.inputs[i];
    if (computation.inputs[i].kind != InputKind::user || !value || !analysis.document->isTensor(value)) continue;
    const auto tensor = inputTensor(analysis, i);
    if (tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_meta()) found.push_back({value, tensor});
  }
  return found;
}

std::map<std::string, at::Tensor> weightsOf(const Analysis& analysis) {
  std::map<std::string, at::Tensor> found;
  const auto& computation = analysis.computation();
  for (std::size_t i = 0; i < computation.inputs.size(); ++i)
    if (computation.inputs[i].kind == InputKind::parameter && computation.trace.inputs[i])
      if (const auto tensor = inputTensor(analysis, i); tensor.defined() && tensor.layout() == at::kStrided)
        found.emplace(computation.inputs[i].target, tensor);
  return found;
}

/// Takes what both have from both lists.
void takeEqual(std::vector<Given>& mine, std::vector<Given>& right) {
  std::erase_if(mine, [&](const Given& one) {
    const auto same = std::ranges::find_if(right, [&](const Given& other) { return isSame(one.tensor, other.tensor); });
    if (same == right.end()) return false;
    right.erase(same);
    return true;
  });
}

BoundSymbolId readerOf(const Analysis& analysis, ValueId value) {
  for (const auto op : analysis.joint.ops)
    if (std::ranges::find(analysis.document->operands(op), value) != analysis.document->operands(op).end()) return op;
  return {};
}

/// Data of equal sizes that hold other numbers.
void compareData(const Analysis& mine, const Analysis& right, std::vector<Claim>& claims) {
  auto own = dataOf(mine), other = dataOf(right);
  takeEqual(own, other);
  std::vector<std::string> places;
  Claim claim{.by = Producer::run, .severity = Severity::suspicion, .kind = "against-data", .command = "source"};
  for (const auto& one : own) {
    const auto alike = std::ranges::find_if(other, [&](const Given& given) {
      return given.tensor.sizes() == one.tensor.sizes() && given.tensor.scalar_type() == one.tensor.scalar_type();
    });
    if (alike == other.end()) continue;
    other.erase(alike);
    const auto op = readerOf(mine, one.value);
    if (!claim.op) claim.op = op;
    if (!claim.value) claim.value = one.value;
    const auto line = op ? recordedLine(*mine.document, op) : std::string();
    places.push_back(
        (op ? "what " + mine.document->symbol(op).name + " reads" : mine.document->displayName(one.value)) +
        (line.empty() ? "" : " at " + line));
  }
  if (places.empty()) return;
  claim.sentence = fmt::format(
      "it began with other data than the recording that is right: {}; gradients are not compared", namesText(places));
  claims.push_back(std::move(claim));
}

void compareWeights(const Analysis& mine, const Analysis& right, std::vector<Claim>& claims) {
  const auto own = weightsOf(mine), other = weightsOf(right);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : own)
    if (const auto found = other.find(name); found != other.end() && !isSame(tensor, found->second))
      names.push_back(name);
  if (names.empty()) return;
  claims.push_back({.by = Producer::run,
                    .severity = Severity::suspicion,
                    .kind = "against-weights",
                    .subject = names.front(),
                    .sentence = fmt::format("it began with other weights of {} than the recording that is right; "
                                            "gradients are not compared",
                                            namesText(names)),
                    .parameters = names});
}

/// Of tied ones the first.
Names parametersOf(const StepRecording& recording) {
  Names names;
  for (const auto& one : recording.parameters) names.insert(one.name);
  return names;
}

Names membersOf(const StepRecording& recording) {
  Names names;
  for (const auto& optimizer : recording.optimizers)
    for (const auto& one : optimizer.parameters) names.insert(one.name);
  return names;
}

Names gradientsOf(const Analysis& analysis) {
  Names names;
  for (const auto op : analysis.joint.ops)
    if (const auto accumulates = analysis.file.recording->op(op).accumulates)
      names.emplace(analysis.document->text(accumulates));
  return names;
}

std::vector<std::string> without(const Names& all, const Names& these) {
  std::vector<std::string> left;
  std::ranges::set_difference(all, these, std::back_inserter(left));
  return left;
}

/// `mine`, `right`: sentences on what only the one has, around its names.
void compareNames(const char* kind, const Names& own, const Names& other, const char* mine, const char* right,
                  std::vector<Claim>& claims) {
  if (own.empty() || other.empty()) return;
  const auto add = [&](const std::vector<std::string>& names, const char* sentence) {
    if (!names.empty())
      claims.push_back({.by = Producer::run,
                        .kind = kind,
                        .subject = names.front(),
                        .sentence = fmt::format(fmt::runtime(sentence), namesText(names)),
                        .parameters = names});
  };
  add(without(other, own), right);
  add(without(own, other), mine);
}

/// What happens to gradients up to the first update, each act once: "backward, unscale, clip, update".
struct Act {
  std::string name;
  BoundSymbolId op;
};
std::vector<Act> actsOf(const Analysis& analysis) {
  std::vector<Act> acts;
  const auto& recording = *analysis.file.recording;
  for (const auto op : analysis.joint.ops) {
    const auto& recorded = recording.op(op);
    std::string name;
    if (unscales(analysis.document->symbol(op).name)) name = "unscale";
    else if (recorded.phase == Phase::backward || recorded.phase == Phase::accumulation) name = "backward";
    else if (recorded.phase == Phase::clip) name = "clip";
    else if (recorded.phase == Phase::optimizer && !writtenOperands(*analysis.document, op).empty()) name = "update";
    if (!name.empty() && (acts.empty() || acts.back().name != name)) acts.push_back({name, op});
    if (name == "update") break;
  }
  return acts;
}

std::string textOf(const std::vector<Act>& acts) {
  std::string text;
  for (const auto& act : acts) text += (text.empty() ? "" : ", ") + act.name;
  return text;
}

/// Two loops of one kind: another number of backwards is no other order.
std::vector<Act> withoutRepeats(std::vector<Act> acts) {
  std::vector<Act> once;
  for (auto& act : acts)
    if (std::ranges::none_of(once, [&](const Act& one) { return one.name == act.name; }))
      once.push_back(std::move(act));
  return once;
}

void compareOrder(const Analysis& mine, const Analysis& right, std::vector<Claim>& claims) {
  const auto own = withoutRepeats(actsOf(mine)), other = withoutRepeats(actsOf(right));
  const auto mineText = textOf(own), otherText = textOf(other);
  if (own.empty() || other.empty() || mineText == otherText) return;
  std::size_t first = 0;
  while (first < own.size() && first < other.size() && own[first].name == other[first].name) ++first;
  const auto op = first < own.size() ? own[first].op : own.back().op;
  claims.push_back(
      {.by = Producer::run,
       .kind = "against-order",
       .sentence = fmt::format("the order is {}; in the recording that is right it is {}", mineText, otherText),
       .line = recordedLine(*mine.document, op),
       .op = op,
       .command = "source"});
}

}  // namespace

std::vector<Claim> otherBeginnings(const Analysis& mine, const Analysis& right) {
  std::vector<Claim> claims;
  compareData(mine, right, claims);
  compareWeights(mine, right, claims);
  return claims;
}

std::vector<Claim> otherLoops(const Analysis& mine, const Analysis& right) {
  std::vector<Claim> claims;
  const auto &own = *mine.file.recording, &other = *right.file.recording;
  compareNames("against-parameters", parametersOf(own), parametersOf(other),
               "the model has {}; in the recording that is right it has no such parameter, or one tied to another",
               "the model has no {}, or only tied to another; in the recording that is right it is one of its own",
               claims);
  compareNames("against-members", membersOf(own), membersOf(other),
               "an optimizer has {}, which none has in the recording that is right",
               "no optimizer has {}, which one has in the recording that is right", claims);
  compareNames("against-gradients-made", gradientsOf(mine), gradientsOf(right),
               "{} got a gradient, and none in the recording that is right",
               "{} got no gradient, and one in the recording that is right", claims);
  compareOrder(mine, right, claims);
  return claims;
}

}  // namespace retrograd
