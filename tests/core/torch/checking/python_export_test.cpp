// Exported scripts run in PyTorch and give the numbers that the session gives. The interpreter comes from
// RETROGRAD_PYTHON, else it is the python3 of the path; skipped where that has no PyTorch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/export/export.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/checking/suite.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/reference.h"
#include "tests/support/comparison.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

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

struct Model {
  std::string name, path;
  DerivationRequest options;
};

std::vector<Model> models() {
  std::vector<Model> found;
  DerivationRequest again;
  again.partition.recompute = {"all"};
  for (const char* folder : {"tests/data/models", "tests/data/dynamic", "tests/data/texts", "../shared/cases/models"}) {
    const auto path = fs::path(sourcePath(folder));
    if (!fs::is_directory(path)) continue;
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".txt")
        found.push_back({entry.path().stem().string(), entry.path().string(), {}});
    if (path.filename() == "texts") continue;
    for (const auto& one : findCases(path.string())) {
      found.push_back({one.name, one.model, {}});
      if (path.parent_path().filename() == "data") found.push_back({one.name + " recomputed", one.model, again});
    }
  }
  return found;
}

class Scripts : public testing::Test {
 protected:
  Scripts() : folder_(fs::temp_directory_path() / fmt::format("retrograd_scripts_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
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

struct Script {
  std::string name;
  bool hasBackward = true;
  std::shared_ptr<const RunResult> expected;
};

void compare(const Script& script, const Expected& actual) {
  test::Comparison comparison;
  const auto add = [&](const std::string& key, const TensorData& wanted, const TensorMap& map,
                       const std::string& name) {
    const auto found = map.find(name);
    if (found == map.end()) return comparison.fail(key, "missing");
    comparison.add(key, found->second, wanted);
  };
  const auto& expected = *script.expected;
  for (std::size_t i = 0; i < expected.outputs.size(); ++i)
    if (expected.outputs[i]) add(fmt::format("out.{}", i), *expected.outputs[i], actual.outputs, std::to_string(i));
  const auto isInput = [](const std::string& key) { return key.starts_with("in."); };
  const auto target = [](const std::string& key) { return key.substr(key.find('.') + 1); };
  for (const auto& [key, tensor] : expected.gradients)
    if (script.hasBackward)
      add("grad." + key, tensor, isInput(key) ? actual.inputGradients : actual.parameterGradients, target(key));
  for (const auto& [key, tensor] : expected.mutated)
    if (script.hasBackward)
      add("mut." + key, tensor, isInput(key) ? actual.inputMutations : actual.bufferMutations, target(key));
  EXPECT_EQ(comparison.failure(), "") << script.name;
  EXPECT_LE(comparison.error(), 1e-6) << script.name << ": " << comparison.worst();
  EXPECT_GT(comparison.count(), 0u) << script.name;
}

TEST_F(Scripts, GiveTheSessionsNumbers) {
  if (!hasTorch()) GTEST_SKIP() << python() << " has no torch";
  std::vector<Script> scripts;
  for (const auto& model : models()) {
    SCOPED_TRACE(model.name);
    const auto analysis = openModel(model.path, model.options);
    if (!analysis->derived()) continue;
    const auto expected = std::make_shared<RunResult>(runSplit(*analysis));
    for (const auto& kinds : {std::vector{TraceKind::forward, TraceKind::backward}, std::vector{TraceKind::joint},
                              std::vector{TraceKind::computation}}) {
      exportFile(*findExportFormat("python"), {*analysis, tracesOf(*analysis, kinds), {}, script(scripts.size())});
      scripts.push_back({model.name + " " + std::string(name(kinds[0])), kinds[0] != TraceKind::computation, expected});
    }
  }
  ASSERT_GT(scripts.size(), 20u);
  runAll(scripts.size());
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    if (const auto raised = error(i); !raised.empty()) ADD_FAILURE() << scripts[i].name << ": " << raised;
    else compare(scripts[i], readReference(results(i)).expected);
  }
}

}  // namespace
}  // namespace retrograd
