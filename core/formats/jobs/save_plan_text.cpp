#include <fmt/format.h>

#include <map>
#include <tuple>

#include "core/formats/jobs/save_plan.h"

namespace retrograd {
namespace {

/// "0, 1 and 3", "0 to 3".
std::string rangeText(const std::vector<std::string>& texts, bool isRun) {
  if (isRun && texts.size() > 2) return texts.front() + " to " + texts.back();
  std::string all;
  for (std::size_t i = 0; i < texts.size(); ++i) all += (i == 0 ? "" : i + 1 == texts.size() ? " and " : ", ") + texts[i];
  return all;
}

/// "aten.addmm" of "torch.ops.aten.addmm.default".
std::string shortOp(std::string op) {
  if (op.starts_with("torch.ops.")) op.erase(0, 10);
  if (op.ends_with(".default")) op.resize(op.size() - 8);
  return op;
}

std::string treatmentText(const PlanTreatment& treatment, bool withJoint) {
  std::string text(name(treatment.fate));
  text += treatment.policy.empty() ? "" : " (" + treatment.policy + ")";
  if (withJoint) text += fmt::format(" with {} in the joint graph", treatment.jointPolicy.empty() ? "no policy" : treatment.jointPolicy);
  return text;
}

std::string valueText(const PlanDifference& difference) {
  auto text = difference.odd.value.empty() ? difference.others.value : difference.odd.value;
  if (!difference.op.empty()) text += " = " + shortOp(difference.op);
  if (!difference.type.empty()) text += ": " + difference.type;
  if (difference.bytes) text += fmt::format(", {} bytes", *difference.bytes);
  return text + (difference.file.empty() ? "" : fmt::format(" ({}:{})", difference.file, difference.line));
}

/// `more`: how many other values the sentence is for too.
std::string sentenceOf(const SavePlan& plan, const PlanDifference& difference, std::size_t more) {
  const bool withJoint = difference.odd.jointPolicy != difference.others.jointPolicy && difference.odd.policy == difference.others.policy;
  const auto who = more == 0 ? "" : fmt::format(" and {} more value{}", more, more == 1 ? "" : "s");
  return fmt::format("{}: {}{} {} {}; in {} {}", layersText(plan, difference.odd.layers), valueText(difference), who, more == 0 ? "is" : "are",
                     treatmentText(difference.odd, withJoint), layersText(plan, difference.others.layers), treatmentText(difference.others, withJoint));
}

/// Differences with the same key say the same.
auto keyOf(const PlanDifference& difference) {
  const auto& [odd, others] = std::tie(difference.odd, difference.others);
  return std::tuple(odd.layers, odd.fate, odd.policy, odd.jointPolicy, others.layers, others.policy, others.jointPolicy);
}

}  // namespace

std::string layersText(const SavePlan& plan, const std::vector<std::size_t>& layers) {
  std::vector<std::string> numbers, modules;
  bool isRun = true, hasModules = !layers.empty();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& layer = plan.layers[layers[i]];
    isRun &= i == 0 || layers[i] == layers[i - 1] + 1;
    hasModules &= !layer.module.empty();
    numbers.push_back(std::to_string(layer.number));
    modules.push_back(layer.module);
  }
  const bool isOneOfMany = !layers.empty() && plan.layers.back().group > 0;
  return fmt::format("{} {}{}{}", layers.size() == 1 ? "layer" : "layers", rangeText(numbers, isRun),
                     isOneOfMany ? fmt::format(" of group {}", plan.layers[layers.front()].group) : "",
                     hasModules ? " (" + rangeText(modules, isRun) + ")" : "");
}

std::vector<std::string> findingsOf(const SavePlan& plan) {
  std::vector<std::string> findings;
  std::map<decltype(keyOf(plan.differences.front())), std::pair<const PlanDifference*, std::size_t>> ofPolicy;
  for (const auto& difference : plan.differences) {
    if (difference.reason != PlanDifference::Reason::none) continue;
    if (difference.odd.fate != difference.others.fate) findings.push_back(sentenceOf(plan, difference, 0));
    if (difference.odd.fate == difference.others.fate) ++ofPolicy.try_emplace(keyOf(difference), &difference, 0).first->second.second;
  }
  for (const auto& [key, first] : ofPolicy) findings.push_back(sentenceOf(plan, *first.first, first.second - 1));
  findings.insert(findings.end(), plan.broken.begin(), plan.broken.end());
  return findings;
}

std::vector<std::string> notesOf(const SavePlan& plan) {
  using Reason = PlanDifference::Reason;
  std::map<std::pair<Reason, std::vector<std::size_t>>, std::string> values;
  for (const auto& difference : plan.differences) {
    const auto& [odd, others] = std::tie(difference.odd, difference.others);
    auto& text = values[{difference.reason, odd.layers}];
    text += fmt::format("{}{} is {} (in other layers {})", text.empty() ? "" : ", ", odd.value.empty() ? others.value : odd.value, name(odd.fate),
                        name(others.fate));
  }
  std::vector<std::string> notes;
  for (const auto& [key, text] : values) {
    const auto layers = layersText(plan, key.second);
    if (key.first == Reason::lastLayer) notes.push_back(fmt::format("{} is the last, no other layer reads its result: {}", layers, text));
    if (key.first == Reason::inMemory) notes.push_back(fmt::format("{}: parameters and views of them, which take no memory: {}", layers, text));
  }
  return notes;
}

}  // namespace retrograd
