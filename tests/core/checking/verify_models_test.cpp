// The verifier after every pass, on every model at hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/checking/check.h"
#include "core/checking/suite.h"
#include "core/debug/analysis.h"
#include "core/trace/json.h"
#include "core/trace/printer.h"
#include "core/trace/verifier.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

std::vector<std::string> models() {
  std::vector<std::string> found;
  for (const char* folder : {"tests/data/models", "resources/samples", "../shared/cases/models", "../shared/cases/models_2.9"})
    if (const auto path = fs::path(RETROGRAD_SOURCE_DIR) / folder; fs::is_directory(path))
      for (const auto& one : findCases(path.string())) found.push_back(one.model);
  return found;
}

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
    AnalysisOptions options;
    options.partition = partition;
    const auto analysis = openModel(GetParam(), options);
    ASSERT_TRUE(analysis->derived());
    for (const auto* trace : {&analysis->joint, &analysis->forward, &analysis->backward})
      for (const auto& problem : verify(*analysis->document, *trace))
        ADD_FAILURE() << name(trace->kind) << ": " << problem.place << ": " << problem.message;
  }
}

std::string testName(const testing::TestParamInfo<std::string>& info) {
  auto text = std::to_string(info.index) + "_" + fs::path(info.param).parent_path().filename().string() + "_" +
              fs::path(info.param).stem().string();
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return text;
}
INSTANTIATE_TEST_SUITE_P(OnDisk, Models, testing::ValuesIn(models()), testName);

}  // namespace
}  // namespace retrograd
