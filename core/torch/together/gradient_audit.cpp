#include "core/torch/together/gradient_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/formats/recording/recording.h"
#include "core/torch/steps/step_books.h"
#include "core/torch/together/data_flow.h"
#include "core/torch/together/relation.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

double epsilonOf(at::ScalarType type) {
  return type == at::kBFloat16 ? 7.9e-3 : type == at::kHalf ? 9.8e-4 : type == at::kDouble ? 2.3e-16 : 1.2e-7;
}

/// The part of a whole tensor that a rank holds.
at::Tensor partOf(at::Tensor whole, const RecordedShard& shard, std::int64_t rank) {
  const auto at = std::ranges::find(shard.mesh, rank);
  if (at == shard.mesh.end()) return {};
  auto place = at - shard.mesh.begin();
  std::vector<std::int64_t> coordinate(shard.meshSizes.size());
  for (auto i = coordinate.size(); i-- > 0;) {
    coordinate[i] = place % shard.meshSizes[i];
    place /= shard.meshSizes[i];
  }
  for (std::size_t i = 0; i < shard.placements.size(); ++i) {
    const auto& placement = shard.placements[i];
    if (placement == "replicate") continue;
    if (!placement.starts_with("shard ")) return {};
    const auto dim = std::stoll(placement.substr(6));
    if (dim >= whole.dim()) return {};
    const auto size = whole.size(dim), each = (size + shard.meshSizes[i] - 1) / shard.meshSizes[i];
    const auto begin = std::min(size, coordinate[i] * each);
    whole = whole.narrow(dim, begin, std::min(size, begin + each) - begin);
  }
  return whole;
}

class Audit {
 public:
  Audit(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
        const std::vector<DerivedGradients>& derived, const SpilledTensors& spilled)
      : ranks_(ranks),
        runs_(runs),
        derived_(derived),
        spilled_(spilled),
        units_(unitsOf(ranks, runs)),
        loss_(lossKindOf(ranks.front())) {}

  GradientsJudged judge() {
    for (const auto& run : runs_)
      for (const auto& [name, gradients] : run.gradients) judged_.due.insert(name);
    for (const auto& name : judged_.due) judgeParameter(name);
    auto claims = groups_.take();
    judged_.claims.insert(judged_.claims.end(), claims.begin(), claims.end());
    for (auto& [reason, names] : notJudged_) {
      std::ranges::sort(names);
      judged_.notJudged.push_back({"gradient of " + namesText(names), reason});
    }
    return std::move(judged_);
  }

 private:
  void judgeParameter(const std::string& name) {
    std::set<std::int32_t> steps;
    for (const auto& run : runs_)
      if (const auto found = run.gradients.find(name); found != run.gradients.end())
        for (const auto& one : found->second) steps.insert(one.step);
    bool isJudged = true;
    for (const auto step : steps) isJudged &= judgeStep(name, step);
    if (isJudged) judged_.judged.insert(name);
  }

  const RankGradient* gradientOf(std::size_t rank, const std::string& name, std::int32_t step) const {
    const auto found = runs_[rank].gradients.find(name);
    if (found == runs_[rank].gradients.end()) return nullptr;
    const auto one = std::ranges::find(found->second, step, &RankGradient::step);
    return one == found->second.end() ? nullptr : &*one;
  }

  const RankWeight* weightOf(std::size_t rank, const std::string& name) const {
    const auto found = runs_[rank].weights.find(name);
    return found == runs_[rank].weights.end() ? nullptr : &found->second;
  }

  bool isAlone(std::size_t rank) const { return std::ranges::count(units_, units_[rank]) == 1; }

  bool refuse(const std::string& name, std::string why) {
    auto& names = notJudged_[std::move(why)];
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    return false;
  }

  /// What a rank's copy of a parameter has to do with its unit's loss. Nowhere: not known, and `why` says so.
  SpilledTensors::Place ownOf(std::size_t rank, const std::string& name, std::int32_t step, std::string& why) const {
    const auto* gradient = gradientOf(rank, name, step);
    if (isAlone(rank) && gradient && gradient->own && !gradient->isMixed) return gradient->own;
    if (rank < derived_.size()) {
      if (const auto found = derived_[rank].of.find({step, name}); found != derived_[rank].of.end())
        return found->second;
      if (!derived_[rank].refusal.empty()) why = derived_[rank].refusal;
    }
    if (why.empty())
      why = gradient && gradient->isMixed
                ? "a collective is behind what its backward made, and no gradient could be derived"
                : "no backward of the recording made it";
    return {};
  }

