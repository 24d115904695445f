#include "core/torch/judging/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/derivation/result_names.h"
#include "core/questions/nan_walk.h"
#include "core/statistics/tensor_pass.h"
#include "core/stepping/bad_places.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/session/record_run.h"

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

Claim notFiniteClaim(const std::string& name, std::int64_t nan, std::int64_t infinite, std::int64_t elements) {
  return {.by = Producer::health,
          .kind = "not-finite",
          .subject = name,
          .sentence = fmt::format("{} has {} NaN and {} infinities among {} elements", name, nan, infinite, elements)};
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

  std::vector<Claim> run() {
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
    return std::move(claims_);
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

  void add(const std::string& name, const TensorStatistics& s) {
    claims_.push_back(notFiniteClaim(name, s.nan, s.inf, s.elements));
  }
  void note(const std::string& name, const TensorStatistics& statistics, const char* why) {
    add(name, statistics);
    claims_.back().severity = Severity::note;
    claims_.back().sentence += why;
  }

  const Analysis& analysis_;
  const TensorMap& run_;
  const std::set<std::string>& expected_;
  std::optional<IntendedInfinities> intended_;  // where something is infinite
  std::set<std::string>
      losses_;  // outputs that are never meant to be infinite: the loss, gradients that were differentiated
  std::map<std::string, ValueId> values_;
  std::vector<Claim> claims_;
};

}  // namespace

std::vector<Claim> healthOf(const Analysis& analysis, const TensorMap& run, const std::set<std::string>& expected,
                            bool elsewhere, const Progress& progress) {
  auto claims = Examination(analysis, run, expected).run();
  const bool isSound = std::ranges::none_of(claims, [](const Claim& c) { return c.severity == Severity::fault; });
  if (isSound && !elsewhere) return claims;
  auto roots = rootsOfNonFinite(analysis, progress);
  if (isSound)
    for (auto& root : roots) {
      root.severity = Severity::note;
      root.sentence = "in no loss, gradient, parameter or buffer: " + root.sentence;
    }
  claims.insert(claims.begin(), std::make_move_iterator(roots.begin()), std::make_move_iterator(roots.end()));
  return claims;
}

std::optional<Claim> notFinite(const std::string& name, const TensorData& tensor) {
  const auto count = countNonFinite(tensor);
  if (count.nan + count.infinite == 0) return std::nullopt;
  return notFiniteClaim(name, static_cast<std::int64_t>(count.nan), static_cast<std::int64_t>(count.infinite),
                        tensor.meta.elements());
}

std::vector<Claim> rootsOfNonFinite(const Analysis& analysis, const Progress& progress) {
  return claimsOf(analysis, walkToRoots(analysis, recordRun(analysis, {}, progress)));
}

}  // namespace retrograd
