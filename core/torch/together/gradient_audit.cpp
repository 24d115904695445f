#include "core/torch/together/gradient_audit.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "core/formats/recording/recording.h"
#include "core/torch/steps/step_books.h"
#include "core/torch/together/collective_values.h"
#include "core/torch/together/data_flow.h"
#include "core/torch/together/relation.h"
#include "core/torch/together/replicas.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

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
    requireRead();
    const auto gap = gapIn(ranks_, runs_);
    for (const auto& name : inOrder())
      if (gap.empty()) judgeParameter(name);
      else refuse(name, gap);
    for (const auto& one : pending_) claim(one, areScaledAlike());
    auto claims = groups_.take();
    judged_.claims.insert(judged_.claims.end(), claims.begin(), claims.end());
    for (auto& [reason, names] : notJudged_) {
      std::ranges::sort(names);
      judged_.notJudged.push_back({"gradient of " + namesText(names), reason});
    }
    return std::move(judged_);
  }

 private:
  /// What an optimizer was given and got a gradient has to be among what an update read.
  void requireRead() {
    for (const auto& rank : ranks_) {
      const auto& recording = rank.recording();
      const bool hasUpdate =
          std::ranges::any_of(recording.ops, [](const StepOp& op) { return op.phase == Phase::optimizer; });
      for (const auto& name : recording.optimized) {
        const auto& without = recording.withoutGradient;
        if (!hasUpdate || judged_.due.contains(name) || std::ranges::find(without, name) != without.end()) continue;
        refuse(name, "no op of an update is known to read it");
      }
    }
  }

  struct Pending {
    std::string name;
    std::size_t rank;
    const RankGradient* gradient;
    Relation relation;
    const Collective* first;  ///< that reduces it after its backward made it; null: none does
  };

  /// Parameters in the order in which the backward made their gradients: a fault reaches those after it.
  std::vector<std::string> inOrder() const {
    std::vector<std::pair<std::int32_t, std::string>> order;
    for (const auto& name : judged_.due) {
      auto first = std::numeric_limits<std::int32_t>::max();
      for (const auto& run : runs_)
        if (const auto found = run.gradients.find(name); found != run.gradients.end())
          for (const auto& one : found->second)
            if (one.made) first = std::min(first, one.made.index);
      order.emplace_back(first, name);
    }
    std::ranges::sort(order);
    std::vector<std::string> names;
    for (auto& [at, name] : order) names.push_back(std::move(name));
    return names;
  }

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
                 .line = lineOf(other, *gradientOf(other, name, step))},
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
    const auto isSame = [&](std::size_t other) {
      const auto* one = weightOf(other, name);
      if (other == rank || !weight || !one || (isAlone(rank) && isAlone(other))) return true;
      if (weight->shard) return holdSamePart(*weight->shard, ranks_[rank].rank, ranks_[other].rank);
      if (weight->before == one->before) return weight->sizes == one->sizes;
      return units_[rank] == units_[other] && arePartedCopies(*weight, *one, spilled_);
    };
    std::vector<std::size_t> copies;
    std::ranges::copy_if(holders, std::back_inserter(copies), isSame);
    return copies;
  }

  at::Tensor flat(const SpilledTensors::Place& place) const { return spilled_.get(place).to(at::kDouble); }

  /// A tensor as the rank holds the parameter's gradient, flat; undefined where it cannot be that.
  at::Tensor heldBy(std::size_t rank, const RankWeight* weight, const RankGradient& gradient,
                    const SpilledTensors::Place& place) const {
    auto tensor = flat(place);
    const auto& sizes = gradient.read.sizes;
    if (tensor.sizes() == at::IntArrayRef(sizes)) return tensor.reshape({-1});
    if (weight && weight->shard) tensor = partOf(tensor, *weight->shard, ranks_[rank].rank);
    const bool fits = tensor.defined() && tensor.numel() == c10::multiply_integers(sizes);
    return fits ? tensor.reshape({-1}) : at::Tensor();
  }

  /// What is known of a rank's gradient, if these ranks have copies of the parameter; nothing where a part is not
  /// known.
  std::optional<GradientSides> sidesOf(const std::string& name, std::int32_t step, std::size_t rank,
                                       const std::vector<std::size_t>& copies, std::string& why) const {
    const auto& gradient = *gradientOf(rank, name, step);
    const auto* weight = weightOf(rank, name);
    const auto held = [&](const SpilledTensors::Place& place) { return heldBy(rank, weight, gradient, place); };
    GradientSides sides{
        .read = flat(gradient.read).reshape({-1}), .epsilon = epsilonOf(gradient.dtype), .terms = gradient.parts};
    std::map<std::size_t, at::Tensor> units;
    for (const auto other : copies) {
      const auto own = ownOf(other, name, step, why);
      if (!own) return std::nullopt;
      const auto part = held(own);
      if (!part.defined()) {
        why = "how its parts lie over the ranks is not known";
        return std::nullopt;
      }
      auto& unit = units[units_[other]];
      unit = unit.defined() ? unit + part : part;
      if (!isAlone(other)) {
        constexpr double otherOrder = 64;  // a derived gradient adds up in another order than the recorded one
        sides.epsilon = epsilonOf(gradient.dtype) * otherOrder;
        sides.floor = sides.epsilon * largestOf(rank);
        if (other == rank) sides.copy = part;
        continue;
      }
      const auto* made = gradientOf(other, name, step);
      if (made && made->prior) sides.priors.push_back(held(made->prior));
      if (made && made->last) sides.lasts.push_back(held(made->last));
      if (made && made->last && other == rank) sides.last = sides.lasts.back();
    }
    for (const auto& [unit, part] : units) {
      if (unit == units_[rank]) sides.self = sides.parts.size();
      sides.parts.push_back(part);
      sides.ranks.push_back(ranks_[unit == units_[rank] ? rank : unit].rank);
    }
    if (sides.copy.defined() && sides.copy.equal(sides.parts[sides.self])) sides.copy = at::Tensor();
    return sides;
  }

  bool judgeRank(const std::string& name, std::int32_t step, std::size_t rank, const std::vector<std::size_t>& holders,
                 bool& isSaid) {
    const auto& gradient = *gradientOf(rank, name, step);
    const auto* weight = weightOf(rank, name);
    std::string why;
    const auto sides = sidesOf(name, step, rank, copiesOf(rank, name, holders), why);
    if (!sides) return refuse(name, why);
    const auto through = collectivesOn(rank, gradient);
    auto relation = relationOf(*sides, false, precisionOf(rank, through, gradient));
    const bool isOfSeveral = sides->parts.size() > 1;
    if (!relation.holds && loss_ != LossKind::mean && isOfSeveral) relation.holds = relationOf(*sides, true, {}).holds;
    else if (relation.holds && loss_ == LossKind::sum && isOfSeveral) sayMean(sides->parts.size());
    if (!relation.holds && loss_ != LossKind::mean && !isAlone(rank)) relation.holds = isSumOfUnit(*sides, rank);
    // Parts of one whole that begin with equal numbers, as biases of zeros, look like copies.
    if (!relation.holds && !isAlone(rank) && weight && !weight->shard && weight->isConstant)
      if (const auto alone = sidesOf(name, step, rank, {rank}, why))
        relation.holds = relationOf(*alone, false, {}).holds;
    const auto* first = firstReduction(rank, through);
    if (relation.holds && first) innocent_.insert(recordedLine(ranks_[rank].document(), first->op));
    if (!relation.holds && !std::exchange(isSaid, true))
      pending_.push_back({name, rank, &gradient, std::move(relation), first});
    return true;
  }

  /// The losses of its ranks are parts of one sum, not of one mean.
  bool isSumOfUnit(GradientSides sides, std::size_t rank) const {
    sides.read = sides.read / static_cast<double>(std::ranges::count(units_, units_[rank]));
    return relationOf(sides, false, {}).holds;
  }

  /// Of all gradients that the rank's updates read.
  double largestOf(std::size_t rank) const {
    double found = 0;
    for (const auto& [name, gradients] : runs_[rank].gradients)
      for (const auto& one : gradients) found = std::max(found, one.largest);
    return found;
  }

  void sayMean(std::size_t ranks) {
    if (std::exchange(saidMean_, true)) return;
    judged_.notes.push_back(
        fmt::format("the loss is a sum over the batch, and gradients are the mean over ranks: 1/{} of "
                    "those of one process on the whole batch",
                    ranks));
  }

  /// Of the backward that made it, else of what read it.
  std::string lineOf(std::size_t rank, const RankGradient& gradient) const {
    return recordedLine(ranks_[rank].document(), gradient.made ? gradient.made : gradient.readBy);
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
    auto looked = through;
    if (!isAlone(rank)) {  // on the way from the loss, too
      looked.resize(ranks_[rank].collectives.size());
      std::iota(looked.begin(), looked.end(), 0);
    }
    for (const auto one : looked) {
      const auto& call = ranks_[rank].collectives[one];
      const auto phase = ranks_[rank].recording().op(call.op).phase;
      if (!call.reduces() || call.given.empty() || phase == Phase::forward || phase == Phase::loss) continue;
      const auto dtype = ranks_[rank].document().meta(call.given.front()).dtype;
      if (epsilonOf(toScalarType(dtype)) > epsilonOf(gradient.dtype)) return std::string(torchName(dtype));
    }
    return {};
  }

  const Collective* firstReduction(std::size_t rank, const std::vector<std::size_t>& through) const {
    for (const auto one : through)
      if (const auto& call = ranks_[rank].collectives[one]; call.reduces()) return &call;
    return nullptr;
  }

  /// Of a collective that gives other gradients as they have to be, nothing is said.
  void claim(const Pending& one, bool isScaled) {
    const auto& document = ranks_[one.rank].document();
    Claim claim{.by = Producer::rank,
                .kind = one.relation.kind,
                .line = lineOf(one.rank, *one.gradient),
                .op = one.gradient->made};
    claim.sentence = fmt::format("gradient in step {}: {}", one.gradient->step, one.relation.sentence);
    const auto line = one.first ? recordedLine(document, one.first->op) : std::string();
    if (one.first && (isAlone(one.rank) || !innocent_.contains(line))) {
      claim.sentence += "; it goes through " + callText(*one.first);
      if (!line.empty()) claim.line = line;
      claim.op = one.first->op;
    } else if (!one.first && isAlone(one.rank)) {
      claim.sentence += "; no collective reduces it";
    }
    claim.measure =
        Measure{.deviation = one.relation.deviation, .tolerance = one.relation.tolerance, .scale = one.relation.scale};
    if (isScaled) {
      claim.severity = Severity::suspicion;
      claim.remedy = "all gradients have this factor: it may be a clipping or scaling of the loop's own";
    }
    groups_.add(std::move(claim), one.name);
  }

  /// All gradients have one factor that no number of ranks explains.
  bool areScaledAlike() const {
    if (pending_.empty() || pending_.size() < judged_.due.size()) return false;
    const auto factor = pending_.front().relation.factor;
    constexpr double most = 64, near = 1e-3;
    const auto whole = factor < 1 && factor > 0 ? 1 / factor : factor;
    if (factor == 0 || (whole < most && std::abs(whole - std::round(whole)) < near * whole)) return false;
    return std::ranges::all_of(
        pending_, [&](const Pending& one) { return std::abs(one.relation.factor - factor) < near * factor; });
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
  std::vector<Pending> pending_;
  std::set<std::string> innocent_;  ///< lines of reductions of gradients that are as they have to be
  bool saidMean_ = false;
};

}  // namespace

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
