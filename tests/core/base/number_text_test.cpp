#include "core/base/number_text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace retrograd {
namespace {

// A number is all of a text or none.
TEST(NumberText, isStrict) {
  EXPECT_EQ(numberIn<int>("12"), 12);
  EXPECT_EQ(numberIn<int>("-12"), -12);
  EXPECT_EQ(numberIn<double>("1e3"), 1000.0);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "99999999999", "0x1"})
    EXPECT_EQ(numberIn<int>(text), std::nullopt) << text;
  EXPECT_EQ(numberIn<std::int8_t>("300"), std::nullopt);
  EXPECT_EQ(numberIn<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(positionIn("0"), 0u);
  EXPECT_EQ(positionIn("12"), 12u);
  for (const char* text : {"", "01", "-0", "x", "1.0"}) EXPECT_EQ(positionIn(text), std::nullopt) << text;
}

}  // namespace
}  // namespace retrograd
