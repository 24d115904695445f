#include "core/base/byte_size.h"

#include <gtest/gtest.h>

#include "core/base/near_names.h"

namespace retrograd {
namespace {

// One way to write sizes everywhere.
TEST(ByteSize, readsWhatPeopleWrite) {
  EXPECT_EQ(byteSizeIn("0"), 0);
  EXPECT_EQ(byteSizeIn("4096"), 4096);
  for (const char* text : {"100K", "100k", "100KB", "100 kB", "100KiB", " 100 KiB "})
    EXPECT_EQ(byteSizeIn(text), 102400) << text;
  EXPECT_EQ(byteSizeIn("2 GiB"), std::int64_t{2} << 30);
  EXPECT_EQ(byteSizeIn("1.5M"), 3 << 19);
  EXPECT_EQ(byteSizeIn("1T"), std::int64_t{1} << 40);
  EXPECT_EQ(byteSizeIn("12 B"), 12);
  EXPECT_EQ(byteSizeIn("9007199254740993"), 9007199254740993) << "not by way of a double";
  EXPECT_EQ(byteSizeIn("4194304T"), std::int64_t{1} << 62);
}

TEST(ByteSize, refusesTheRest) {
  for (const char* text : {"",
                           " ",
                           "K",
                           "-1",
                           "+1",
                           "1 0",
                           "1x",
                           "1KK",
                           "1iB",
                           "1Kib2",
                           "1e3",
                           ".5",
                           "5.",
                           "1.2.3",
                           "nan",
                           "inf",
                           "0x10",
                           "5000000T",
                           "99999999999999999999",
                           "1P"})
    EXPECT_EQ(byteSizeIn(text), std::nullopt) << text;
}

// A mistyped name gets the one that was meant.
TEST(NearNames, findsWhatWasMeant) {
  const std::vector<std::string> known{"trace", "check", "compare", "run", "export", "pipeline"};
  EXPECT_EQ(nearNames("trce", known), std::vector<std::string>{"trace"});
  EXPECT_EQ(nearNames("rnu", known), std::vector<std::string>{"run"}) << "two letters swapped";
  EXPECT_EQ(nearNames("pipe", known), std::vector<std::string>{"pipeline"}) << "a part of it";
  EXPECT_TRUE(nearNames("xyzzy", known).empty());
  EXPECT_TRUE(nearNames("", known).empty());
  EXPECT_EQ(didYouMean("chekc", known), "; did you mean 'check'?");
  EXPECT_EQ(didYouMean("quux", known), "");
  EXPECT_EQ(didYouMean("ab", {"aa", "ac", "ad", "ae"}), "; did you mean 'aa', 'ac' or 'ad'?");
}

}  // namespace
}  // namespace retrograd
