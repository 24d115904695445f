#include "core/formats/read/pt2_structure.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/formats/cases.h"

namespace retrograd {
namespace {

using Paths = std::vector<std::string>;

TEST(Pt2Structure, CallsAreNumberedByModule) {
  const auto calls =
      parseModuleCalls("L__self__,,model.M;L__self__l@1,l,model.L;L__self__l.a@12,l.a,torch.nn.modules.linear.Linear");
  EXPECT_EQ(calls, (std::map<std::string, int>{{"l", 1}, {"l.a", 12}}));
  EXPECT_EQ(parseModuleCalls("L__self__l,l,model.L"), (std::map<std::string, int>{{"l", 0}}));
  EXPECT_TRUE(parseModuleCalls("").empty());
}

// Holds P9: the paths of what forward returned are had from the archive.
TEST(Pt2Structure, LeavesHavePaths) {
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  EXPECT_EQ(leafPaths("[1, " + leaf + "]"), Paths{""});
  EXPECT_EQ(leafPaths(R"([1, {"type": "builtins.dict", "context": "[\"loss\", \"logits\", 3]", "children_spec": [)" +
                      leaf + R"(, {"type": "builtins.tuple", "context": "null", "children_spec": [)" + leaf + ", " +
                      leaf + "]}, " + leaf + "]}]"),
            (Paths{"loss", "logits.0", "logits.1", "3"}));
  EXPECT_THROW(leafPaths("[1]"), Error);
  EXPECT_THROW(leafPaths("{"), Error);
}

TEST(Pt2Structure, IsReadFromAnArchive) {
  const auto structure = readPt2Structure((test::data() / "mlp/model.pt2").string());
  ASSERT_TRUE(structure);
  EXPECT_EQ(structure->moduleCalls.at("linear"), (std::map<std::string, int>{{"l1", 0}}));
  EXPECT_EQ(structure->outputPaths, Paths{""});
  EXPECT_FALSE(readPt2Structure((test::data() / "../texts/linear.txt").string()));
}

}  // namespace
}  // namespace retrograd
