#include "core/base/error.h"

#include <gtest/gtest.h>

namespace retrograd {
namespace {

std::string placeOf(const std::string& path, const std::string& place) {
  try {
    readingFile(path, [&]() -> int { badInput("is damaged", place); });
  } catch (const Error& e) {
    return e.place();
  }
  return "no error";
}

TEST(Error, namesTheFileThatWasRead) {
  EXPECT_EQ(placeOf("model.pt2", ""), "model.pt2");
  EXPECT_EQ(placeOf("model.pt2", "line 3"), "model.pt2: line 3");
}

TEST(Error, namesTheFileOnce) {
  EXPECT_EQ(placeOf("model.pt2", "model.pt2"), "model.pt2");
  EXPECT_EQ(placeOf("model.pt2", "model.pt2:7"), "model.pt2:7");
  EXPECT_EQ(placeOf("job", "job/rank_0.log"), "job/rank_0.log");
  EXPECT_EQ(placeOf("job/", "job/rank_0.log"), "job/rank_0.log");
}

TEST(Error, aPlaceThatBeginsLikeTheFileIsNotTheFile) { EXPECT_EQ(placeOf("e", "entry 3"), "e: entry 3"); }

}  // namespace
}  // namespace retrograd
