#include "core/torch/together/replicas.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/formats/recording/recording.h"
#include "core/torch/steps/step_books.h"

namespace retrograd {
namespace {

class Replicas {
 public:
  Replicas(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs, const std::vector<std::size_t>& units,
           const SpilledTensors& spilled)
      : ranks_(ranks), runs_(runs), units_(units), spilled_(spilled) {}

  std::vector<Claim> judge(const std::set<std::string>& explained) {
    std::set<std::string> names;
    for (const auto& run : runs_)
      for (const auto& [name, weight] : run.weights) names.insert(name);
    for (const auto& name : names) judgeWeight(name, explained.contains(name));
    auto claims = groups_.take();
    judgeData(claims);
    return claims;
  }

 private:
  const RankWeight* weightOf(std::size_t rank, const std::string& name) const {
    const auto found = runs_[rank].weights.find(name);
    return found == runs_[rank].weights.end() ? nullptr : &found->second;
  }

  /// What a rank holds after its last op is what it holds after the update only where all of it is known.
  bool isWhole(std::size_t rank) const { return retrograd::isWhole(ranks_[rank], runs_[rank]); }

  bool isAlone(std::size_t rank) const { return std::ranges::count(units_, units_[rank]) == 1; }

  void judgeWeight(const std::string& name, bool isExplained) {
    for (std::size_t a = 0; a < ranks_.size(); ++a)
      for (std::size_t b = a + 1; b < ranks_.size(); ++b) {
        const auto *one = weightOf(a, name), *other = weightOf(b, name);
        if (!one || !other || one->sizes != other->sizes) continue;
        if (one->shard && !holdSamePart(*one->shard, ranks_[a].rank, ranks_[b].rank)) continue;
        const bool wasEqual = one->before == other->before;
        const bool mustBeEqual = one->shard || (isAlone(a) && isAlone(b)) || arePartedCopies(*one, *other, spilled_);
        if (!mustBeEqual && (!wasEqual || one->isConstant)) continue;  // parts of one whole, written by hand
        if (one->isBuffer) {
          if (!wasEqual)
            say(name, a, b, *one, "buffer-parts", "the buffers of rank {} and rank {} differ", Severity::note);
        } else if (!wasEqual) {
          say(name, a, b, *one, "replicas-part", "the weights of rank {} and rank {} differ before the step",
              Severity::fault);
        } else if (one->after != other->after && !isExplained && isWhole(a) && isWhole(b)) {
          say(name, a, b, *one, "replicas-part",
              "the weights of rank {} and rank {} are equal before the update and differ after it", Severity::fault);
        } else {
          continue;
        }
        return;
      }
  }

  void say(const std::string& name, std::size_t a, std::size_t b, const RankWeight& weight, const char* kind,
           const char* sentence, Severity severity) {
    groups_.add({.by = Producer::rank,
                 .severity = severity,
                 .kind = kind,
                 .sentence = fmt::format(fmt::runtime(sentence), ranks_[a].rank, ranks_[b].rank),
                 .line = weight.written ? recordedLine(ranks_[a].document(), weight.written) : std::string(),
                 .op = weight.written},
                name);
  }

  void judgeData(std::vector<Claim>& claims) const {
    for (std::size_t a = 0; a < ranks_.size(); ++a)
      for (std::size_t b = a + 1; b < ranks_.size(); ++b) {
        if (!isAlone(a) || !isAlone(b) || runs_[a].inputs.empty() || runs_[a].inputs != runs_[b].inputs) continue;
        claims.push_back(
            {.by = Producer::rank,
             .severity = Severity::suspicion,
             .kind = "same-batch",
             .sentence = fmt::format("rank {} and rank {} read the same batch", ranks_[a].rank, ranks_[b].rank),
             .remedy = "give each rank a part of its own, as DistributedSampler does"});
        return;
      }
  }

  const std::vector<RankStep>& ranks_;
  const std::vector<RankRun>& runs_;
  const std::vector<std::size_t>& units_;
  const SpilledTensors& spilled_;
  ClaimGroups groups_;
};

}  // namespace

bool arePartedCopies(const RankWeight& a, const RankWeight& b, const SpilledTensors& spilled) {
  constexpr std::int64_t fewest = 8;  // elements: of fewer, chance may look like it
  constexpr double sameShare = 0.95;
  if (a.sizes != b.sizes || a.before == b.before || c10::multiply_integers(a.sizes) < fewest) return false;
  auto x = spilled.get(a.value), y = spilled.get(b.value);
  if (!x.is_floating_point()) return false;
  x = x.to(at::kDouble).flatten();
  y = y.to(at::kDouble).flatten();
  x = x - x.mean();
  y = y - y.mean();
  return x.dot(y).item<double>() > sameShare * x.norm().item<double>() * y.norm().item<double>();
}

std::vector<Claim> judgeDraws(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                              const std::vector<std::size_t>& units) {
  for (std::size_t a = 0; a < ranks.size(); ++a)
    for (std::size_t b = a + 1; b < ranks.size(); ++b) {
      const auto &one = runs[a].draws, &other = runs[b].draws;
      if (one.size() != other.size() || units[a] != units[b]) continue;
      for (std::size_t i = 0; i < one.size(); ++i) {
        if (!one[i].read || one[i].read != other[i].read || one[i].drawn == other[i].drawn) continue;
        const auto& document = ranks[a].document();
        return {{.by = Producer::rank,
                 .kind = "draws-part",
                 .sentence = fmt::format("rank {} and rank {} read equal values in {} and draw differently",
                                         ranks[a].rank, ranks[b].rank, document.symbol(one[i].op).name),
                 .remedy = "ranks that compute one forward need one seed where they hold equal values",
                 .line = recordedLine(document, one[i].op),
                 .op = one[i].op}};
      }
    }
  return {};
}

std::vector<Claim> judgeReplicas(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                                 const std::vector<std::size_t>& units, const std::set<std::string>& explained,
                                 const SpilledTensors& spilled) {
  return Replicas(ranks, runs, units, spilled).judge(explained);
}

}  // namespace retrograd
