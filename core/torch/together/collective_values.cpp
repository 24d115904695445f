#include "core/torch/together/collective_values.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/formats/recording/recording.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

using Given = std::function<at::Tensor(std::size_t member, std::size_t n)>;

/// One reduction at a time.
class Reducing {
 public:
  Reducing(const std::string& how, std::size_t members) : how_(how), members_(static_cast<double>(members)) {}

  bool isKnown() const {
    return how_ == "sum" || how_ == "avg" || how_ == "product" || how_ == "min" || how_ == "max" || how_ == "band" ||
           how_ == "bor" || how_ == "bxor";
  }

  void add(const at::Tensor& given) {
    epsilon_ = epsilonOf(given.scalar_type());
    isExact_ = !given.is_floating_point() && !given.is_complex();
    const auto wide = isExact_ ? given : given.to(given.is_complex() ? at::kComplexDouble : at::kDouble);
    if (!sum_.defined()) {
      sum_ = wide.clone();
    } else if (how_ == "product") {
      sum_.mul_(wide);
    } else if (how_ == "min") {
      sum_ = at::minimum(sum_, wide);
    } else if (how_ == "max") {
      sum_ = at::maximum(sum_, wide);
    } else if (how_ == "band") {
      sum_.bitwise_and_(wide);
    } else if (how_ == "bor") {
      sum_.bitwise_or_(wide);
    } else if (how_ == "bxor") {
      sum_.bitwise_xor_(wide);
    } else {
      sum_.add_(wide);
    }
    if (!isExact_ && wide.numel() > 0) {
      const auto largest = wide.abs().max().item<double>();
      scale_ = how_ == "product" ? std::max(1.0, scale_) * largest : scale_ + largest;
    }
  }

  ComputedResult take() {
    const bool rounds = !isExact_ && how_ != "min" && how_ != "max";
    auto value = how_ == "avg" && !isExact_ ? sum_ / members_ : sum_;
    const auto scale = how_ == "avg" ? scale_ / members_ : scale_;
    return {std::move(value), rounds ? epsilon_ * members_ * scale : 0};
  }

 private:
  const std::string how_;
  const double members_;
  at::Tensor sum_;
  double scale_ = 0, epsilon_ = 0;
  bool isExact_ = true;
};

at::Tensor rowsFor(const at::Tensor& tensor, const std::vector<std::int64_t>& rows, std::size_t place,
                   std::size_t members) {
  if (rows.empty()) return tensor.chunk(static_cast<std::int64_t>(members), 0).at(place);
  const auto begin = std::accumulate(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(place), std::int64_t{0});
  return tensor.narrow(0, begin, rows.at(place));
}

}  // namespace

double epsilonOf(at::ScalarType type) {
  switch (type) {
    case at::kDouble: return 2.3e-16;
    case at::kHalf: return 9.8e-4;
    case at::kBFloat16: return 7.9e-3;
    default: return 1.2e-7;
  }
}

std::optional<ComputedResult> computeResult(const std::vector<RankStep>& ranks, const Meeting& meeting,
                                            std::size_t member, std::size_t result, const Given& given,
                                            std::string& why) {
  const auto of = [&](std::size_t one) -> const Collective& {
    return ranks[meeting.members[one].step].collectives[meeting.members[one].collective];
  };
  const auto& call = of(member);
  const auto members = meeting.members.size();
  const auto taken = [&](std::size_t from, std::size_t n) -> std::optional<ComputedResult> {
    auto tensor = given(from, n);
    if (!tensor.defined()) {
      why = fmt::format("what rank {} put in is not known", ranks[meeting.members[from].step].rank);
      return std::nullopt;
    }
    return ComputedResult{std::move(tensor), 0};
  };
  const auto reduced = [&](std::size_t n, std::optional<std::size_t> chunk) -> std::optional<ComputedResult> {
    Reducing reducing(call.reduction, members);
    if (!reducing.isKnown()) {
      why = "the reduction '" + call.reduction + "' has a number that is not recorded";
      return std::nullopt;
    }
    for (std::size_t from = 0; from < members; ++from) {
      auto one = taken(from, n);
      if (!one) return std::nullopt;
      reducing.add(chunk ? one->value.reshape({-1}).chunk(static_cast<std::int64_t>(members)).at(*chunk) : one->value);
    }
    return reducing.take();
  };
  switch (call.kind) {
    case CollectiveKind::allReduce: return reduced(result, {});
    case CollectiveKind::reduce: return std::cmp_equal(call.root, member) ? reduced(result, {}) : taken(member, result);
    case CollectiveKind::broadcast: return taken(static_cast<std::size_t>(call.root), result);
    case CollectiveKind::allGather: {
      if (call.inPieces) {
        const auto each = call.given.size();
        return each == 0 ? std::nullopt : taken(result / each, result % each);
      }
      std::vector<at::Tensor> parts;
      for (std::size_t from = 0; from < members; ++from) {
        auto one = taken(from, result);
        if (!one) return std::nullopt;
        parts.push_back(one->value.reshape({-1}));
      }
      return ComputedResult{at::cat(parts), 0};
    }
    case CollectiveKind::reduceScatter: return call.inPieces ? reduced(member, {}) : reduced(result, member);
    case CollectiveKind::gather: return taken(result, 0);
    case CollectiveKind::scatter: return taken(static_cast<std::size_t>(call.root), member);
    case CollectiveKind::allToAll: {
      if (call.inPieces) return taken(result, member);
      std::vector<at::Tensor> parts;
      for (std::size_t from = 0; from < members; ++from) {
        auto one = taken(from, 0);
        if (!one) return std::nullopt;
        parts.push_back(rowsFor(one->value, of(from).givenRows, member, members));
      }
      return ComputedResult{at::cat(parts), 0};
    }
    case CollectiveKind::receive: return taken(0, result);
    default: return std::nullopt;
  }
}

