#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/op_name.h"
#include "core/formats/jobs/save_plan.h"

namespace retrograd {
namespace {

/// Neighbours among layers, from the first to the last: three and more are one run, others are runs of their own.
std::vector<std::pair<std::size_t, std::size_t>> runsOf(const std::vector<std::size_t>& layers) {
  std::vector<std::pair<std::size_t, std::size_t>> runs;
  for (std::size_t i = 0; i < layers.size();) {
    auto end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    runs.emplace_back(layers[i], layers[end - 1]);
    i = end;
  }
  return runs;
}

/// "0, 1 and 3", "0 to 3"; of many runs the first ones and the last.
template <class Text>
std::string runsText(const std::vector<std::pair<std::size_t, std::size_t>>& runs, Text text) {
  constexpr std::size_t most = 8;
  std::string all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs.size() > most && i == most - 2) all += ", ...", i = runs.size() - 1;
    all += i == 0 ? "" : i + 1 == runs.size() ? " and " : ", ";
    all += runs[i].first == runs[i].second ? text(runs[i].first) : text(runs[i].first) + " to " + text(runs[i].second);
  }
  return all;
}

/// `than`: the treatment that it is distinguished from. "saved (MUST_SAVE)".
std::string treatmentText(const PlanTreatment& treatment, const PlanTreatment& than) {
  const auto policyText = [](const std::string& policy) { return policy.empty() ? std::string("no policy") : policy; };
  std::string text(name(treatment.fate));
  if (!treatment.policy.empty() || !than.policy.empty()) text += fmt::format(" ({})", policyText(treatment.policy));
  const bool isInJointAlone = treatment.jointPolicy != than.jointPolicy && treatment.policy == than.policy;
  return isInJointAlone ? fmt::format("{} with {} in the joint graph", text, policyText(treatment.jointPolicy)) : text;
}

const std::string& valueOf(const PlanDifference& difference) {
  return difference.odd.value.empty() ? difference.others.value : difference.odd.value;
}

std::string valueText(const PlanDifference& difference) {
  auto text = valueOf(difference);
  if (!difference.op.empty()) text += " = " + shortOpName(difference.op);
  if (!difference.type.empty()) text += ": " + difference.type;
  if (difference.bytes) text += fmt::format(", {} bytes", *difference.bytes);
  return text + (difference.file.empty() ? "" : fmt::format(" ({}:{})", difference.file, difference.line));
}

/// `more`: how many other values the sentence is for too.
std::string sentenceOf(const SavePlan& plan, const PlanDifference& difference, std::size_t more) {
  const auto who = more == 0 ? "" : fmt::format(" and {} more value{}", more, more == 1 ? "" : "s");
  return fmt::format("{}: {}{} {} {}; in {} {}", layersText(plan, difference.odd.layers), valueText(difference), who,
                     more == 0 ? "is" : "are", treatmentText(difference.odd, difference.others),
                     layersText(plan, difference.others.layers), treatmentText(difference.others, difference.odd));
}

/// Differences with the same key say the same.
auto keyOf(const PlanDifference& difference) {
  const auto& [odd, others] = std::tie(difference.odd, difference.others);
  return std::tuple(odd.layers, odd.fate, odd.policy, odd.jointPolicy, others.layers, others.fate, others.policy,
                    others.jointPolicy);
}

}  // namespace

std::string layersText(const SavePlan& plan, const std::vector<std::size_t>& layers) {
  if (layers.empty()) return "no layer";
  const auto runs = runsOf(layers);
  auto text = (layers.size() == 1 ? "layer " : "layers ") +
              runsText(runs, [&](std::size_t layer) { return std::to_string(plan.layers[layer].number); });
  if (plan.layers.back().group > 0) text += fmt::format(" of group {}", plan.layers[layers.front()].group);
  const bool haveModules =
      std::none_of(layers.begin(), layers.end(), [&](std::size_t layer) { return plan.layers[layer].module.empty(); });
  if (!haveModules || runs.size() > 4) return text;
  return text + " (" + runsText(runs, [&](std::size_t layer) { return plan.layers[layer].module; }) + ")";
}

