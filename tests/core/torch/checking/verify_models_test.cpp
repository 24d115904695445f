// The verifier after every pass, on every model at hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/derivation/analysis.h"
#include "core/torch/checking/check.h"
#include "core/torch/checking/suite.h"
#include "core/trace/print/json.h"
#include "core/trace/print/printer.h"
#include "core/trace/verifier.h"
#include "tests/core/torch/models.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

class Models : public testing::TestWithParam<std::string> {};

TEST_P(Models, everyTraceVerifiesAndPrints) {
  const auto analysis = openModel(GetParam());
  ASSERT_TRUE(analysis->derived());
  const Trace* traces[] = {&analysis->computation().trace, &analysis->joint, &analysis->forward, &analysis->backward};
  for (const auto* trace : traces) {
    for (const auto& problem : verify(*analysis->document, *trace))
      ADD_FAILURE() << name(trace->kind) << ": " << problem.place << ": " << problem.message;
    const auto text = printTrace(*analysis->document, *trace);
    EXPECT_GE(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), trace->ops.size());
  }
  const auto json = traceDocument(*analysis->document, traces);
  EXPECT_EQ(json["traces"]["joint"]["ops"].size(), analysis->joint.ops.size());
}

TEST_P(Models, everyTraceVerifiesWithRecomputation) {
  const PartitionOptions all{PartitionOptions::defaultKind, {}, {"all"}}, cut{PartitionOptions::minCut, {}, {}};
  for (const auto& partition : {all, cut}) {
    DerivationRequest options;
    options.partition = partition;
    const auto analysis = openModel(GetParam(), options);
    ASSERT_TRUE(analysis->derived());
    for (const auto* trace : {&analysis->joint, &analysis->forward, &analysis->backward})
      for (const auto& problem : verify(*analysis->document, *trace))
        ADD_FAILURE() << name(trace->kind) << ": " << problem.place << ": " << problem.message;
  }
}

/// Every second of the modules that compute something, in order of their paths.
std::vector<std::string> halfOfTheModules(const Analysis& analysis) {
  std::set<std::string> paths;
  const auto& joint = analysis.joint;
  for (std::size_t i = 0; i < joint.forwardCount; ++i)
    if (const auto path = analysis.document->text(analysis.document->boundSymbol(joint.ops[i]).module); !path.empty())
      paths.emplace(path);
  std::vector<std::string> half;
  std::size_t i = 0;
  for (const auto& path : paths)
    if (i++ % 2 == 0) half.push_back(path);
  return half;
}

class Cases : public testing::TestWithParam<SuiteCase> {};

TEST_P(Cases, holdWithHalfOfTheModulesRecomputed) {
  auto options = GetParam().options;
  options.partition.emplace().recompute = halfOfTheModules(*openModel(GetParam().model));
  if (options.partition->recompute.empty()) GTEST_SKIP() << "it has no modules";
  const auto report = checkModel(GetParam().model, options);
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << decide(report).reason;
}

std::vector<SuiteCase> cases() {
  std::vector<SuiteCase> found;
  for (const char* folder : {"tests/data/models", "../shared/cases/models"})
    if (const auto path = fs::path(sourcePath(folder)); fs::is_directory(path))
      for (auto& one : findCases(path.string())) found.push_back(std::move(one));
  return found;
}

std::string nameOfFile(std::size_t index, const std::string& file) {
  auto text = std::to_string(index) + "_" + fs::path(file).parent_path().filename().string() + "_" +
              fs::path(file).stem().string();
  std::replace_if(text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(OnDisk, Cases, testing::ValuesIn(cases()),
                         [](const auto& info) { return nameOfFile(info.index, info.param.model); });
INSTANTIATE_TEST_SUITE_P(OnDisk, Models, testing::ValuesIn(test::everyModel()),
                         [](const auto& info) { return nameOfFile(info.index, info.param); });

}  // namespace
}  // namespace retrograd
