#include "core/base/string_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace retrograd {
namespace {

// More than fit in the table at first: what it gave stays good while it grows.
TEST(StringTable, KeepsEachStringOnce) {
  StringTable table;
  EXPECT_FALSE(table.contains(""));
  std::vector<StringId> ids;
  std::vector<std::string_view> texts;
  for (int i = 0; i < 10'000; ++i) {
    ids.push_back(table.intern("t" + std::to_string(i)));
    texts.push_back(table.text(ids.back()));
  }
  EXPECT_EQ(table.size(), 10'000U);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto text = "t" + std::to_string(i);
    EXPECT_EQ(table.intern(text), ids[i]);
    EXPECT_EQ(texts[i], text);
    EXPECT_FALSE(table.contains(text + "x"));
  }
  EXPECT_EQ(table.size(), 10'000U);
  EXPECT_EQ(table.text(StringId()), "");
}

TEST(StringTable, MakesFreshNames) {
  StringTable table;
  EXPECT_EQ(table.text(table.internUnique("x")), "x");
  table.intern("x_1");
  EXPECT_EQ(table.text(table.internUnique("x")), "x_2");
  EXPECT_EQ(table.text(table.internUnique("x")), "x_3");
}

TEST(StringTable, CopiesAreIndependent) {
  StringTable one;
  one.intern("a");
  auto other = one;
  EXPECT_EQ(other.intern("a"), StringId(0));
  EXPECT_EQ(other.intern("b"), StringId(1));
  EXPECT_FALSE(one.contains("b"));
  one = StringTable();
  EXPECT_FALSE(one.contains("a"));
  EXPECT_EQ(other.text(StringId(0)), "a");
}

}  // namespace
}  // namespace retrograd
