#include "core/sizes/number.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/formats/model/graph_ops.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

/// As Python's repr writes it.
Number parsed(const std::string& text) {
  if (text == "True" || text == "False") return Number::ofBool(text == "True");
  std::int64_t integer = 0;
  const auto* end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, integer); read.ec == std::errc() && read.ptr == end)
    return Number::ofInt(integer);
  double real = 0;
  const auto read = std::from_chars(text.data(), end, real);
  EXPECT_TRUE(read.ec == std::errc() && read.ptr == end) << "'" << text << "' in the table";
  return Number::ofReal(real);
}

/// The result, or "!" where there is none.
std::string shown(const Number& n) {
  std::ostringstream text;
  text.precision(17);
  if (n.kind == Number::Kind::boolean) text << (n.integer ? "True" : "False");
  else if (n.isReal()) text << n.real << " (float)";
  else text << n.integer;
  return text.str();
}

bool same(const Number& a, const Number& b, bool exact) {
  if (a.kind != b.kind) return false;
  if (!a.isReal()) return a.integer == b.integer;
  if (std::isnan(a.real) || std::isnan(b.real)) return std::isnan(a.real) && std::isnan(b.real);
  if (a.real == b.real) return std::signbit(a.real) == std::signbit(b.real);
  return !exact && std::abs(a.real - b.real) <= 4 * std::numeric_limits<double>::epsilon() * std::abs(b.real);
}

void expectCall(const std::string& name, const std::vector<Number>& operands, const std::string& expected) {
  const auto* function = findNumberFunction(name);
  ASSERT_TRUE(function) << name;
  ASSERT_TRUE(operands.size() >= function->least && operands.size() <= function->most) << name;
  std::string call = name;
  for (const auto& operand : operands) call += " " + shown(operand);
  // Functions of libm differ in the last digit from machine to machine.
  const bool exact = !name.starts_with("math.") && name != "_operator.pow";
  try {
    const auto result = function->evaluate(operands);
    EXPECT_NE(expected, "!") << call << " gives " << shown(result) << ", where Python raises or an int exceeds 64 bits";
    if (expected != "!") {
      EXPECT_TRUE(same(result, parsed(expected), exact))
          << call << " gives " << shown(result) << ", in Python " << expected;
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::badInput) << call;
    EXPECT_EQ(expected, "!") << call << " fails: " << error.what();
  }
}

// Each number operator gives what Python gives, results and kinds of results, and an error where Python
// raises. The table is Python's own (tests/data/numbers/make_table.py).
TEST(Numbers, ArePythons) {
  std::ifstream table(sourcePath("tests/data/numbers/python.txt"));
  std::vector<Number> values;
  std::size_t calls = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    const auto mark =
        std::find_if(words.begin(), words.end(), [](const std::string& w) { return w == ":" || w == "="; });
    ASSERT_NE(mark, words.end()) << line;
    std::vector<Number> operands;
    for (auto it = words.begin() + 1; it != mark; ++it)
      if (*it != "of") operands.push_back(parsed(*it));
    const std::vector<std::string> results(mark + 1, words.end());
    if (words[0] == "values") {
      for (const auto& result : results) values.push_back(parsed(result));
    } else if (*mark == "=") {
      expectCall(words[0], operands, results.at(0));
      ++calls;
    } else {
      ASSERT_EQ(results.size(), values.size()) << line;
      for (std::size_t i = 0; i < values.size(); ++i) {
        auto all = operands;
        all.push_back(values[i]);
        expectCall(words[0], all, results[i]);
        ++calls;
      }
    }
  }
  EXPECT_GT(calls, 10000u);
}

// What the readers accept can be computed; the table above has each of these.
TEST(Numbers, ReadersAcceptWhatCanBeComputed) {
  for (const auto* name :
       {"_operator.xor", "_operator.lshift", "_operator.invert", "_operator.truth", "math.cos", "math.isnan",
        "torch.sym_sum", "torch._sym_sqrt", "torch._sym_cos", "torch.sym_log2", "builtins.round", "builtins.abs"}) {
    EXPECT_TRUE(isNumberOperator(name)) << name;
    EXPECT_TRUE(findNumberFunction(name)) << name;
  }
  for (const auto* name : {"_operator.matmul", "_operator.concat", "math.gamma", "torch.sym_fresh", "torch._sym_",
                           "os.system", "builtins.eval", ""}) {
    EXPECT_FALSE(isNumberOperator(name)) << name;
    EXPECT_FALSE(findNumberFunction(name)) << name;
  }
}

TEST(Numbers, OfSizesMayBeFractions) {
  const auto at = [](const char* text) { return evaluateNumber(*SizeExpression::parse(text), {{"s0", 4}}); };
  EXPECT_TRUE(at("FloatTrueDiv(s0, 3)")->isReal());
  EXPECT_EQ(at("FloatTrueDiv(s0, 3)")->real, 4.0 / 3.0);
  EXPECT_EQ(at("s0*2")->integer, 8);
  EXPECT_EQ(at("s0 > 3")->kind, Number::Kind::boolean);
  EXPECT_FALSE(at("1/(s0 - 4)"));
  EXPECT_FALSE(at("s1 + 1"));
}

TEST(Numbers, OverflowSaysSo) {
  const auto* multiply = findNumberFunction("_operator.mul");
  try {
    multiply->evaluate(std::vector{Number::ofInt(std::int64_t{1} << 62), Number::ofInt(2)});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("64 bits"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace retrograd
