#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/formats/jobs/plan_state.h"

namespace retrograd {
namespace {

using Reason = PlanDifference::Reason;
/// The value of each layer of a group; nothing where a layer has none.
using LayerValues = std::vector<std::optional<std::size_t>>;

class Comparison {
 public:
  explicit Comparison(const PlanState& state) : state_(state), whole_(state.whole) {}

  std::vector<PlanDifference> compare() {
    for (std::size_t group = 0; group < state_.groups.size(); ++group) compareGroup(group);
    return std::move(differences_);
  }

 private:
  void compareGroup(std::size_t group) {
    const auto last = state_.layerIndex(group, state_.groups[group].layers.size() - 1);
    const auto lastWay = wayToResult(group);
    for (const auto& [slot, values] : slotsOf(group)) {
      const auto treatments = treatmentsOf(group, values);
      const auto way = lastWay.find(slot);
      for (std::size_t i = 1; i < treatments.size(); ++i) {
        auto difference = differenceOf(treatments[i], treatments[0]);
        const bool isOfLast = way != lastWay.end() && difference.odd.layers == std::vector{last};
        difference.reason = reasonOf(difference, isOfLast, isOfLast && way->second);
        differences_.push_back(std::move(difference));
      }
    }
  }

  std::map<std::string, LayerValues> slotsOf(std::size_t group) const {
    std::map<std::string, LayerValues> slots;
    for (std::size_t value = 0; value < whole_.count(); ++value) {
      const auto& place = state_.places[value];
      if (!place.layer || state_.layers[*place.layer].group != group || whole_.type(value) == nullptr) continue;
      auto& values = slots[place.slot];
      values.resize(state_.groups[group].layers.size());
      values[state_.layers[*place.layer].number] = value;
    }
    std::erase_if(slots, [&](const auto& slot) { return isOfBackwardAlone(slot.second); });
    return slots;
  }

  /// Values that the forward of no layer computes: copies and views that only the backward makes.
  bool isOfBackwardAlone(const LayerValues& values) const {
    return std::none_of(values.begin(), values.end(),
                        [&](const auto& value) { return value && (*value < state_.border || state_.fate(whole_.graph().valueName(*value)) == Fate::saved); });
  }

  PlanTreatment treatmentOf(const std::optional<std::size_t>& value) const {
    PlanTreatment treatment;
    if (!value) return treatment;
    treatment.value = whole_.graph().valueName(*value);
    treatment.fate = state_.fate(treatment.value);
    treatment.policy = state_.policy(*value);
    if (state_.graphs.joint) treatment.jointPolicy = whole_.policy(*value);
    return treatment;
  }

  /// What happens at one slot, the treatment of the most layers first, else that of the first layer.
  std::vector<PlanTreatment> treatmentsOf(std::size_t group, const LayerValues& values) const {
    std::map<std::tuple<Fate, std::string, std::string>, PlanTreatment> different;
    for (std::size_t number = 0; number < values.size(); ++number) {
      auto treatment = treatmentOf(values[number]);
      auto& kept = different[{treatment.fate, treatment.policy, treatment.jointPolicy}];
      if (kept.layers.empty()) kept = std::move(treatment);
      kept.layers.push_back(state_.layerIndex(group, number));
    }
    std::vector<PlanTreatment> sorted;
    for (auto& [key, treatment] : different) sorted.push_back(std::move(treatment));
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return std::tuple(b.layers.size(), a.layers.front()) < std::tuple(a.layers.size(), b.layers.front()); });
    return sorted;
  }

  /// The slots of a group's last layer from which only results of the layer are computed, the results included. True: a result itself. What becomes
  /// of them depends on who reads the result.
  std::map<std::string, bool> wayToResult(std::size_t group) const {
    std::map<std::string, bool> way;
    const auto& nodes = state_.groups[group].layers.back();
    const auto layer = state_.layerIndex(group, state_.groups[group].layers.size() - 1);
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const auto value = whole_.inputs() + *node;
      const auto& readers = state_.readers[value];
      const auto isOutside = [&](std::size_t reader) { return reader < state_.border && state_.places[reader].layer != layer; };
      const auto isOnWay = [&](std::size_t reader) { return state_.places[reader].layer == layer && way.contains(state_.places[reader].slot); };
      const bool isResult = state_.isResult[value] || std::any_of(readers.begin(), readers.end(), isOutside);
      const bool leadsThere = !readers.empty() && std::all_of(readers.begin(), readers.end(), isOnWay);
      if (isResult || leadsThere) way[state_.places[value].slot] = isResult;
    }
    return way;
  }

  std::optional<std::size_t> valueOf(const PlanDifference& difference) const {
    return whole_.named(difference.odd.value.empty() ? difference.others.value : difference.odd.value);
  }

  /// `isResult`: the value is a result of the last layer, which PyTorch tags where another checkpointed region reads it.
  Reason reasonOf(const PlanDifference& difference, bool isOnWayOfLast, bool isResult) const {
    const auto& [odd, others] = std::tie(difference.odd, difference.others);
    if (odd.jointPolicy != others.jointPolicy) return Reason::none;
    if (isOnWayOfLast && (isResult || odd.policy == others.policy)) return Reason::lastLayer;
    const auto value = valueOf(difference);
    return value && whole_.isInput(*value) && odd.policy == others.policy ? Reason::inMemory : Reason::none;
  }

  PlanDifference differenceOf(const PlanTreatment& odd, const PlanTreatment& others) const {
    PlanDifference difference;
    difference.odd = odd, difference.others = others;
    const auto value = valueOf(difference);
    if (!value) return difference;
    difference.op = whole_.target(*value);
    difference.bytes = whole_.bytes(*value);
    if (whole_.isTensor(*value)) difference.type = fmt::format("{}[{}]", shortName(whole_.type(*value)->dtype), fmt::join(whole_.sizes(*value), ", "));
    if (const auto* source = whole_.source(*value)) difference.file = source->file, difference.line = source->line;
    return difference;
  }

  const PlanState& state_;
  const ValueFacts& whole_;
  std::vector<PlanDifference> differences_;
};

}  // namespace

std::vector<PlanDifference> differencesOf(const PlanState& state) { return Comparison(state).compare(); }

}  // namespace retrograd
