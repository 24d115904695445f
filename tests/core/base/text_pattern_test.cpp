#include "core/base/text_pattern.h"

#include <gtest/gtest.h>

namespace retrograd {
namespace {

bool glob(std::string_view pattern, std::string_view text) {
  TextPattern::Problem problem;
  const auto compiled = TextPattern::glob(pattern, problem);
  EXPECT_TRUE(compiled) << pattern << ": " << problem.message;
  return compiled && compiled->matches(text);
}

bool expression(std::string_view pattern, std::string_view text) {
  TextPattern::Problem problem;
  const auto compiled = TextPattern::regularExpression(pattern, problem);
  EXPECT_TRUE(compiled) << pattern << ": " << problem.message;
  return compiled && compiled->matches(text);
}

TEST(TextPattern, GlobsMatchTheWholeText) {
  EXPECT_TRUE(glob("", ""));
  EXPECT_FALSE(glob("", "a"));
  EXPECT_TRUE(glob("*", ""));
  EXPECT_TRUE(glob("a*c", "abbc"));
  EXPECT_FALSE(glob("a*c", "abcd"));
  EXPECT_TRUE(glob("?m", "mm"));
  EXPECT_FALSE(glob("?m", "m"));
  EXPECT_TRUE(glob("h.[0-3]", "h.2"));
  EXPECT_FALSE(glob("h.[0-3]", "h.7"));
  EXPECT_TRUE(glob("h.[!0-3]", "h.7"));
  EXPECT_TRUE(glob("[]]", "]"));
  EXPECT_TRUE(glob("a+b", "a+b"));
  EXPECT_TRUE(glob("[!]]x", "ax"));
  EXPECT_FALSE(glob("[!]]x", "]x"));
  EXPECT_TRUE(glob("[[^]", "^"));
  EXPECT_TRUE(glob("[\\]a]", "]"));
  EXPECT_TRUE(glob("*.weight\\", "a.weight\\"));
}

TEST(TextPattern, ExpressionsMatchAPart) {
  EXPECT_TRUE(expression("", "x"));
  EXPECT_TRUE(expression("b+", "abbc"));
  EXPECT_FALSE(expression("^b", "abbc"));
  EXPECT_TRUE(expression("^a.*c$", "abbc"));
  EXPECT_FALSE(expression("^abb$", "abbc"));
  EXPECT_TRUE(expression("^$", ""));
  EXPECT_TRUE(expression("(mm|bmm)\\.default", "aten.bmm.default"));
  EXPECT_FALSE(expression("^(mm|bmm)$", "addmm"));
  EXPECT_TRUE(expression("^a(bc)*d$", "abcbcd"));
  EXPECT_FALSE(expression("^a(bc)*d$", "abcbd"));
  EXPECT_TRUE(expression("^a(b|)c?$", "a"));
  EXPECT_TRUE(expression("^\\w+_\\d+$", "linear_12"));
  EXPECT_FALSE(expression("^\\D+$", "a1"));
  EXPECT_TRUE(expression("[^a-c\\d]", "1d"));
  EXPECT_FALSE(expression("[^a-c\\d]", "1b"));
  EXPECT_TRUE(expression("^(a*)*$", "aaa"));
  EXPECT_TRUE(expression("^a{2,3}$", "aaa"));
  EXPECT_TRUE(expression("a.b", "a\nb"));
  EXPECT_TRUE(expression("^caf\xe9.$", "caf\xe9\xff"));  // bytes, whatever they are in UTF-8
}

TEST(TextPattern, TextsAreTakenAsTheyAre) {
  EXPECT_TRUE(TextPattern::exactly("a.*").matches("a.*"));
  EXPECT_FALSE(TextPattern::exactly("a.*").matches("abc"));
  EXPECT_TRUE(TextPattern::containing("b*").matches("ab*c"));
  EXPECT_FALSE(TextPattern::containing("b*").matches("abbc"));
}

TEST(TextPattern, WhatIsWrongIsSaidWithItsPlace) {
  const auto problem = [](std::string_view pattern) {
    TextPattern::Problem found{999, {}};
    EXPECT_FALSE(TextPattern::regularExpression(pattern, found)) << pattern;
    EXPECT_FALSE(found.message.empty());
    return found.position;
  };
  EXPECT_EQ(problem("a(b"), 1u);
  EXPECT_EQ(problem("(a)(b"), 3u);
  EXPECT_EQ(problem("[(]\\((b"), 5u);
  EXPECT_EQ(problem("ab)"), 2u);
  EXPECT_EQ(problem("*a"), 0u);
  EXPECT_EQ(problem("a[b"), 1u);
  EXPECT_EQ(problem("a\\q"), 1u);
  EXPECT_EQ(problem("ab**"), 2u);
  problem("a{1001}");
  problem(std::string(2000, 'a'));
}

TEST(TextPattern, DoesNotBacktrack) {
  std::string pattern, text(20'000, 'a');
  for (int i = 0; i < 30; ++i) pattern += "(a*)*";
  EXPECT_FALSE(expression("^" + pattern + "b", text));  // backtracking would not end
}

}  // namespace
}  // namespace retrograd
