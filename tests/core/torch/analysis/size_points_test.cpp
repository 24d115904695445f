#include "core/derivation/size_fit.h"
#include "core/torch/analysis/analyse.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

/// Inputs x [symbols[0], 4], y [symbols[1], 4], ... and the symbols' ranges.
ModelFile fileWith(const std::vector<std::string>& sizes, std::vector<SizeSymbol> symbols) {
  ModelBuilder m;
  SizeBindings hints;
  for (const auto& symbol : symbols) hints.emplace(symbol.name, symbol.hint);
  char name = 'x';
  for (const auto& size : sizes) {
    const auto input = m.input(std::string(1, name++), {evaluateSize(size, hints).value(), 4});
    auto meta = m.document().meta(input);
    meta.symbols = {size, ""};
    m.document().value(input).meta = m.document().internMeta(meta);
  }
  m.document().setSizeSymbols(std::move(symbols));
  return m.take();
}

std::vector<SizeBindings> take(SizePoints& points, std::size_t count) {
  std::vector<SizeBindings> all;
  while (all.size() < count) {
    const auto point = points.next();
    if (!point) break;
    all.push_back(*point);
  }
  return all;
}

TEST(SizePoints, differInEachSymbolAndBetweenSymbols) {
  const auto file = fileWith({"a", "b"}, {{"a", 6, 2, {}}, {"b", 6, 2, {}}});
  SizePoints points(file);
  EXPECT_EQ(points.symbols(), (std::vector<std::string>{"a", "b"}));
  const auto all = take(points, 5);
  ASSERT_EQ(all.size(), 5u);
  std::set<std::int64_t> as{6}, bs{6};
  for (const auto& point : all) {
    EXPECT_TRUE(as.insert(point.at("a")).second);
    EXPECT_TRUE(bs.insert(point.at("b")).second);
    EXPECT_NE(point.at("a"), point.at("b"));
    EXPECT_LE(point.at("a"), 22) << "near the hint";
  }
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const auto& p) { return p.at("a") % 2 == 0; }) &&
              std::any_of(all.begin(), all.end(), [](const auto& p) { return p.at("a") % 2 == 1; }))
      << "n//2 and (n + 1)//2 are told apart";
  SizePoints again(file);
  EXPECT_EQ(take(again, 5), all);
}

TEST(SizePoints, keepToTheRange) {
  auto file = fileWith({"a"}, {{"a", 4, 3, 6}});
  SizePoints points(file);
  std::set<std::int64_t> values;
  for (const auto& point : take(points, 10)) values.insert(point.at("a"));
  EXPECT_EQ(values, (std::set<std::int64_t>{3, 5, 6}));
  file = fileWith({"a"}, {{"a", 4, 4, 4}});
  SizePoints none(file);
  EXPECT_EQ(none.next(), std::nullopt);
}

TEST(SizePoints, keepToTheConditionsOfTheFile) {
  auto file = fileWith({"2*a", "b"}, {{"a", 4, 2, {}}, {"b", 8, 2, {}}});
  file.guards = {"L['x'].size()[0] % 4 == 0", "L['y'].size()[0] >= L['x'].size()[0]", "L['unknown'].size()[0] == 7",
                 "L['y'].is_leaf", "L['y'].size()[0] == 9"};
  EXPECT_EQ(sizeConditions(file).size(), 2u)
      << "what is not understood, or does not hold for the file itself, is no condition";
  SizePoints points(file);
  const auto all = take(points, 4);
  ASSERT_EQ(all.size(), 4u);
  for (const auto& point : all) {
    EXPECT_EQ(2 * point.at("a") % 4, 0);
    EXPECT_GE(point.at("b"), 2 * point.at("a"));
  }
}

TEST(SizePoints, multiplesOnly) {
  const auto file = fileWith({"a"}, {{"a", 6, 2, {}}});
  SizePoints points(file);
  points.multiplesOnly();
  for (const auto& point : take(points, 4)) EXPECT_EQ(point.at("a") % 6, 0);
}

/// view(x, [3, -1]) of n * 4 elements: only every third n can be derived, and nothing in the file says so.
TEST(SizePoints, aModelThatDividesWithoutSayingSoIsDerivedForMultiples) {
  ModelBuilder m;
  const auto x = m.input("x", {6, 4});
  auto& document = m.document();
  auto meta = document.meta(x);
  meta.symbols = {"n", ""};
  document.value(x).meta = document.internMeta(meta);
  document.setSizeSymbols({{"n", 6, 2, {}}});
  m.output(m.op("aten.sin.default", {m.op("aten.view.default", {x, ModelBuilder::list({3, -1})})}));
  const auto analysis = m.analyse();
  EXPECT_TRUE(analysis->derived());
  EXPECT_TRUE(analysis->problems.empty());
  std::set<std::string> symbols;
  for (auto op : analysis->joint.ops)
    for (auto output : analysis->document->outputs(op))
      for (const auto& symbol : analysis->document->meta(output).symbols) symbols.insert(symbol);
  EXPECT_EQ(symbols, (std::set<std::string>{"", "4*n//3", "n"}));
}

}  // namespace
}  // namespace retrograd::test
