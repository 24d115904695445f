#include "core/torch/together/ranks_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/formats/recording/recording.h"
#include "core/questions/ranks/forwards.h"
#include "core/torch/steps/step_report.h"
#include "core/torch/together/against_single.h"
#include "core/torch/together/collective_values.h"
#include "core/torch/together/derived_gradients.h"
#include "core/torch/together/gradient_audit.h"
#include "core/torch/together/replicas.h"

namespace retrograd {
namespace {

void add(std::vector<Claim>& all, const std::vector<Claim>& some) { all.insert(all.end(), some.begin(), some.end()); }

void sayOfRun(const RankStep& rank, const ReplayResult& replay, Report& report) {
  const auto subject = fmt::format("rank {}", rank.rank);
  if (!rank.recording().error.empty()) {
    auto claim = claimOfError(rank.document(), rank.recording());
    claim.sentence = subject + ": " + claim.sentence;
    report.claims.push_back(std::move(claim));
  }
  if (!replay.stopped.empty()) report.notJudged.push_back({subject, replay.stopped});
  if (const auto& damage = rank.recording().damage; !damage.empty())
    report.notJudged.push_back({subject, "the recording is damaged or cut off: " + damage});
  for (const auto& why : replay.notComparable)
    report.notes.push_back(fmt::format("hashes of rank {} may differ, because {}", rank.rank, why));
  if (replay.differing > 0 && replay.notComparable.empty())
    report.claims.push_back(
        {.by = Producer::replay,
         .kind = "hash-differs",
         .sentence = fmt::format("rank {}: {} results are not as recorded", rank.rank, replay.differing),
         .line = replay.first.empty() ? "" : recordedLine(rank.document(), replay.first.front().op),
         .op = replay.first.empty() ? BoundSymbolId() : replay.first.front().op});
}

}  // namespace

Report reportOfRanks(const std::string& folder, const std::vector<std::shared_ptr<const Analysis>>& analyses,
                     const std::shared_ptr<const Analysis>& single, const Progress& progress) {
  std::vector<RankStep> ranks;
  std::set<std::int64_t> seen;
  for (const auto& analysis : analyses) {
    const auto rank = analysis->file.recording->rank;
    if (!seen.insert(rank).second)
      return reportOfRefusal(folder,
                             fmt::format("two recordings are of rank {}: it is not one run of several ranks", rank));
    ranks.push_back({rank, analysis, collectivesOf(*analysis)});
  }
  Report report{.subject = folder, .unit = "gradient that an optimizer read"};
  const auto expected = static_cast<std::size_t>(std::max<std::int64_t>(1, ranks.front().recording().ranks));
  if (ranks.size() < expected)
    report.notJudged.push_back(
        {fmt::format("{} of {} ranks", expected - ranks.size(), expected), "there is no recording of them"});
  auto meetings = meetingsOf(ranks);
  add(report.claims, meetings.claims);
  report.notJudged.insert(report.notJudged.end(), meetings.notJudged.begin(), meetings.notJudged.end());
  SpilledTensors spilled;
  std::vector<RankRun> runs;
  for (const auto& rank : ranks) {
    runs.push_back(runRank(rank, spilled, progress));
  }
  const auto units = unitsOf(ranks, runs);
  const auto isAlone = [&](std::size_t rank) { return std::ranges::count(units, units[rank]) == 1; };
  for (std::size_t rank = 1; rank < ranks.size() && report.claims.empty(); ++rank)
    if (isAlone(0) && isAlone(rank)) add(report.claims, partingForwards(ranks[0], ranks[rank]));
  add(report.claims, judgeDraws(ranks, runs, units));
  auto gradients = judgeGradients(ranks, runs, deriveTogether(ranks, runs, meetings, spilled, progress), spilled);
  add(report.claims, gradients.claims);
  if (single && gapIn(ranks, runs).empty()) {
    const RankStep one{.rank = 0, .analysis = single, .collectives = {}};
    const auto whole = runRank(one, spilled, progress);
    auto against = judgeAgainstSingle(ranks, runs, whole, spilled);
    add(report.claims, against.claims);
    gradients.notJudged.insert(gradients.notJudged.end(), against.notJudged.begin(), against.notJudged.end());
    report.notes.push_back(fmt::format("{} of {} gradients compared with {}", against.judged.size(), against.due.size(),
                                       one.recording().path));
  }
  auto collectives = judgeCollectives(ranks, runs, meetings, spilled);
  add(report.claims, collectives.claims);
  std::set<std::string> explained;
  for (const auto& claim : gradients.claims) explained.insert(claim.parameters.begin(), claim.parameters.end());
  add(report.claims, judgeReplicas(ranks, runs, units, explained, spilled));
  for (std::size_t i = 0; i < ranks.size(); ++i) sayOfRun(ranks[i], runs[i].replay, report);
  report.judged = gradients.judged.size();
  report.due = gradients.due.size();
  report.notJudged.insert(report.notJudged.end(), gradients.notJudged.begin(), gradients.notJudged.end());
  if (gradients.due.empty() && report.claims.empty()) report.notJudged.push_back({"", "no update read a gradient"});
  report.notes.insert(report.notes.end(), gradients.notes.begin(), gradients.notes.end());
  report.notes.push_back(fmt::format("{} results of {} collectives of {} ranks compared", collectives.compared,
                                     meetings.all.size(), ranks.size()));
  report.notes.insert(report.notes.end(), collectives.notes.begin(), collectives.notes.end());
  report.notes.push_back("whether each rank's own backward is right: retrograd check " +
                         ranks.front().recording().path + ", and so on");
  report.details = {{"ranks", static_cast<double>(ranks.size())},
                    {"collectives", static_cast<double>(meetings.all.size())},
                    {"results_compared", static_cast<double>(collectives.compared)}};
  return report;
}

}  // namespace retrograd
