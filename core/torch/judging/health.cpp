#include "core/torch/judging/health.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "core/derivation/result_names.h"
#include "core/questions/nan_walk.h"
#include "core/statistics/tensor_pass.h"
#include "core/stepping/bad_places.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/session/record_run.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

TensorStatistics statisticsOf(const TensorData& tensor) {
  const auto item = itemSize(tensor.meta.dtype);
  const Footprint footprint(
      {tensor.meta.dtype, tensor.data + tensor.meta.offset * item, tensor.meta.sizes, tensor.meta.strides});
  return retrograd::statisticsOf(footprint, [](std::int64_t count, const std::function<void(std::int64_t)>& body) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
  });
}

/// Floats of eight bits are only stored: what they hold is judged where it is computed with.
bool hasNumbers(const TensorData& tensor) {
  return tensor.data && isDifferentiable(tensor.meta.dtype) && itemSize(tensor.meta.dtype) > 1;
}

class Examination {
 public:
  Examination(const Analysis& analysis, const TensorMap& run, const std::set<std::string>& expected)
      : analysis_(analysis), run_(run), expected_(expected) {
    const auto users = analysis.computation().outputs;
    std::size_t position = 0;
    for (const auto& output : users) {
      if (output.kind == OutputKind::loss) losses_.insert("out." + std::to_string(position));
      position += output.kind == OutputKind::loss || output.kind == OutputKind::user;
    }
    values_ = namedValues(analysis);
    if (analysis.differentiated)
      for (const auto& [name, place] : placesOfFirstOrder(analysis))
        if (isGradientName(name)) losses_.insert(place);
  }

  Health run() {
    for (const auto& [name, tensor] : run_)
      if (hasNumbers(tensor)) lookAtResult(name, tensor);
    const auto& inputs = analysis_.computation().inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool isParameter = inputs[i].kind == InputKind::parameter;
      if (!isParameter && inputs[i].kind != InputKind::buffer) continue;
      const auto* tensor = inputData(analysis_, i);
      if (!tensor || !hasNumbers(*tensor)) continue;
      const auto statistics = statisticsOf(*tensor);
      if (statistics.nan + statistics.inf == 0 || (!isParameter && isMask(inputs[i].value, statistics))) continue;
      add((isParameter ? "p." : "b.") + inputs[i].target, statistics);
    }
    return std::move(health_);
  }

 private:
  bool isMask(ValueId value, const TensorStatistics& statistics) {
    if (!value) return false;
    if (!intended_) intended_.emplace(analysis_, [this](ValueId input) { return holdsInfinities(input); });
    return !intended_->isFault(value, statistics);
  }

  bool holdsInfinities(ValueId value) const {
    const auto& inputs = analysis_.computation().inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].value != value) continue;
      const auto* tensor = inputData(analysis_, i);
      return !tensor || !hasNumbers(*tensor) || statisticsOf(*tensor).inf > 0;
    }
    return true;
  }

  /// A mask was infinite when it was given; this buffer was finite.
  bool becameInfinite(const std::string& name) const {
    if (!name.starts_with("mut.b.")) return false;
    const auto given = analysis_.file.weights.find(name.substr(6));
    return given != analysis_.file.weights.end() && hasNumbers(given->second) && statisticsOf(given->second).inf == 0;
  }

  void lookAtResult(const std::string& name, const TensorData& tensor) {
    const auto statistics = statisticsOf(tensor);
    if (statistics.nan + statistics.inf == 0) return;
    const auto value = values_.find(name);
    const bool mask = value != values_.end() && isMask(value->second, statistics) && !becameInfinite(name);
    const bool isLoss = losses_.contains(name) || tensor.meta.elements() == 1;
    const bool asExpected = expected_.contains(name);
    // Of gradients of gradients LibTorch's own say what is expected.
    if (analysis_.differentiated && isGradientName(name) && asExpected)
      return note(name, statistics, ", as LibTorch has");
    if (isGradientName(name) || (name.starts_with("out.") && (isLoss))) return add(name, statistics);
    if (mask) return note(name, statistics, ", as a mask has them");
    if (name.starts_with("mut.in.")) return note(name, statistics, ", written by the forward");
    if (name.starts_with("out.") && asExpected) return note(name, statistics, ", as the reference has");
    add(name, statistics);
  }

  static BadTensor badTensor(const std::string& name, const TensorStatistics& statistics) {
    return {name, static_cast<std::size_t>(statistics.nan), static_cast<std::size_t>(statistics.inf),
            static_cast<std::size_t>(statistics.elements)};
  }
  void add(const std::string& name, const TensorStatistics& statistics) {
    health_.bad.push_back(badTensor(name, statistics));
  }
  void note(const std::string& name, const TensorStatistics& statistics, const char* why) {
    health_.notes.push_back(describe(badTensor(name, statistics)) + why);
  }

  const Analysis& analysis_;
  const TensorMap& run_;
  const std::set<std::string>& expected_;
  std::optional<IntendedInfinities> intended_;  // where something is infinite
  std::set<std::string>
      losses_;  // outputs that are never meant to be infinite: the loss, gradients that were differentiated
  std::map<std::string, ValueId> values_;
  Health health_;
};

}  // namespace