namespace {

class JudgingCollectives {
 public:
  JudgingCollectives(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                     const SpilledTensors& spilled)
      : ranks_(ranks), runs_(runs), spilled_(spilled) {
    arrivals_.resize(ranks.size());
    for (std::size_t step = 0; step < ranks.size(); ++step) {
      const auto& recording = ranks[step].recording();
      for (const auto& op : recording.ops)
        if (op.arrivedOf && op.putCount > 0) {
          const auto& put = recording.puts[op.putsBegin];
          arrivals_[step].emplace(std::pair(op.arrivedOf, ranks[step].document().value(put.value).storage), put.data);
        }
    }
  }

  CollectivesJudged judge(const Meetings& meetings) {
    for (const auto& meeting : meetings.all) {
      if (isParted(meeting)) continue;
      for (std::size_t member = 0; member < meeting.members.size(); ++member) judgeMember(meeting, member);
    }
    for (const auto& [why, n] : notCompared_)
      judged_.notes.push_back(fmt::format("{} results of collectives are not compared: {}", n, why));
    return std::move(judged_);
  }

 private:
  /// A rank did not run so far.
  bool isParted(const Meeting& meeting) const {
    return std::ranges::any_of(meeting.members, [&](const Meeting::Member& one) {
      return runs_[one.step].given[one.collective].size() < ranks_[one.step].collectives[one.collective].given.size();
    });
  }

  void judgeMember(const Meeting& meeting, std::size_t member) {
    const auto& [step, number] = meeting.members[member];
    const auto& rank = ranks_[step];
    const auto& call = rank.collectives[number];
    if (call.kind == CollectiveKind::send) return;
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      const auto actual = recordedResult(step, call, call.results[i]);
      if (!actual.defined()) {
        ++notCompared_["nobody read them while it was recorded"];
        continue;
      }
      std::string why;
      const auto expected = computeResult(
          ranks_, meeting, member, i,
          [&](std::size_t from, std::size_t n) {
            const auto& one = meeting.members[from];
            const auto& given = runs_[one.step].given[one.collective];
            return n < given.size() ? spilled_.get(given[n]) : at::Tensor();
          },
          why);
      if (!expected) {
        if (!why.empty()) ++notCompared_[why];
        continue;
      }
      ++judged_.compared;
      if (auto wrong = differenceOf(actual, *expected); !wrong.empty()) claim(rank, call, wrong);
    }
  }

  at::Tensor recordedResult(std::size_t step, const Collective& call, ValueId value) const {
    const auto& document = ranks_[step].document();
    const auto found = arrivals_[step].find(std::pair(call.op, document.value(value).storage));
    if (found == arrivals_[step].end()) return {};
    const auto& data = ranks_[step].recording().data;
    const auto bytes = data.find(found->second);
    if (bytes == data.end()) return {};
    const auto& meta = document.meta(value);
    if (std::cmp_less(bytes->second.bytes, meta.storageBytes())) return {};
    auto memory = at::empty({static_cast<std::int64_t>(bytes->second.bytes)}, at::TensorOptions(at::kByte));
    std::memcpy(memory.mutable_data_ptr(), bytes->second.data, bytes->second.bytes);
    return at::empty({0}, at::TensorOptions(toScalarType(meta.dtype)))
        .set_(memory.storage(), meta.offset, meta.sizes, meta.strides);
  }

  static std::string differenceOf(const at::Tensor& actual, const ComputedResult& expected) {
    if (actual.numel() != expected.value.numel())
      return fmt::format("has {} elements, and {} were put in", actual.numel(), expected.value.numel());
    const auto flat = actual.reshape({-1}), wanted = expected.value.reshape({-1});
    if (flat.numel() == 0) return {};
    if (expected.rounding == 0 && !wanted.is_floating_point())
      return flat.equal(wanted.to(flat.scalar_type())) ? "" : "differs";
    const auto off = (flat.to(at::kDouble) - wanted.to(at::kDouble)).abs();
    const auto sameBad = flat.to(at::kDouble)
                             .isnan()
                             .logical_and(wanted.to(at::kDouble).isnan())
                             .logical_or(flat.to(at::kDouble).eq(wanted.to(at::kDouble)));
    const auto deviation = off.masked_fill(sameBad, 0).max().item<double>();
    if (deviation <= expected.rounding) return {};
    return "is " + textOf(Measure{.deviation = deviation,
                                  .tolerance = expected.rounding,
                                  .scale = wanted.to(at::kDouble).abs().max().item<double>()});
  }

  void claim(const RankStep& rank, const Collective& call, const std::string& wrong) {
    judged_.claims.push_back(
        {.by = Producer::rank,
         .kind = "collective-differs",
         .sentence = fmt::format("what rank {} got from {} {} against what the ranks put in", rank.rank,
                                 textOf(rank.document(), call), wrong),
         .remedy = "something wrote what was put in, or what came out, before the collective was waited for",
         .line = recordedLine(rank.document(), call.op),
         .op = call.op});
  }

  const std::vector<RankStep>& ranks_;
  const std::vector<RankRun>& runs_;
  const SpilledTensors& spilled_;
  std::vector<std::map<std::pair<BoundSymbolId, StorageId>, std::string>> arrivals_;
  std::map<std::string, std::size_t> notCompared_;
  CollectivesJudged judged_;
};

}  // namespace

CollectivesJudged judgeCollectives(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                                   const Meetings& meetings, const SpilledTensors& spilled) {
  return JudgingCollectives(ranks, runs, spilled).judge(meetings);
}

}  // namespace retrograd
