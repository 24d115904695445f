#include "core/trace/filter/filter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/trace/build.h"

namespace retrograd::test {
namespace {

/// Four ops: linear [4, 8] in h.3.fc, tanh in h.3, their gradient ops in the same modules.
struct Sample : testing::Test {
  Builder b;
  Trace computation, trace, backward;
  ValueId linear, tanh, ofTanh, ofLinear;

  Sample() {
    const auto x = b.input("x", {4, 8});
    const auto call = [&](const std::string& name, ValueId operand, const std::string& module, Origin origin = {}) {
      const auto out = b.call(name, {operand}, origin);
      const auto op = b.trace.ops.back();
      b.document.boundSymbol(op).module = b.document.intern(module);
      return out;
    };
    const auto fileLinear = call("aten.linear.default", x, "h.3.fc");
    b.document.value(fileLinear).name = b.document.intern("linear_7");
    b.document.boundSymbol(b.trace.ops.back()).name = b.document.intern("node_linear");
    call("aten.tanh.default", fileLinear, "h.3");
    computation = b.trace;
    b.trace = {};
    const auto from = [&](std::size_t op, Role role) {
      Origin origin;
      origin.op = computation.ops[op];
      origin.role = role;
      return origin;
    };
    linear = call("aten.addmm.default", x, "h.3.fc", from(0, Role::forward));
    tanh = call("aten.tanh.default", linear, "h.3", from(1, Role::forward));
    ofTanh = call("aten.tanh_backward.default", tanh, "h.3", from(1, Role::gradient));
    ofLinear = call("aten.mm.default", ofTanh, "h.31.fc", from(0, Role::accumulation));
    b.document.boundSymbol(b.trace.ops[3]).recomputed = true;
    trace = b.trace;
    backward.inputs = {tanh};
    backward.savedCount = 1;
  }

