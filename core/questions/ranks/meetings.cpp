#include "core/questions/ranks/meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/formats/recording/recording.h"

namespace retrograd {
namespace {

using Member = Meeting::Member;

class Pairing {
 public:
  explicit Pairing(const std::vector<RankStep>& ranks) : ranks_(ranks) {
    for (std::size_t i = 0; i < ranks.size(); ++i) places_[ranks[i].rank] = i;
  }

  Meetings make() {
    std::map<std::vector<std::int64_t>, std::vector<std::vector<std::size_t>>> groups;  // calls by member
    for (std::size_t step = 0; step < ranks_.size(); ++step)
      for (std::size_t i = 0; i < ranks_[step].collectives.size(); ++i) {
        const auto& one = ranks_[step].collectives[i];
        if (one.kind == CollectiveKind::send || one.kind == CollectiveKind::receive) {
          transfer(step, i);
          continue;
        }
        auto& calls = groups[one.group];
        calls.resize(one.group.size());
        const auto at = std::ranges::find(one.group, ranks_[step].rank);
        if (at != one.group.end()) calls[at - one.group.begin()].push_back(i);
      }
    for (const auto& [group, calls] : groups) pairGroup(group, calls);
    pairTransfers();
    std::ranges::stable_sort(found_.all, {}, [](const Meeting& meeting) {
      return std::pair(meeting.members.front().step, meeting.members.front().collective);
    });
    return std::move(found_);
  }

 private:
  using Way = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // from, to, tag

  void transfer(std::size_t step, std::size_t i) {
    const auto& one = ranks_[step].collectives[i];
    if (one.root < 0 || std::cmp_greater_equal(one.root, one.group.size())) return;
    const auto other = one.group[one.root], self = ranks_[step].rank;
    const bool sends = one.kind == CollectiveKind::send;
    auto& way = transfers_[sends ? Way(self, other, one.tag) : Way(other, self, one.tag)];
    (sends ? way.first : way.second).push_back({step, i});
  }

  void pairGroup(const std::vector<std::int64_t>& group, const std::vector<std::vector<std::size_t>>& calls) {
    std::vector<std::size_t> steps;
    for (const auto rank : group) {
      const auto place = places_.find(rank);
      if (place == places_.end()) {
        found_.notJudged.push_back({fmt::format("collectives over {}", ranksText(group)),
                                    fmt::format("there is no recording of rank {}", rank)});
        return;
      }
      steps.push_back(place->second);
    }
    std::size_t most = 0;
    for (const auto& one : calls) most = std::max(most, one.size());
    for (std::size_t n = 0; n < most; ++n) {
      Meeting meeting;
      for (std::size_t member = 0; member < calls.size(); ++member) {
        if (n >= calls[member].size()) return claimAbsent(group, steps, calls, n, member);
        meeting.members.push_back({steps[member], calls[member][n]});
      }
      for (const auto& member : meeting.members)
        if (const auto what = difference(meeting.members.front(), member); !what.empty())
          return claimOther(n, meeting.members.front(), member, what);
      found_.all.push_back(std::move(meeting));
    }
  }

  const Collective& of(const Member& member) const { return ranks_[member.step].collectives[member.collective]; }
  std::string lineOf(const Member& member) const { return recordedLine(ranks_[member.step].document(), of(member).op); }
  std::string textOf(const Member& member) const {
    const auto line = lineOf(member);
    return retrograd::textOf(ranks_[member.step].document(), of(member)) + (line.empty() ? "" : " (" + line + ")");
  }
  std::int64_t rankOf(const Member& member) const { return ranks_[member.step].rank; }

