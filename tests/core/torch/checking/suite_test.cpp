#include "core/torch/checking/suite.h"
#include "tests/support/report_text.h"

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
    return Report{.judged = 1};
  };
  std::vector<std::string> seen;
  const auto reports = checkSuite(named({"a", "crash", "b", "hang", "exit", "throw", "c"}), options,
                                  [&](const auto& r) { seen.push_back(r.subject); });
  ASSERT_EQ(reports.size(), 7u);
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "crash", "b", "hang", "exit", "throw", "c"}));
  EXPECT_NE(decide(reports[1]).reason.find("signal 11"), std::string::npos) << decide(reports[1]).reason;
  EXPECT_NE(decide(reports[3]).reason.find("longer than"), std::string::npos) << decide(reports[3]).reason;
  EXPECT_NE(decide(reports[4]).reason.find("exit code 3"), std::string::npos) << decide(reports[4]).reason;
  EXPECT_EQ(decide(reports[5]).reason, "throw.pt2: trouble");
  for (auto i : {0, 2, 6}) EXPECT_EQ(test::verdictOf(reports[static_cast<std::size_t>(i)]), Verdict::pass);
  // What went wrong itself is a fault of its kind.
  for (auto i : {1, 3, 4, 5}) EXPECT_EQ(reports[static_cast<std::size_t>(i)].claims.front().kind, "error");
}

TEST(Suite, aStopEndsTheWorker) {
  std::stop_source stop;
  stop.request_stop();
  SuiteOptions options;
  options.check = [](const SuiteCase&) -> Report {
    std::this_thread::sleep_for(std::chrono::minutes(5));
    return {};
  };
  EXPECT_THROW(checkSuite(named({"a"}), options, {}, Progress(stop.get_token(), {})), Error);
}

}  // namespace
}  // namespace retrograd
