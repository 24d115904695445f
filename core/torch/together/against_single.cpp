#include "core/torch/together/against_single.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include "core/formats/recording/recording.h"
#include "core/torch/steps/step_books.h"
#include "core/torch/together/collective_values.h"
#include "core/torch/together/relation.h"

namespace retrograd {
namespace {

std::string withoutWrapper(const std::string& name) {
  constexpr std::string_view wrapper = "module.";
  return name.starts_with(wrapper) ? name.substr(wrapper.size()) : name;
}

class Against {
 public:
  Against(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs, const RankRun& single,
          const SpilledTensors& spilled)
      : ranks_(ranks), runs_(runs), spilled_(spilled) {
    for (const auto& [name, gradients] : single.gradients) gradients_.emplace(withoutWrapper(name), &gradients.front());
    for (const auto& [name, weight] : single.weights) weights_.emplace(withoutWrapper(name), &weight);
  }

  GradientsJudged judge() {
    std::map<std::string, std::set<std::string>> reasons;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      for (const auto& [name, gradients] : runs_[rank].gradients) {
        judged_.due.insert(name);
        if (claimed_.contains(name)) continue;
        if (const auto why = judgeOne(rank, name, gradients.front()); !why.empty()) reasons[why].insert(name);
      }
    for (const auto& name : judged_.due) judged_.judged.insert(name);
    for (const auto& [why, names] : reasons) {
      for (const auto& name : names) judged_.judged.erase(name);
      judged_.notJudged.push_back(
          {"gradient of " + namesText({names.begin(), names.end()}) + " against one process", why});
    }
    judged_.claims = groups_.take();
    return std::move(judged_);
  }

 private:
  at::Tensor held(const SpilledTensors::Place& place, const SpilledTensors::Place& as, std::size_t rank,
                  const RankWeight* weight) const {
    auto whole = spilled_.get(place).to(at::kDouble);
    if (whole.sizes() != at::IntArrayRef(as.sizes) && weight && weight->shard)
      whole = partOf(whole, *weight->shard, ranks_[rank].rank);
    return whole.defined() && whole.numel() == c10::multiply_integers(as.sizes) ? whole.reshape({-1}) : at::Tensor();
  }

  /// Why it is not compared; empty where it is.
  std::string judgeOne(std::size_t rank, const std::string& name, const RankGradient& gradient) {
    const auto plain = withoutWrapper(name);
    const auto wanted = gradients_.find(plain);
    if (wanted == gradients_.end()) return "the single process has no gradient of that name";
    const auto found = runs_[rank].weights.find(name);
    const auto* weight = found == runs_[rank].weights.end() ? nullptr : &found->second;
    if (const auto began = weights_.find(plain); weight && began != weights_.end()) {
      constexpr double sameShare = 1e-5;
      const auto before = held(began->second->value, weight->value, rank, weight);
      const auto own = spilled_.get(weight->value).to(at::kDouble).reshape({-1});
      if (before.defined() && (before - own).norm().item<double>() > sameShare * before.norm().item<double>())
        return "its weights were others before the step";
    }
    GradientSides sides{.read = spilled_.get(gradient.read).to(at::kDouble).reshape({-1}),
                        .ranks = {ranks_[rank].rank}};
    const auto expected = held(wanted->second->read, gradient.read, rank, weight);
    if (!expected.defined()) return "how its parts lie over the ranks is not known";
    sides.parts = {expected};
    constexpr double otherOrder = 64;  // kernels add up in another order for another size of batch
    sides.epsilon = otherOrder * std::max(epsilonOf(gradient.dtype), epsilonOf(wanted->second->dtype));
    const auto relation = relationOf(sides, false, {});
    if (relation.holds) return {};
    claimed_.insert(name);
    const auto& document = ranks_[rank].document();
    groups_.add(
        {.by = Producer::rank,
         .kind = relation.kind,
         .sentence = fmt::format("gradient of rank {} against one process: {}", ranks_[rank].rank, relation.sentence),
         .line = recordedLine(document, gradient.made ? gradient.made : gradient.readBy),
         .op = gradient.made},
        name);
    return {};
  }

  const std::vector<RankStep>& ranks_;
  const std::vector<RankRun>& runs_;
  const SpilledTensors& spilled_;
  std::map<std::string, const RankGradient*> gradients_;
  std::map<std::string, const RankWeight*> weights_;
  std::set<std::string> claimed_;
  GradientsJudged judged_;
  ClaimGroups groups_;
};

}  // namespace

GradientsJudged judgeAgainstSingle(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                                   const RankRun& single, const SpilledTensors& spilled) {
  return Against(ranks, runs, single, spilled).judge();
}

}  // namespace retrograd
