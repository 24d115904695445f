#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/schedule/schedule_check.h"
#include "core/schedule/schedule_kinds.h"
#include "core/schedule/schedule_report.h"
#include "core/schedule/schedule_simulation.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

namespace fs = std::filesystem;

const fs::path samples = fs::path(sourcePath("tests/data/schedules"));
const fs::path cases = fs::path(sourcePath("../shared/cases/schedules"));

struct Golden {
  std::string name;
  std::int32_t ranks, microbatches;
  double makespan, bubble;
  std::vector<std::int32_t> inFlight;
};

std::vector<Golden> goldens(const fs::path& folder) {
  std::ifstream file(folder / "golden.json");
  std::vector<Golden> result;
  if (!file) return result;
  for (const auto& row : nlohmann::json::parse(file))
    result.push_back({row[0], row[1], row[2], row[3][0], row[3][1], row[3][2]});
  return result;
}

Schedule make(const std::string& name, std::int32_t ranks, std::int32_t microbatches) {
  const auto* kind = findScheduleKind(name);
  EXPECT_NE(kind, nullptr) << name;
  return makeSchedule(*kind, ranks, microbatches);
}

void expectFigures(const Golden& golden, const Schedule& schedule) {
  const auto run = simulate(schedule);
  EXPECT_EQ(run.makespan, golden.makespan);
  EXPECT_NEAR(run.bubble, golden.bubble, 5e-5);
  ASSERT_EQ(run.ranks.size(), golden.inFlight.size());
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
    EXPECT_EQ(run.ranks[rank].peakInFlight, golden.inFlight[rank]) << "rank " << rank;
}

/// "<kind>_pp<ranks>_mb<microbatches>[_fixed|_spaced].csv"
struct Sample {
  fs::path path;
  std::string name, form;
  std::int32_t ranks, microbatches;
};

std::vector<Sample> samplesOf(const fs::path& folder) {
  std::vector<Sample> result;
  if (!fs::is_directory(folder)) return result;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto stem = entry.path().stem().string();
    const auto ranks = stem.find("_pp"), microbatches = stem.find("_mb");
    if (entry.path().extension() != ".csv" || ranks == stem.npos || microbatches == stem.npos) continue;
    const auto form = stem.find('_', microbatches + 1);
    result.push_back({entry.path(), stem.substr(0, ranks), form == stem.npos ? "" : stem.substr(form + 1),
                      std::stoi(stem.substr(ranks + 3)), std::stoi(stem.substr(microbatches + 3))});
  }
  std::sort(result.begin(), result.end(), [](const Sample& a, const Sample& b) { return a.path < b.path; });
  return result;
}

std::string contentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::erase(text, '\r');
  return text;
}

/// PyTorch's orders that are wrong: 1F1B's last rank has no microbatch 0 (P65), and the spaced ZBV repeats other ranks'
/// actions at its ends.
bool isBroken(const Sample& sample) {
  return (sample.name == "1F1B" && sample.form.empty()) || (sample.name == "ZBVZeroBubble" && sample.form == "spaced");
}

void expectAsInFile(const Sample& sample) {
  SCOPED_TRACE(sample.path.filename().string());
  const auto file = readScheduleFile(sample.path.string());
  EXPECT_EQ(checkSchedule(file).ok(), !isBroken(sample));
  if (isBroken(sample)) return;
  const auto ours = make(sample.name, sample.ranks, sample.microbatches);
  EXPECT_EQ(file.ranks, ours.ranks);
  const auto csv = sample.form == "spaced" ? writeSpacedScheduleCsv(ours) : writeScheduleCsv(ours);
  EXPECT_EQ(csv, contentOf(sample.path));
  EXPECT_EQ(simulate(file).makespan, simulate(ours).makespan);
}

TEST(ScheduleConformance, ordersAreThoseOfTheSamples) {
  const auto all = samplesOf(samples);
  ASSERT_EQ(all.size(), 9u);
  for (const auto& sample : all) expectAsInFile(sample);
}

TEST(ScheduleConformance, ordersAreThoseOfAllCases) {
  if (!fs::is_directory(cases)) GTEST_SKIP() << "the folder of cases is not beside the checkout";
  const auto all = samplesOf(cases);
  EXPECT_GE(all.size(), 28u);
  for (const auto& sample : all) expectAsInFile(sample);
}

TEST(ScheduleConformance, figuresAreTheGoldenOnes) {
  const auto all = goldens(samples);
  ASSERT_EQ(all.size(), 27u);
  for (const auto& golden : all) {
    SCOPED_TRACE(golden.name + " " + std::to_string(golden.ranks) + " ranks, " + std::to_string(golden.microbatches) +
                 " microbatches");
    expectFigures(golden, make(golden.name, golden.ranks, golden.microbatches));
  }
}

TEST(ScheduleConformance, pytorchsOneForwardOneBackwardIsRefusedAndOursRuns) {
  const auto theirs = readScheduleFile((samples / "1F1B_pp2_mb4.csv").string());
  const auto check = checkSchedule(theirs);
  ASSERT_FALSE(check.ok());
  EXPECT_EQ(check.problems.at(0).place, "rank 1, action 2 (1B0)");
  EXPECT_EQ(check.problems.at(0).message, "deadlock: it needs 1F0, which no rank does");
  ASSERT_EQ(check.waiting.size(), 2u);
  EXPECT_EQ(check.waiting.at(1).rank, 0);
  EXPECT_EQ(check.waiting.at(1).needed, "1B0");
  const auto ours = make("1F1B", 2, 4);
  EXPECT_EQ(text(ours.ranks[1].front()), "1F0");
  EXPECT_TRUE(checkSchedule(ours).ok());
}

// Holds P65: gradients that are reduced are part of a schedule like the rest.
TEST(ScheduleConformance, aReductionAtTheEndOfGPipeIsUnderstood) {
  auto schedule = make("GPipe", 2, 2);
  for (std::int32_t rank = 0; rank < 2; ++rank)
    schedule.ranks[static_cast<std::size_t>(rank)].push_back({ActionKind::reduceGrad, rank, -1, {}});
  const auto again = readScheduleCsv(writeScheduleCsv(schedule), "reduced");
  EXPECT_EQ(again.ranks, schedule.ranks);
  EXPECT_EQ(simulate(again).makespan, simulate(make("GPipe", 2, 2)).makespan);
}

}  // namespace
}  // namespace retrograd
