#include "core/torch/page/gather_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/byte_size.h"
#include "core/formats/files/reading_limit.h"
#include "core/formats/recording/recording.h"
#include "core/page/html.h"
#include "core/questions/memory_join/recorded_memory.h"
#include "core/questions/nan_walk.h"
#include "core/torch/checking/check.h"
#include "core/torch/opening/open_model.h"
#include "core/torch/opinion/second_opinion.h"
#include "core/torch/reading/formats.h"
#include "core/torch/session/record_run.h"
#include "core/torch/steps/step_report.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

constexpr std::size_t mostRows = 300;

std::string fileName(const std::string& path) {
  auto name = fs::path(path).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  return name.filename().string();
}

PageTable tableOf(const std::string& title, const std::vector<MemoryGroup>& groups, std::uint64_t whole) {
  PageTable table{title, {}, {title, "Bytes", "Share", "Blocks"}, {}};
  for (const auto& group : groups) {
    if (table.rows.size() == mostRows) break;
    const auto category = std::string(name(group.category));
    table.rows.push_back(
        {group.name == category ? category : group.name + " (" + category + ")",
         bytesText(static_cast<std::int64_t>(group.bytes)),
         fmt::format("{:.1f} %", whole ? 100.0 * static_cast<double>(group.bytes) / static_cast<double>(whole) : 0.0),
         std::to_string(group.count)});
  }
  return table;
}

GatheredPage snapshotPage(const std::string& path, std::shared_ptr<const MemorySnapshot> snapshot,
                          const Progress& progress) {
  const auto device = firstDevice(*snapshot);
  const auto recorded = recordedMemory(path, std::move(snapshot), device, progress);
  const auto held = heldAfter(recorded.history, recorded.first());
  GatheredPage gathered;
  auto& page = gathered.page;
  page.title = fileName(path);
  page.kind = "memory snapshot";
  page.report.subject = path;
  const auto bytes = [](std::uint64_t count) { return bytesText(static_cast<std::int64_t>(count)); };
  page.facts = {{"Device", std::to_string(device)},
                {"Events", std::to_string(recorded.history.events)},
                {"Peak", bytes(recorded.history.peakBytes)},
                {"Reserved", bytes(recorded.history.reservedBytes)},
                {"Steps", std::to_string(recorded.history.steps.size())}};
  if (recorded.failed >= 0) page.facts.emplace_back("Request that failed", fmt::format("event {}", recorded.failed));
  for (const auto& finding : recorded.findings) page.report.claims.push_back(claimOf(finding));
  page.notes.emplace_back("A snapshot has no gradients, so there is nothing to judge: it shows what held memory.");
  for (const auto& [title, by] : {std::pair("Category", MemoryGrouping::category),
                                  std::pair("Line", MemoryGrouping::line), std::pair("Module", MemoryGrouping::module)})
    page.tables.push_back(tableOf(title, memoryGroups(held, *recorded.places, by), held.bytes));
  return gathered;
}

PageTable updateTable(const OptimizerUpdates& updates) {
  PageTable table{"Updates",
                  "What each update of the optimizer did: norms of gradient, weight and update.",
                  {"Parameter", "Update", "Gradient", "Clipped by", "Weight", "Change", "Change / weight"},
                  {}};
  const auto norm = [](const std::optional<TensorStatistics>& statistics) {
    return statistics ? numberText(normOfAll(*statistics)) : std::string();
  };
  for (const auto& step : updates.steps) {
    for (const auto& update : step.parameters) {
      if (table.rows.size() == mostRows) return table;
      const auto factor = update.clipFactor(), ratio = update.ratio();
      table.rows.push_back({update.parameter, titleOf(updates, step) + (step.wasSkipped ? " (skipped)" : ""),
                            norm(update.gradient), factor ? numberText(*factor) : "", norm(update.weight),
                            norm(update.update), ratio ? numberText(*ratio) : ""});
    }
  }
  return table;
}

/// What holds is no finding.
Report withoutWhatHolds(Report report) {
  std::erase_if(report.claims, [](const Claim& claim) { return claim.good(); });
  return report;
}

Report judgeJob(const OpenRequest& asked, const Progress& progress) {
  SecondOpinionRequest request;
  request.compile = asked.data.compile;
  request.rank = asked.data.rank;
  request.seed = asked.seed.value_or(0);
  return withoutWhatHolds(secondOpinion(jobs::openJobLog(asked.path, progress), request, progress).report);
}

Report judgeModel(const OpenRequest& asked, const Progress& progress) {
  CheckOptions options;
  static_cast<ModelRequest&>(options) = asked;
  return withoutWhatHolds(checkModel(asked.path, options, progress));
}

