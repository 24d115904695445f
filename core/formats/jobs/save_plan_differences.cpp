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

struct Way {
  std::map<std::string, bool> isResult;  ///< by slot; false: it only leads to a result
  bool isOfLast = false;                 ///< of the last layer
  bool isReadByRegion = false;           ///< another checkpointed region reads a result
  bool isReadAs(const Way& other) const { return isOfLast == other.isOfLast && isReadByRegion == other.isReadByRegion; }
};

class Comparison {
 public:
  explicit Comparison(const PlanState& state) : state_(state), whole_(state.whole) {}

  std::vector<PlanDifference> compare() {
    for (std::size_t group = 0; group < state_.groups.size(); ++group) compareGroup(group);
    return std::move(differences_);
  }

 private:
  void compareGroup(std::size_t group) {
    ways_.clear();
    for (std::size_t number = 0; number < state_.groups[group].layers.size(); ++number)
      ways_.push_back(wayToResult(group, number));
    for (const auto& [slot, values] : slotsOf(group)) {
      const auto treatments = treatmentsOf(group, values);
      for (std::size_t i = 1; i < treatments.size(); ++i) {
        auto difference = differenceOf(treatments[i], treatments[0]);
        difference.reason = reasonOf(difference, slot);
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
    return std::none_of(values.begin(), values.end(), [&](const auto& value) {
      return value && (*value < state_.border || state_.fate(whole_.graph().valueName(*value)) == Fate::saved);
    });
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
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return std::tuple(b.layers.size(), a.layers.front()) < std::tuple(a.layers.size(), b.layers.front());
    });
    return sorted;
  }

  /// The slots of a layer from which only results of the layer are computed, the results included. What becomes of them
  /// depends on who reads the results.
  Way wayToResult(std::size_t group, std::size_t number) const {
    Way way;
    const auto& layers = state_.groups[group].layers;
    const auto layer = state_.layerIndex(group, number);
    way.isOfLast = number + 1 == layers.size();
    for (auto node = layers[number].rbegin(); node != layers[number].rend(); ++node) {
      const auto value = whole_.inputs() + *node;
      const auto& readers = state_.readers[value];
      const auto isOutside = [&](std::size_t reader) {
        return reader < state_.border && state_.places[reader].layer != layer;
      };
      const auto isOnWay = [&](std::size_t reader) {
        return state_.places[reader].layer == layer && way.isResult.contains(state_.places[reader].slot);
      };
      const bool isResult = state_.isResult[value] || std::any_of(readers.begin(), readers.end(), isOutside);
      const bool leadsThere = !readers.empty() && std::all_of(readers.begin(), readers.end(), isOnWay);
      if (isResult || leadsThere) way.isResult[state_.places[value].slot] = isResult;
      way.isReadByRegion |= std::any_of(readers.begin(), readers.end(), [&](std::size_t reader) {
        return isOutside(reader) && !whole_.policy(reader).empty();
      });
    }
    return way;
  }

  std::optional<std::size_t> valueOf(const PlanDifference& difference) const {
    return whole_.named(difference.odd.value.empty() ? difference.others.value : difference.odd.value);
  }

  /// PyTorch tags a checkpointed layer's result for saving where another checkpointed region reads it.
  Reason reasonOf(const PlanDifference& difference, const std::string& slot) const {
    const auto& [odd, others] = std::tie(difference.odd, difference.others);
    if (odd.jointPolicy != others.jointPolicy) return Reason::none;
    const auto& way = ways_[state_.layers[odd.layers.front()].number];
    const auto found = way.isResult.find(slot);
    const auto isReadAlike = [&](std::size_t layer) { return ways_[state_.layers[layer].number].isReadAs(way); };
    const bool isOddAlone = std::all_of(odd.layers.begin(), odd.layers.end(), isReadAlike) &&
                            std::none_of(others.layers.begin(), others.layers.end(), isReadAlike);
    if (found != way.isResult.end() && isOddAlone && (found->second || odd.policy == others.policy))
      return way.isOfLast ? Reason::lastLayer : way.isReadByRegion ? Reason::regionReads : Reason::noRegionReads;
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
    if (whole_.isTensor(*value))
      difference.type =
          fmt::format("{}[{}]", shortName(whole_.type(*value)->dtype), fmt::join(whole_.sizes(*value), ", "));
    if (const auto* source = whole_.source(*value)) difference.file = source->file, difference.line = source->line;
    return difference;
  }

  const PlanState& state_;
  const ValueFacts& whole_;
  std::vector<Way> ways_;  ///< of the layers of a group
  std::vector<PlanDifference> differences_;
};

}  // namespace

std::vector<PlanDifference> differencesOf(const PlanState& state) { return Comparison(state).compare(); }

}  // namespace retrograd