  bool judgeStep(const std::string& name, std::int32_t step) {
    std::vector<std::size_t> holders;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (gradientOf(rank, name, step)) holders.push_back(rank);
      else if (const auto* weight = weightOf(rank, name); weight && !weight->isBuffer) claimAbsent(name, step, rank);
    }
    bool isJudged = !holders.empty();
    bool isSaid = false;
    for (const auto rank : holders) {
      const auto answer = judgeRank(name, step, rank, holders, isSaid);
      isJudged &= answer;
    }
    return isJudged;
  }

  void claimAbsent(const std::string& name, std::int32_t step, std::size_t rank) {
    std::size_t other = 0;
    while (other < ranks_.size() && !gradientOf(other, name, step)) ++other;
    if (other == ranks_.size() || !ranReached(rank, step)) return;
    groups_.add({.by = Producer::rank,
                 .kind = "gradient-on-some-ranks",
                 .sentence = fmt::format("rank {} has no gradient in step {} where rank {} has one", ranks_[rank].rank,
                                         step, ranks_[other].rank),
                 .remedy = "what a rank does not use needs a gradient of zeros, as find_unused_parameters gives it",
                 .line = recordedLine(ranks_[other].document(), gradientOf(other, name, step)->made)},
                name);
  }

  /// Whether an update of the rank read any gradient in this step.
  bool ranReached(std::size_t rank, std::int32_t step) const {
    return std::ranges::any_of(runs_[rank].gradients, [&](const auto& entry) {
      return std::ranges::find(entry.second, step, &RankGradient::step) != entry.second.end();
    });
  }

  /// The ranks whose copies of a parameter are one.
  std::vector<std::size_t> copiesOf(std::size_t rank, const std::string& name,
                                    const std::vector<std::size_t>& holders) const {
    const auto* weight = weightOf(rank, name);
    std::vector<std::size_t> copies;
    for (const auto other : holders) {
      const auto* one = weightOf(other, name);
      const bool isSame = other == rank || !weight || !one ||
                          (weight->before == one->before && weight->sizes == one->sizes) ||
                          (isAlone(rank) && isAlone(other));
      if (isSame) copies.push_back(other);
    }
    return copies;
  }

  at::Tensor flat(const SpilledTensors::Place& place) const { return spilled_.get(place).to(at::kDouble); }

  bool judgeRank(const std::string& name, std::int32_t step, std::size_t rank, const std::vector<std::size_t>& holders,
                 bool& isSaid) {
    const auto& gradient = *gradientOf(rank, name, step);
    const auto* weight = weightOf(rank, name);
    const auto* shard = weight ? weight->shard : nullptr;
    std::string why;
    GradientSides sides;
    sides.read = flat(gradient.read);
    const auto readSizes = sides.read.sizes().vec();
    sides.read = sides.read.reshape({-1});
    sides.epsilon = epsilonOf(gradient.dtype);
    sides.terms = gradient.parts;
    /// As the rank holds it.
    const auto held = [&](const SpilledTensors::Place& place) -> at::Tensor {
      auto tensor = flat(place);
      if (tensor.sizes() == at::IntArrayRef(readSizes)) return tensor.reshape({-1});
      if (shard) tensor = partOf(tensor, *shard, ranks_[rank].rank);
      return tensor.defined() && tensor.numel() == sides.read.numel() ? tensor.reshape({-1}) : at::Tensor();
    };
    std::map<std::size_t, at::Tensor> units;
    for (const auto other : copiesOf(rank, name, holders)) {
      const auto own = ownOf(other, name, step, why);
      if (!own) return refuse(name, why);
      const auto part = held(own);
      if (!part.defined()) return refuse(name, "how its parts lie over the ranks is not known");
      auto& unit = units[units_[other]];
      const bool isNew = !unit.defined();
      if (isNew) {
        unit = part.clone();
      } else {
        unit.add_(part);
      }
      if (other == rank && !isAlone(rank)) sides.copy = part;
      const auto* made = gradientOf(other, name, step);
      if (isAlone(other) && made && made->prior) sides.priors.push_back(held(made->prior));
      if (isAlone(other) && made && made->last) {
        sides.lasts.push_back(held(made->last));
        if (other == rank) sides.last = sides.lasts.back();
      }
    }
    for (auto& [unit, part] : units) {
      if (unit == units_[rank]) sides.self = sides.parts.size();
      sides.parts.push_back(part);
      sides.ranks.push_back(ranks_[isAlone(unit) || unit != units_[rank] ? unit : rank].rank);
    }
    if (sides.copy.defined() && sides.copy.equal(sides.parts[sides.self])) sides.copy = at::Tensor();
    const auto through = collectivesOn(rank, gradient);
    auto relation = relationOf(sides, false, precisionOf(rank, through, gradient));
    if (!relation.holds && loss_ != LossKind::mean && sides.parts.size() > 1) {
      if (relationOf(sides, true, {}).holds) relation.holds = true;
    } else if (relation.holds && loss_ == LossKind::sum && sides.parts.size() > 1 && !saidMean_) {
      saidMean_ = true;
      judged_.notes.push_back("the loss is a sum over the batch, and gradients are the mean over ranks: 1/" +
                              std::to_string(sides.parts.size()) + " of those of one process on the whole batch");
    }
    if (!relation.holds && !isSaid) {
      isSaid = true;
      claim(name, rank, gradient, relation, through);
    }
    return true;
  }

  std::vector<std::size_t> collectivesOn(std::size_t rank, const RankGradient& gradient) const {
    if (!gradient.made) return {};
    const auto& document = ranks_[rank].document();
    const auto outputs = document.outputs(gradient.made);
    if (outputs.empty() || !outputs[0]) return {};
    return collectivesBetween(ranks_[rank], outputs[0], static_cast<std::size_t>(gradient.made.index) + 1,
                              static_cast<std::size_t>(gradient.readBy.index));
  }

  /// The dtype of the collectives that it went through, where that is less than the gradient's.
  std::string precisionOf(std::size_t rank, const std::vector<std::size_t>& through,
                          const RankGradient& gradient) const {
    for (const auto one : through) {
      const auto& call = ranks_[rank].collectives[one];
      if (!call.reduces() || call.given.empty()) continue;
      const auto dtype = ranks_[rank].document().meta(call.given.front()).dtype;
      if (epsilonOf(toScalarType(dtype)) > epsilonOf(gradient.dtype)) return std::string(torchName(dtype));
    }
    return {};
  }

  void claim(const std::string& name, std::size_t rank, const RankGradient& gradient, const Relation& relation,
             const std::vector<std::size_t>& through) {
    const auto& document = ranks_[rank].document();
    Claim claim{.by = Producer::rank,
                .kind = relation.kind,
                .line = recordedLine(document, gradient.made),
                .op = gradient.made};
    const Collective* first = nullptr;
    for (const auto one : through)
      if (const auto& call = ranks_[rank].collectives[one]; call.reduces()) {
        first = &call;
        break;
      }
    claim.sentence = fmt::format("gradient in step {}: {}", gradient.step, relation.sentence);
    if (first) {
      const auto line = recordedLine(document, first->op);
      claim.sentence += "; it goes through " + callText(*first);
      if (!line.empty()) claim.line = line;
      claim.op = first->op;
    } else {
      claim.sentence += "; no collective reduces it";
    }
    claim.measure = Measure{.deviation = relation.deviation, .tolerance = relation.tolerance, .scale = relation.scale};
    groups_.add(std::move(claim), name);
  }

  const std::vector<RankStep>& ranks_;
  const std::vector<RankRun>& runs_;
  const std::vector<DerivedGradients>& derived_;
  const SpilledTensors& spilled_;
  const std::vector<std::size_t> units_;
  const LossKind loss_;
  GradientsJudged judged_;
  ClaimGroups groups_;
  std::map<std::string, std::vector<std::string>> notJudged_;
  bool saidMean_ = false;
};

}  // namespace