namespace {

/// "layer 2 saves 46812 bytes, layers 0, 1 and 3 save 24576 bytes each"; empty where that is equal, or differs within
/// one of them.
std::string totalsText(const SavePlan& plan, const std::vector<std::size_t>& odd,
                       const std::vector<std::size_t>& others) {
  const auto bytes = [&](const std::vector<std::size_t>& layers) { return plan.layers[layers.front()].savedBytes; };
  const auto areEven = [&](const auto& layers) {
    return std::all_of(layers.begin(), layers.end(),
                       [&](std::size_t layer) { return plan.layers[layer].savedBytes == bytes(layers); });
  };
  if (bytes(odd) == bytes(others) || !areEven(odd) || !areEven(others)) return {};
  const auto text = [&](const std::vector<std::size_t>& layers) {
    const bool isOne = layers.size() == 1;
    return fmt::format("{} {} {} bytes{}", layersText(plan, layers), isOne ? "saves" : "save", bytes(layers),
                       isOne ? "" : " each");
  };
  return text(odd) + ", " + text(others);
}

/// The same of a set of layers: a sentence for each difference in what is saved, one for all others that say the same.
std::vector<PlanFinding> sentencesOf(const SavePlan& plan, const std::vector<const PlanDifference*>& differences) {
  std::vector<PlanFinding> sentences;
  std::map<decltype(keyOf(*differences.front())), std::pair<const PlanDifference*, std::size_t>> alike;
  for (const auto* difference : differences) {
    const bool isOfSaving = difference->odd.fate != difference->others.fate &&
                            (difference->odd.fate == Fate::saved || difference->others.fate == Fate::saved);
    if (isOfSaving) sentences.push_back({sentenceOf(plan, *difference, 0), valueOf(*difference)});
    if (!isOfSaving) ++alike.try_emplace(keyOf(*difference), difference, 0).first->second.second;
  }
  for (const auto& [key, first] : alike)
    sentences.push_back({sentenceOf(plan, *first.first, first.second - 1), valueOf(*first.first)});
  return sentences;
}

}  // namespace

std::vector<PlanFinding> namedFindingsOf(const SavePlan& plan) {
  std::map<std::vector<std::size_t>, std::vector<const PlanDifference*>> byLayers;
  for (const auto& difference : plan.differences)
    if (difference.reason == PlanDifference::Reason::none) byLayers[difference.odd.layers].push_back(&difference);
  std::vector<PlanFinding> findings;
  for (const auto& [layers, differences] : byLayers) {
    if (auto totals = totalsText(plan, layers, differences.front()->others.layers); !totals.empty())
      findings.push_back({std::move(totals), {}});
    auto sentences = sentencesOf(plan, differences);
    findings.insert(findings.end(), std::make_move_iterator(sentences.begin()),
                    std::make_move_iterator(sentences.end()));
  }
  findings.insert(findings.end(), plan.broken.begin(), plan.broken.end());
  return findings;
}

std::vector<std::string> findingsOf(const SavePlan& plan) {
  std::vector<std::string> texts;
  for (auto& finding : namedFindingsOf(plan)) texts.push_back(std::move(finding.text));
  return texts;
}

std::vector<std::string> notesOf(const SavePlan& plan) {
  using Reason = PlanDifference::Reason;
  static const std::map<Reason, std::string_view> reasons{
      {Reason::lastLayer, "the last, no other layer reads its result"},
      {Reason::regionReads, "another checkpointed region reads its result"},
      {Reason::noRegionReads, "no other checkpointed region reads its result"},
      {Reason::inMemory, "parameters and views of them, which take no memory"}};
  std::map<std::pair<Reason, std::vector<std::size_t>>, std::string> values;
  for (const auto& difference : plan.differences) {
    const auto& [odd, others] = std::tie(difference.odd, difference.others);
    auto& text = values[{difference.reason, odd.layers}];
    const auto& value = odd.value.empty() ? others.value : odd.value;
    text += fmt::format("{}{} is {} (in other layers {})", text.empty() ? "" : ", ", value, name(odd.fate),
                        name(others.fate));
  }
  std::vector<std::string> notes;
  for (const auto& [key, text] : values)
    if (const auto reason = reasons.find(key.first); reason != reasons.end())
      notes.push_back(fmt::format("{}: {}: {}", layersText(plan, key.second), reason->second, text));
  return notes;
}

std::string typeText(const PlanValue& value) {
  if (value.dtype.empty() || value.dtype == "size") return value.dtype;
  return fmt::format("{}[{}]", value.dtype, fmt::join(value.sizes, ", "));
}

std::string opText(const PlanValue& value) { return shortOpName(value.op); }

std::string nameText(const SavePlan& plan, const PlanValue& value) {
  if (value.program.empty()) return value.name;
  const auto module = value.layer ? plan.layers[*value.layer].module + "." : std::string();
  return fmt::format("{} ({})", value.name,
                     value.program.starts_with(module) ? value.program.substr(module.size()) : value.program);
}

std::string headingText(const SavePlan& plan, const std::vector<std::size_t>& layers) {
  if (layers.empty()) return "outside the layers";
  return layers.size() == 1 ? layersText(plan, layers)
                            : fmt::format("{}, {} times", layersText(plan, layers), layers.size());
}

}  // namespace retrograd
