// Exported scripts run in PyTorch and give the numbers that the session gives. The interpreter comes from RETROGRAD_PYTHON, else it is the
// python3 of the path; skipped where that has no PyTorch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/checking/compare.h"
#include "core/checking/reference.h"
#include "core/checking/suite.h"
#include "core/debug/joint_run.h"
#include "core/export/export.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

std::string python() {
  const char* given = std::getenv("RETROGRAD_PYTHON");
  return given && *given ? given : "python3";
}

bool hasTorch() {
  static const bool has = std::system((python() + " -c 'import torch' >/dev/null 2>&1").c_str()) == 0;
  return has;
}

struct Case {
  std::string name, model;
  AnalysisOptions options;
  std::vector<TraceKind> show;
};

std::vector<Case> cases() {
  std::vector<Case> found;
  const std::vector<TraceKind> split{TraceKind::forward, TraceKind::backward}, joint{TraceKind::joint}, computation{TraceKind::computation};
  for (const char* folder : {"tests/data/models", "tests/data/dynamic", "tests/data/texts", "../shared/cases/models"})
    if (const auto path = fs::path(RETROGRAD_SOURCE_DIR) / folder; fs::is_directory(path)) {
      std::vector<std::pair<std::string, std::string>> models;
      for (const auto& entry : fs::directory_iterator(path))
        if (entry.path().extension() == ".txt") models.emplace_back(entry.path().stem().string(), entry.path().string());
      if (models.empty())
        for (const auto& one : findCases(path.string())) models.emplace_back(one.name, one.model);
      for (const auto& [name, model] : models) {
        const auto title = fs::path(folder).filename().string() + "/" + name;
        found.push_back({title, model, {}, split});
        found.push_back({title + " joint", model, {}, joint});
        found.push_back({title + " computation", model, {}, computation});
        AnalysisOptions again;
        again.partition.recompute = {"all"};
        found.push_back({title + " recomputed", model, again, split});
      }
    }
  return found;
}

class Scripts : public testing::Test {
 protected:
  Scripts() : folder_(fs::temp_directory_path() / fmt::format("retrograd_scripts_{}", ::getpid())) { fs::create_directories(folder_); }
  ~Scripts() override { fs::remove_all(folder_); }

  std::string script(std::size_t i) const { return (folder_ / fmt::format("case{}.py", i)).string(); }
  std::string results(std::size_t i) const { return script(i) + ".results"; }

  /// One interpreter for many scripts: importing PyTorch takes seconds. What a script raises goes to its .error file.
  void runAll(std::size_t count) const {
    const auto driver = folder_ / "driver.py";
    std::ofstream(driver) << "import runpy, sys, traceback\n"
                             "for script in sys.argv[1:]:\n"
                             "    sys.argv = [script, '--save', script + '.results']\n"
                             "    try:\n"
                             "        runpy.run_path(script, run_name='__main__')\n"
                             "    except BaseException:\n"
                             "        open(script + '.error', 'w').write(traceback.format_exc())\n";
    std::string command = fmt::format("OMP_NUM_THREADS=1 {} {}", python(), driver.string());
    for (std::size_t i = 0; i < count; ++i) command += " " + script(i);
    ASSERT_EQ(std::system((command + " > /dev/null").c_str()), 0);
  }

  std::string error(std::size_t i) const {
    std::ifstream file(script(i) + ".error");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

void compare(const std::string& title, const Case& one, const RunResult& expected, const Expected& actual) {
  Comparison comparison;
  std::size_t count = 0;
  const auto add = [&](const std::string& key, const TensorData& wanted, const TensorMap& map, const std::string& name) {
    const auto found = map.find(name);
    if (found == map.end()) return comparison.fail(key, "missing");
    auto tensor = wanted;
    ++count;
    comparison.add(key, found->second, tensor);
  };
  for (std::size_t i = 0; i < expected.outputs.size(); ++i)
    if (expected.outputs[i]) add(fmt::format("out.{}", i), *expected.outputs[i], actual.outputs, std::to_string(i));
  if (one.show[0] != TraceKind::computation) {
    for (const auto& [key, tensor] : expected.gradients)
      add("grad." + key, tensor, key.starts_with("in.") ? actual.inputGradients : actual.parameterGradients, key.substr(key.find('.') + 1));
    for (const auto& [key, tensor] : expected.mutated)
      add("mut." + key, tensor, key.starts_with("in.") ? actual.inputMutations : actual.bufferMutations, key.substr(key.find('.') + 1));
  }
  EXPECT_EQ(comparison.failure(), "") << title;
  EXPECT_LE(comparison.error(), 1e-6) << title << ": " << comparison.worst();
  EXPECT_GT(count, 0u) << title;
}

TEST_F(Scripts, GiveTheSessionsNumbers) {
  if (!hasTorch()) GTEST_SKIP() << python() << " has no torch";
  const auto all = cases();
  std::vector<std::optional<RunResult>> expected(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].name);
    const auto analysis = openModel(all[i].model, all[i].options);
    if (!analysis->derived()) continue;
    exportFile(*findExportFormat("python"), {*analysis, tracesOf(*analysis, all[i].show), {}, script(i)});
    expected[i] = runSplit(*analysis);
  }
  runAll(all.size());
  std::size_t compared = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!expected[i]) continue;
    if (const auto raised = error(i); !raised.empty()) {
      ADD_FAILURE() << all[i].name << ": " << raised;
      continue;
    }
    ++compared;
    compare(all[i].name, all[i], *expected[i], readReference(results(i)).expected);
  }
  EXPECT_GT(compared, 20u);
}

}  // namespace
}  // namespace retrograd