std::vector<std::size_t> unitsOf(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs) {
  std::vector<std::size_t> unit(ranks.size());
  std::iota(unit.begin(), unit.end(), 0);
  const auto join = [&](std::size_t a, std::size_t b) {
    const auto low = std::min(unit[a], unit[b]), high = std::max(unit[a], unit[b]);
    std::ranges::replace(unit, high, low);
  };
  for (std::size_t i = 0; i < ranks.size(); ++i)
    for (const auto one : runs[i].mixing) {
      const auto& call = ranks[i].collectives[one];
      const bool isTransfer = call.kind == CollectiveKind::send || call.kind == CollectiveKind::receive;
      for (std::size_t other = 0; other < ranks.size(); ++other) {
        const auto at = std::ranges::find(call.group, ranks[other].rank) - call.group.begin();
        if (isTransfer ? at == call.root : std::cmp_less(at, call.group.size())) join(i, other);
      }
    }
  return unit;
}

LossKind lossKindOf(const RankStep& rank) {
  const auto& document = rank.document();
  if (rank.recording().losses.empty()) return LossKind::unknown;
  auto value = rank.recording().losses.front();
  constexpr int farthest = 64;
  for (int i = 0; i < farthest; ++i) {
    const auto op = document.value(value).producer;
    if (!op || document.operands(op).empty()) return LossKind::unknown;
    const auto& symbol = document.symbol(op);
    const auto& arguments = document.pattern(document.boundSymbol(op).pattern).arguments;
    if (symbol.name.starts_with("aten.mean.")) return LossKind::mean;
    if (symbol.name.starts_with("aten.sum.")) return LossKind::sum;
    if (const auto at = symbol.argumentIndex("reduction"); at >= 0) {
      const auto given = std::cmp_less(at, arguments.size()) && arguments[at].kind == Argument::Kind::integer
                             ? arguments[at].integer
                             : 1;
      return given == 1 ? LossKind::mean : given == 2 ? LossKind::sum : LossKind::unknown;
    }
    const bool byNumber = document.operands(op).size() == 1;
    const bool goesOn =
        byNumber && (symbol.isView || symbol.name.starts_with("aten.mul.") || symbol.name.starts_with("aten.div.") ||
                     symbol.name.starts_with("aten.clone.") || symbol.name.starts_with("aten._to_copy.") ||
                     symbol.name.starts_with("aten.detach.") || symbol.name.starts_with("aten.add."));
    if (!goesOn && !symbol.name.starts_with("aten.add.")) return LossKind::unknown;
    value = document.operands(op)[0];
  }
  return LossKind::unknown;
}

GradientsJudged judgeGradients(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                               const std::vector<DerivedGradients>& derived, const SpilledTensors& spilled) {
  return Audit(ranks, runs, derived, spilled).judge();
}

}  // namespace retrograd