/// Fills a page of what was opened.
class Gathering {
 public:
  Gathering(const OpenRequest& request, const Progress& progress) : request_(request), progress_(progress) {}

  GatheredPage take(bool run, bool strict) {
    gathered_.analysis = openModel(request_, progress_);
    const auto& analysis = *gathered_.analysis;
    auto& page = gathered_.page;
    page.title = fileName(request_.path);
    page.kind = name(analysis.file.format);
    page.analysis = &analysis;
    for (const auto& problem : analysis.problems)
      page.notes.push_back(problem.place.empty() ? problem.message : problem.place + ": " + problem.message);
    if (run) judge(strict);
    else page.notes.emplace_back("It was not run (--no-run), so there is no verdict and there are no numbers.");
    page.report.subject = request_.path;
    facts();
    if (run && analysis.derived()) measure();
    return std::move(gathered_);
  }

 private:
  void judge(bool strict) {
    auto judged = judgeOpened(request_, gathered_.analysis, progress_);
    gathered_.page.report = std::move(judged.report);
    gathered_.page.decision = decide(gathered_.page.report, strict);
    if (!judged.updates.steps.empty()) gathered_.page.tables.push_back(updateTable(judged.updates));
  }

  /// Numbers of every value; without them the page says why.
  void measure() {
    try {
      gathered_.values = std::make_unique<const RunRecord>(recordRun(*gathered_.analysis, {}, progress_));
      gathered_.page.values = gathered_.values.get();
      placeNan();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      gathered_.page.notes.push_back(std::string("numbers are not shown: ") + error.what());
    }
  }

  /// Where no fault names an op, that of numbers that are not finite gets the op that made the first of them.
  void placeNan() {
    auto& claims = gathered_.page.report.claims;
    if (std::ranges::any_of(claims, [](const Claim& one) { return one.severity == Severity::fault && one.op; })) return;
    const auto claim = std::ranges::find_if(
        claims, [](const Claim& one) { return one.by == Producer::health && one.severity == Severity::fault; });
    if (claim == claims.end()) return;
    const auto walk = walkToRoots(*gathered_.analysis, *gathered_.values);
    if (!walk.root) return;
    claim->op = walk.root;
    if (walk.forward) claim->also.push_back(walk.forward);
    if (!walk.explanation.empty()) claim->sentence += "; " + walk.explanation;
  }

  void facts() {
    const auto& analysis = *gathered_.analysis;
    auto& facts = gathered_.page.facts;
    if (!analysis.file.torchVersion.empty()) facts.emplace_back("PyTorch", analysis.file.torchVersion);
    if (const auto& recording = analysis.file.recording) {
      facts.emplace_back("Device", recording->device);
      facts.emplace_back("Updates", std::to_string(recording->updates.size()));
      if (recording->ranks > 1) facts.emplace_back("Rank", fmt::format("{} of {}", recording->rank, recording->ranks));
      if (!recording->error.empty()) facts.emplace_back("Ended by", recording->error);
    }
    facts.emplace_back("Ops", std::to_string(analysis.derived() ? analysis.joint.ops.size()
                                                                : analysis.computation().trace.ops.size()));
    for (const auto& line : analysis.inputSource) gathered_.page.notes.push_back(line);
  }

  const OpenRequest& request_;
  const Progress& progress_;
  GatheredPage gathered_;
};

}  // namespace

std::shared_ptr<const MemorySnapshot> snapshotAt(const std::string& path, const Progress& progress) {
  requireReadable(path);
  if (!isOf(Format::pickle, path)) return nullptr;
  try {
    return openMemorySnapshot(path, progress);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::badInput) throw;
    return nullptr;  // a pickle of another kind, which the reader of models names
  }
}

JudgedFile judgeOpened(const OpenRequest& request, const std::shared_ptr<const Analysis>& analysis,
                       const Progress& progress) {
  try {
    if (!analysis->file.recording)
      return {analysis->file.format == Format::job ? judgeJob(request, progress) : judgeModel(request, progress), {}};
    auto step = runStep(analysis, progress);
    return {reportOf(step), std::move(step.step.updates)};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    JudgedFile judged;
    judged.report.notJudged.push_back({"", error.what()});
    return judged;
  }
}

GatheredPage gatherPage(const OpenRequest& request, bool run, bool strict, const Progress& progress) {
  if (auto snapshot = snapshotAt(request.path, progress))
    return snapshotPage(request.path, std::move(snapshot), progress);
  return Gathering(request, progress).take(run, strict);
}

}  // namespace retrograd
