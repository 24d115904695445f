#include "core/torch/checking/suite.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

namespace fs = std::filesystem;

namespace retrograd {
namespace {

/// A folder of this test alone, removed at its end.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("retrograd-suite-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& file, const std::string& content = "x") const {
    fs::create_directories((path / file).parent_path());
    std::ofstream(path / file) << content;
  }
};

std::vector<SuiteCase> named(std::initializer_list<std::string> names) {
  std::vector<SuiteCase> cases;
  for (const auto& name : names) cases.push_back({name, name + ".pt2", {}});
  return cases;
}

TEST(Suite, everyArchiveIsACaseWithWhatItsFolderSays) {
  const Folder folder;
  for (auto file : {"mlp/model.pt2", "mlp/core.pt2", "mlp/ref.safetensors", "rand/model.pt2", "rand/notes.txt"})
    folder.write(file);
  folder.write("manifest.json", R"([{"dir": "rand", "deterministic": false}])");
  const auto cases = findCases(folder.path.string());
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0].name, "mlp");
  EXPECT_EQ(cases[1].name, "mlp/core");
  EXPECT_EQ(cases[2].name, "rand");
  EXPECT_FALSE(cases[1].options.reference.empty());
  EXPECT_TRUE(cases[1].options.deterministic);
  EXPECT_FALSE(cases[2].options.deterministic);
  EXPECT_TRUE(cases[2].options.reference.empty());
}

TEST(Suite, theFolderItselfMayHoldAModel) {
  const Folder folder;
  folder.write("one/model.pt2");
  const auto cases = findCases((folder.path / "one").string());
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].name, "one");
}

TEST(Suite, noFolderOrNoCaseIsBadUse) {
  const Folder folder;
  EXPECT_THROW(findCases((folder.path / "absent").string()), Error);
  EXPECT_THROW(findCases(folder.path.string()), Error);
}

TEST(Suite, noCaseCanEndTheOthers) {
  SuiteOptions options;
  options.caseSeconds = 1;
  options.check = [](const SuiteCase& one) {
    if (one.name == "crash") std::raise(SIGSEGV);
    if (one.name == "exit") _exit(3);
    if (one.name == "hang") std::this_thread::sleep_for(std::chrono::minutes(5));
    if (one.name == "throw") throw Error(ErrorCode::badInput, "trouble", one.model);
    CheckReport report;
    report.error = 1e-7;
    report.worst = "grad.p.w";
    return report;
  };
  std::vector<std::string> seen;
  const auto reports = checkSuite(named({"a", "crash", "b", "hang", "exit", "throw", "c"}), options,
                                  [&](const auto& r) { seen.push_back(r.name); });
  ASSERT_EQ(reports.size(), 7u);
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "crash", "b", "hang", "exit", "throw", "c"}));
  EXPECT_NE(reports[1].reason.find("signal 11"), std::string::npos) << reports[1].reason;
  EXPECT_NE(reports[3].reason.find("longer than"), std::string::npos) << reports[3].reason;
  EXPECT_NE(reports[4].reason.find("exit code 3"), std::string::npos) << reports[4].reason;
  EXPECT_EQ(reports[5].reason, "throw.pt2: trouble");
  for (auto i : {0, 2, 6}) EXPECT_EQ(reports[static_cast<std::size_t>(i)].status, CheckStatus::pass);
  EXPECT_EQ(summary(reports), "3 passed, 0 failed, 4 errors, 0 skipped");
}

TEST(Suite, aStopEndsTheWorker) {
  std::stop_source stop;
  stop.request_stop();
  SuiteOptions options;
  options.check = [](const SuiteCase&) -> CheckReport {
    std::this_thread::sleep_for(std::chrono::minutes(5));
    return {};
  };
  EXPECT_THROW(checkSuite(named({"a"}), options, {}, Progress(stop.get_token(), {})), Error);
}

TEST(Report, survivesJson) {
  CheckReport report;
  report.name = "mlp";
  report.status = CheckStatus::fail;
  report.error = 0.5;
  report.tolerance = 1e-5;
  report.worst = "out.0";
  report.reason = "out.0 differs";
  report.notes = {"a note"};
  report.ops = {1, 2, 3, 4};
  report.originsMissing = 5;
  report.scale = 2;
  report.tensors = {{"out.0", 0.5, 1e-5, 2, ""},
                    {"grad.p.w", std::numeric_limits<double>::infinity(), 0, 0, "missing"}};
  report.tooNoisy = {"grad.p.b"};
  report.notCompared = {"grad.in.x"};
  report.warnings = {"a warning"};
  report.uncomparedReference = {"out.7"};
  report.health = Health{{{"grad.p.w", 1, 2, 3}}, {"a root"}, {}};
  report.partsAt = PartsAt{7, "aten.round", "m", "m.py:1", "hook", "clip", "clip gives another", "gradients part"};
  const auto back = checkReportFromJson(toJson(report));
  EXPECT_EQ(toJson(back), toJson(report));
  EXPECT_EQ(reportLine(back), reportLine(report));
  EXPECT_EQ(reportDetails(back, false), reportDetails(report, false));
}

// The worker of a suite hands its report over as JSON.
TEST(Report, JsonKeepsThatOpsAreUnknown) {
  CheckReport report;
  report.status = CheckStatus::skip;
  report.unknownOps = true;
  EXPECT_TRUE(checkReportFromJson(toJson(report)).unknownOps);
}

}  // namespace
}  // namespace retrograd