  /// Positions of the ops that pass: "01".
  std::string passing(std::string_view text) {
    const auto filter = Filter::parse(text);
    FilterRun run(b.document, filter, &backward);
    std::string found;
    for (auto op : run.select(trace))
      found += std::to_string(std::find(trace.ops.begin(), trace.ops.end(), op) - trace.ops.begin());
    return found;
  }
  std::string wrongAt(std::string_view text) {
    Filter::Problem problem;
    EXPECT_FALSE(Filter::parse(text, problem)) << text;
    EXPECT_FALSE(problem.message.empty());
    return std::to_string(problem.begin) + "-" + std::to_string(problem.end);
  }
};

TEST_F(Sample, AnEmptyFilterLetsAllPass) {
  EXPECT_EQ(passing(""), "0123");
  EXPECT_EQ(passing("  "), "0123");
}

TEST_F(Sample, OpsGoByWholeAndShortNames) {
  EXPECT_EQ(passing("op:mm"), "3");
  EXPECT_EQ(passing("op:aten.mm"), "3");
  EXPECT_EQ(passing("op:aten.mm.default"), "3");
  EXPECT_EQ(passing("op:*mm"), "03");
  EXPECT_EQ(passing("op:/^aten\\.tanh/"), "12");
  EXPECT_EQ(passing("op:\"tanh\""), "1");
  EXPECT_EQ(passing("op:nothing"), "");
}

TEST_F(Sample, ModulesGoByPartsOfTheirPath) {
  EXPECT_EQ(passing("module:h.3"), "012");
  EXPECT_EQ(passing("module:fc"), "03");
  EXPECT_EQ(passing("module:h.*.fc"), "03");
  EXPECT_EQ(passing("module:3"), "012");
  EXPECT_EQ(passing("module:h.3.f"), "");
}

TEST_F(Sample, TypesBytesAndRoles) {
  EXPECT_EQ(passing("dtype:f32"), "0123");
  EXPECT_EQ(passing("dtype:float32"), "0123");
  EXPECT_EQ(passing("dtype:i64"), "");
  EXPECT_EQ(passing("shape:4x8"), "0123");
  EXPECT_EQ(passing("shape:[4,*]"), "0123");
  EXPECT_EQ(passing("shape:\"[*, 8]\""), "0123");
  EXPECT_EQ(passing("shape:...x8"), "0123");
  EXPECT_EQ(passing("shape:4x8x..."), "0123");
  EXPECT_EQ(passing("shape:4"), "");
  EXPECT_EQ(passing("shape:8x4"), "");
  EXPECT_EQ(passing("shape:/, 8]/"), "0123");
  EXPECT_EQ(passing("bytes=128"), "0123");
  EXPECT_EQ(passing("bytes>128"), "");
  EXPECT_EQ(passing("bytes>=128 bytes<0.5K"), "0123");
  EXPECT_EQ(passing("role:gradient"), "2");
  EXPECT_EQ(passing("role:backward"), "23");
  EXPECT_EQ(passing("role:forward"), "01");
}

TEST_F(Sample, OriginsAndNames) {
  EXPECT_EQ(passing("origin:linear"), "03");
  EXPECT_EQ(passing("origin:linear_7"), "03");
  EXPECT_EQ(passing("origin:node_linear"), "03");
  EXPECT_EQ(passing("origin:tanh"), "12");
  EXPECT_EQ(passing("name:" + b.document.displayName(tanh)), "1");
  EXPECT_EQ(passing("saved"), "1");
  EXPECT_EQ(passing("saved:no"), "023");
  EXPECT_EQ(passing("recomputed"), "3");
  EXPECT_EQ(passing("tanh"), "12");  // anywhere
  EXPECT_EQ(passing("\"fc\""), "03");
}

TEST_F(Sample, ConditionsCombine) {
  EXPECT_EQ(passing("role:backward op:mm"), "3");
  EXPECT_EQ(passing("role:backward and op:mm"), "3");
  EXPECT_EQ(passing("op:mm or op:addmm"), "03");
  EXPECT_EQ(passing("not op:mm"), "012");
  EXPECT_EQ(passing("not not op:mm"), "3");
  EXPECT_EQ(passing("op:tanh or op:mm role:forward"), "1");  // and binds closer
  EXPECT_EQ(passing("(op:tanh or op:mm) role:backward"), "3");
  EXPECT_EQ(passing("not(op:mm or op:tanh)"), "02");
  EXPECT_EQ(passing("op:or"), "");  // a word behind a field is a word
}

TEST_F(Sample, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_EQ(wrongAt("role:gradent"), "5-12");
  EXPECT_EQ(wrongAt("op:mm oop:mm"), "6-9");
  EXPECT_EQ(wrongAt("op:"), "3-3");
  EXPECT_EQ(wrongAt("(op:mm"), "0-1");
  EXPECT_EQ(wrongAt("op:mm)"), "5-6");
  EXPECT_EQ(wrongAt("op:mm or"), "8-8");
  EXPECT_EQ(wrongAt("not"), "3-3");
  EXPECT_EQ(wrongAt("bytes>many"), "6-10");
  EXPECT_EQ(wrongAt("bytes>-1"), "6-8");
  EXPECT_EQ(wrongAt("shape:4xx"), "6-9");
  EXPECT_EQ(wrongAt("op<3"), "0-3");
  EXPECT_EQ(wrongAt("op:\"mm"), "3-4");
  EXPECT_EQ(wrongAt("op:/m(/"), "5-6");
  EXPECT_EQ(wrongAt("saved:maybe"), "6-11");
  EXPECT_EQ(wrongAt(std::string(200, '(') + "a"), "100-101");
  wrongAt(std::string(20'000, 'a'));
  EXPECT_THROW(Filter::parse("op:"), Error);
}

TEST_F(Sample, CompletesFieldsAndValues) {
  const auto complete = [&](std::string_view text) {
    const auto completion = completeFilter(b.document, trace, text, text.size());
    std::string all = std::to_string(completion.begin) + ":";
    for (const auto& candidate : completion.candidates) all += " " + candidate;
    return all;
  };
  EXPECT_EQ(complete("op:mm ro"), "6: role:");
  EXPECT_EQ(complete("o"), "0: op: or origin:");
  EXPECT_EQ(complete("op:t"), "3: tanh tanh_backward");
  EXPECT_EQ(complete("(module:h.3"), "8: h.3 h.3.fc h.31.fc");
  EXPECT_EQ(complete("role:g"), "5: gradient");
  EXPECT_EQ(complete("saved:"), "6: no yes");
  EXPECT_EQ(complete("nonsense:"), "9:");
}

}  // namespace
}  // namespace retrograd::test
