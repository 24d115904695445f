#include "core/trace/diff/alignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace retrograd {
namespace {

using Tokens = std::vector<std::int32_t>;

std::size_t longestCommon(const Tokens& a, const Tokens& b) {
  std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j)
      best[i][j] = a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
  return best[a.size()][b.size()];
}

void expectRising(const std::vector<Match>& matches, const Tokens& a, const Tokens& b) {
  for (std::size_t k = 0; k < matches.size(); ++k) {
    const auto [i, j] = matches[k];
    ASSERT_EQ(a.at(static_cast<std::size_t>(i)), b.at(static_cast<std::size_t>(j)));
    if (k > 0) {
      ASSERT_LT(matches[k - 1].first, i);
      ASSERT_LT(matches[k - 1].second, j);
    }
  }
}

Tokens randomTokens(std::mt19937& random, std::size_t size, std::int32_t kinds) {
  Tokens tokens(size);
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<unsigned>(kinds));
  return tokens;
}

/// `edits` tokens inserted, dropped or replaced.
Tokens edited(std::mt19937& random, Tokens tokens, int edits, std::int32_t kinds) {
  for (int k = 0; k < edits; ++k) {
    const auto place = tokens.begin() + static_cast<std::ptrdiff_t>(random() % (tokens.size() + 1));
    const auto token = static_cast<std::int32_t>(random() % static_cast<unsigned>(kinds));
    if (const auto what = random() % 3; what == 0 || place == tokens.end()) tokens.insert(place, token);
    else if (what == 1) tokens.erase(place);
    else *place = token;
  }
  return tokens;
}

}  // namespace

TEST(AlignTokens, ShortSequencesHaveTheLongestCommonSubsequence) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto a = randomTokens(random, random() % 40, 1 + static_cast<std::int32_t>(random() % 8));
    const auto b = randomTokens(random, random() % 40, 1 + static_cast<std::int32_t>(random() % 8));
    const auto matches = alignTokens(a, b);
    expectRising(matches, a, b);
    EXPECT_EQ(matches.size(), longestCommon(a, b));
  }
}

TEST(AlignTokens, LongSequencesWithFewEditsLoseNextToNothing) {
  std::mt19937 random(2);
  for (const std::int32_t kinds :
       {1'000'000, 500, 20}) {  // nearly all tokens unique; as in a model of many layers; few kinds of ops
    const auto a = randomTokens(random, 2'000, kinds);
    const auto b = edited(random, a, 30, kinds);
    const auto matches = alignTokens(a, b);
    expectRising(matches, a, b);
    EXPECT_GE(matches.size() + 10, longestCommon(a, b)) << kinds;
    EXPECT_EQ(matches, alignTokens(a, b));
  }
}

TEST(AlignTokens, RepeatedLayersAlignAroundAnInsertedOne) {
  Tokens layer{1, 2, 3, 4, 3, 5}, a, b;
  for (int i = 0; i < 400; ++i) a.insert(a.end(), layer.begin(), layer.end());
  b = a;
  b.insert(b.begin() + 6 * 150, layer.begin(), layer.end());
  EXPECT_EQ(alignTokens(a, b).size(), a.size());
  EXPECT_EQ(alignTokens(b, a).size(), a.size());
}

TEST(AlignTokens, WhatHasNothingInCommonAlignsNothing) {
  EXPECT_TRUE(alignTokens(Tokens(5'000, 1), Tokens(5'000, 2)).empty());
  EXPECT_TRUE(alignTokens(Tokens(), Tokens{1, 2}).empty());
  // Reversed, so that anchors are few and gaps many.
  Tokens up(5'000), down(5'000);
  for (int i = 0; i < 5'000; ++i) up[static_cast<std::size_t>(i)] = down[static_cast<std::size_t>(4'999 - i)] = i;
  EXPECT_EQ(alignTokens(up, down).size(), 1U);
}

TEST(LongestRising, IsRisingAndLongest) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    auto numbers = Tokens(random() % 30);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
    std::shuffle(numbers.begin(), numbers.end(), random);
    auto sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    const auto rising = longestRising(numbers);
    for (std::size_t k = 1; k < rising.size(); ++k) {
      EXPECT_LT(rising[k - 1], rising[k]);
      EXPECT_LT(numbers[static_cast<std::size_t>(rising[k - 1])], numbers[static_cast<std::size_t>(rising[k])]);
    }
    EXPECT_EQ(rising.size(), longestCommon(numbers, sorted));
  }
}

}  // namespace retrograd
