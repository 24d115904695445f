#include "core/questions/memory_timeline.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/split/min_cut.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/checking/suite.h"
#include "core/torch/session/session.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace fs = std::filesystem;

namespace retrograd::test {
namespace {

std::vector<std::string> models() {
  std::vector<std::string> found;
  for (const char* folder : {"tests/data/models", "resources/samples", "../shared/cases/models"})
    if (const auto path = fs::path(sourcePath(folder)); fs::is_directory(path))
      for (const auto& one : findCases(path.string())) found.push_back(one.model);
  return found;
}

class Timelines : public testing::TestWithParam<std::string> {};

/// The prediction of the traces equals what lives when they run, to the byte.
TEST_P(Timelines, equalTheLiveStorages) {
  for (const char* recompute : {"", "all"}) {
    DerivationRequest options;
    if (*recompute) options.partition.recompute = {recompute};
    const auto analysis = openModel(GetParam(), options);
    ASSERT_TRUE(analysis->derived());
    const auto timeline = memoryTimeline(*analysis);
    Session session(analysis);
    session.runTo(session.size());
    const auto& measures = session.measures();
    ASSERT_EQ(timeline.liveBytes.size(), measures.size());
    for (std::size_t i = 0; i < measures.size(); ++i)
      ASSERT_EQ(timeline.total(i), measures[i].liveBytes)
          << recompute << " after #" << i << " " << analysis->document->opName(session.opAt(i));
    EXPECT_EQ(timeline.peakBytes, session.peakBytes());
    std::int64_t saved = 0;
    for (const auto& life : timeline.lives) saved += life.use == MemoryUse::saved ? life.bytes : 0;
    EXPECT_EQ(saved, savedBytes(*analysis->document, analysis->joint).storages);
  }
}

std::string testName(const testing::TestParamInfo<std::string>& info) {
  auto text = std::to_string(info.index) + "_" + fs::path(info.param).parent_path().filename().string() + "_" +
              fs::path(info.param).stem().string();
  std::replace_if(text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return text;
}
INSTANTIATE_TEST_SUITE_P(OnDisk, Timelines, testing::ValuesIn(models()), testName);

TEST(MemoryTimeline, ShowsWhatMemoryIsFor) {
  ModelBuilder m;
  const auto x = m.input("x", {8});
  const auto hidden =
      m.op("aten.sigmoid.default", {m.op("aten.mul.Tensor", {x, 2.0})});  // its result is saved, the product is not
  m.output(m.op("aten.sum.default", {hidden}));
  const auto a = m.analyse();
  const auto timeline = memoryTimeline(*a);
  std::vector<MemoryUse> uses;
  for (const auto& life : timeline.lives) uses.push_back(life.use);
  ASSERT_GE(uses.size(), 4u);
  EXPECT_EQ(uses[0], MemoryUse::forward);
  EXPECT_EQ(uses[1], MemoryUse::saved);
  EXPECT_EQ(uses[2], MemoryUse::result);
  EXPECT_EQ(uses.back(), MemoryUse::gradient);
  EXPECT_EQ(timeline.inputBytes, 8 * 4 + 4);  // x and the cotangent
  EXPECT_LT(timeline.lives[0].to, timeline.lives[1].to);
}

}  // namespace
}  // namespace retrograd::test
