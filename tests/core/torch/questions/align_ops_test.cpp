#include "core/questions/align_ops.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/trace/diff/trace_diff.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

TEST(AlignOps, ARecordingIsEqualToItsCopy) {
  const auto path = sourcePath("tests/data/recordings/step");
  const auto copy = std::filesystem::path(testing::TempDir()) / "copy_of_step";
  std::filesystem::remove_all(copy);
  std::filesystem::copy(path, copy, std::filesystem::copy_options::recursive);
  const auto a = openModel(path), b = openModel(copy.string());
  const auto diff = diffTraces(diffSide(*a, a->joint), diffSide(*b, b->joint));
  EXPECT_TRUE(diff.equal());
  EXPECT_EQ(diff.counts.same, a->joint.ops.size());
  const auto answers = alignOps(*a, *b);
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], i);
}

}  // namespace
}  // namespace retrograd