  /// What two calls that meet do not have in common; empty where they may meet.
  std::string difference(const Member& a, const Member& b) const {
    const auto &x = of(a), &y = of(b);
    if (x.kind != y.kind) return "another collective";
    if (x.reduction != y.reduction) return "another reduction";
    if (x.root != y.root) return "another root";
    const auto &xs = x.given, &ys = y.given;
    const bool isSame = x.kind == CollectiveKind::allReduce || x.kind == CollectiveKind::broadcast ||
                        x.kind == CollectiveKind::reduce || x.kind == CollectiveKind::reduceScatter ||
                        (x.kind == CollectiveKind::allGather && !x.inPieces);
    if (isSame && xs.size() != ys.size()) return "another number of tensors";
    for (std::size_t i = 0; i < std::min(xs.size(), ys.size()); ++i) {
      const auto &xm = ranks_[a.step].document().meta(xs[i]), &ym = ranks_[b.step].document().meta(ys[i]);
      if (xm.dtype != ym.dtype) return "another dtype";
      if (isSame && xm.elements() != ym.elements()) return "other sizes";
    }
    return {};
  }

  void claimOther(std::size_t n, const Member& a, const Member& b, const std::string& what) {
    found_.claims.push_back(
        {.by = Producer::rank,
         .kind = "desynchronised",
         .sentence = fmt::format("the ranks part at collective {} over {}: {}; rank {} calls {}, rank {} {}", n,
                                 ranksText(of(a).group), what, rankOf(a), textOf(a), rankOf(b), textOf(b)),
         .remedy = "all ranks of a group have to call the same collectives in one order",
         .line = lineOf(b),
         .op = of(b).op});
  }

  void claimAbsent(const std::vector<std::int64_t>& group, const std::vector<std::size_t>& steps,
                   const std::vector<std::vector<std::size_t>>& calls, std::size_t n, std::size_t absent) {
    std::size_t there = 0;
    while (n >= calls[there].size()) ++there;
    const Member waiting{steps[there], calls[there][n]};
    const auto& gone = ranks_[steps[absent]].recording();
    std::string why;
    if (!gone.error.empty())
      why = "; it ended with: " + gone.error + (gone.raised.line.empty() ? "" : ", " + gone.raised.line);
    else if (!gone.damage.empty()) why = "; its recording breaks off: " + gone.damage;
    found_.claims.push_back(
        {.by = Producer::rank,
         .kind = "desynchronised",
         .sentence = fmt::format("rank {} does not come to collective {} over {}, for which rank {} waits: {}{}",
                                 group[absent], n, ranksText(group), rankOf(waiting),
                                 retrograd::textOf(ranks_[waiting.step].document(), of(waiting)), why),
         .remedy = "all ranks of a group have to call the same collectives in one order",
         .line = lineOf(waiting),
         .op = of(waiting).op});
  }

  void pairTransfers() {
    for (const auto& [way, ends] : transfers_) {
      const auto& [sent, received] = ends;
      const auto [from, to, tag] = way;
      if (!places_.contains(from) || !places_.contains(to)) {
        found_.notJudged.push_back(
            {fmt::format("what rank {} sends to rank {}", from, to), "one of them has no recording"});
        continue;
      }
      for (std::size_t i = 0; i < std::max(sent.size(), received.size()); ++i) {
        if (i < sent.size() && i < received.size()) {
          found_.all.push_back({{sent[i], received[i]}});
          continue;
        }
        const auto& alone = i < sent.size() ? sent[i] : received[i];
        found_.claims.push_back({.by = Producer::rank,
                                 .kind = "desynchronised",
                                 .sentence = fmt::format("rank {} calls {}, and rank {} has no call for it",
                                                         rankOf(alone), textOf(alone), i < sent.size() ? to : from),
                                 .line = lineOf(alone),
                                 .op = of(alone).op});
        break;
      }
    }
  }

  const std::vector<RankStep>& ranks_;
  std::map<std::int64_t, std::size_t> places_;
  std::map<Way, std::pair<std::vector<Member>, std::vector<Member>>> transfers_;
  Meetings found_;
};

}  // namespace

Meetings meetingsOf(const std::vector<RankStep>& ranks) { return Pairing(ranks).make(); }

}  // namespace retrograd