Health healthOf(const Analysis& analysis, const TensorMap& run, const std::set<std::string>& expected, bool elsewhere,
                const Progress& progress) {
  auto health = Examination(analysis, run, expected).run();
  if (!health.sound()) {
    health.roots = rootsOfNonFinite(analysis, progress);
  } else if (elsewhere) {
    const auto roots = describeRoots(rootsOfNonFinite(analysis, progress));
    if (!roots.empty())
      health.notes.push_back("NaN or infinities that reach no loss, gradient, parameter or buffer: " + roots);
  }
  return health;
}

void Health::addIfBad(const std::string& name, const TensorData& tensor) {
  const auto count = countNonFinite(tensor);
  if (count.nan + count.infinite > 0)
    bad.push_back({name, count.nan, count.infinite, static_cast<std::size_t>(tensor.meta.elements())});
}

std::string describe(const BadTensor& tensor) {
  return fmt::format("{} has {} NaN and {} infinities among {} elements", tensor.name, tensor.nan, tensor.infinite,
                     tensor.elements);
}

std::string describe(const Health& health) {
  if (health.sound()) return {};
  const auto roots = describeRoots(health.roots);
  return describe(health.bad.front()) + (roots.empty() ? "" : ", " + roots);
}

std::vector<std::string> rootsOfNonFinite(const Analysis& analysis, const Progress& progress) {
  const auto& document = *analysis.document;
  const auto walk = walkToRoots(analysis, recordRun(analysis, {}, progress));
  std::vector<std::string> roots;
  if (walk.path.empty()) return roots;
  const auto add = [&](BoundSymbolId op, ValueId value, const TensorStatistics& statistics) {
    roots.push_back(op ? placeOfOp(document, op, value) : badInputText(analysis, value, statistics));
  };
  add(walk.root, walk.path.back().value, walk.path.back().statistics);
  for (const auto& other : walk.otherRoots) add(other.op, other.value, other.statistics);
  return roots;
}

std::string describeRoots(const std::vector<std::string>& roots) {
  constexpr std::size_t shown = 5;
  std::string text;
  for (std::size_t i = 0; i < roots.size() && i < shown; ++i)
    text += std::string(i ? "; also " : "first ") + (isBadInputText(roots[i]) ? "in " : "made by ") + roots[i];
  if (roots.size() > shown) text += fmt::format("; and {} more", roots.size() - shown);
  return text;
}

/// Where it comes from first: the list of what it reached may be long.
std::string healthText(const Health& health) {
  constexpr std::size_t shown = 3;
  std::string text = "not healthy: ";
  if (!health.roots.empty()) text += "NaN or infinities are " + describeRoots(health.roots) + "; ";
  for (std::size_t i = 0; i < health.bad.size() && i < shown; ++i) text += (i ? "; " : "") + describe(health.bad[i]);
  if (health.bad.size() > shown) text += fmt::format("; and {} more tensors", health.bad.size() - shown);
  return text;
}

nlohmann::ordered_json toJson(const Health& health) {
  auto bad = nlohmann::ordered_json::array();
  for (const auto& tensor : health.bad)
    bad.push_back(
        {{"name", tensor.name}, {"nan", tensor.nan}, {"infinite", tensor.infinite}, {"elements", tensor.elements}});
  return {{"sound", health.sound()}, {"not_finite", std::move(bad)}, {"roots", health.roots}};
}

}  // namespace retrograd
