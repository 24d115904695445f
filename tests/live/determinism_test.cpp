// Which kernel of a GPU an op takes, asked of traces that were derived for a GPU that is not there.
#include "core/torch/execution/determinism.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/torch/execution/reproducible.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

DerivationRequest onCuda() {
  DerivationRequest request;
  request.device = Device{Device::Type::cuda, 0};
  return request;
}

using Sizes = std::vector<std::int64_t>;

/// A model of one op on `self` of these sizes and as many indices.
struct Case {
  const char* op;
  std::function<ValueId(ModelBuilder&, const Sizes&)> build;
};

ValueId self(ModelBuilder& m, const Sizes& sizes) { return m.input("x", sizes); }
ValueId source(ModelBuilder& m, const Sizes& sizes) { return m.input("s", sizes); }
/// Indices as scatter and gather take them, with as many dimensions as the tensor.
ValueId places(ModelBuilder& m, const Sizes& sizes) { return m.input("i", sizes, DType::i64); }
/// Indices of a dimension.
ValueId rows(ModelBuilder& m, const Sizes& sizes) { return m.input("i", {sizes.empty() ? 1 : sizes[0]}, DType::i64); }

std::vector<Case> indexed() {
  return {
      {"index_select", [](auto& m, auto& n) { return m.op("aten.index_select.default", {self(m, n), 0, rows(m, n)}); }},
      {"index_add",
       [](auto& m, auto& n) { return m.op("aten.index_add.default", {self(m, n), 0, rows(m, n), source(m, n)}); }},
      {"index_copy",
       [](auto& m, auto& n) { return m.op("aten.index_copy.default", {self(m, n), 0, rows(m, n), source(m, n)}); }},
      {"index_reduce",
       [](auto& m, auto& n) {
         return m.op("aten.index_reduce.default",
                     {self(m, n), 0, rows(m, n), source(m, n), Argument::ofString("mean")});
       }},
      {"scatter",
       [](auto& m, auto& n) { return m.op("aten.scatter.src", {self(m, n), 0, places(m, n), source(m, n)}); }},
      {"scatter_add",
       [](auto& m, auto& n) { return m.op("aten.scatter_add.default", {self(m, n), 0, places(m, n), source(m, n)}); }},
      {"scatter_reduce",
       [](auto& m, auto& n) {
         return m.op("aten.scatter_reduce.two", {self(m, n), 0, places(m, n), source(m, n), Argument::ofString("sum")});
       }},
      {"gather", [](auto& m, auto& n) { return m.op("aten.gather.default", {self(m, n), 0, places(m, n)}); }},
      {"cummax", [](auto& m, auto& n) { return m.multi("aten.cummax.default", {self(m, n), 0}, 2)[0]; }},
      {"topk", [](auto& m, auto& n) { return m.multi("aten.topk.default", {self(m, n), 1, 0}, 2)[0]; }},
      {"mode", [](auto& m, auto& n) { return m.multi("aten.mode.default", {self(m, n), 0}, 2)[0]; }},
      {"kthvalue", [](auto& m, auto& n) { return m.multi("aten.kthvalue.default", {self(m, n), 1, 0}, 2)[0]; }},
  };
}

std::shared_ptr<const Analysis> derived(const Case& one, const Sizes& sizes) {
  ModelBuilder m;
  m.output(one.build(m, sizes));
  return m.analyse(onCuda());
}

/// LibTorch's deterministic forms of these are index_put with an index for the dimension, which a tensor without
/// dimensions does not have: "too many indices for tensor of dimension 0".
bool refusesWithoutDimensions(std::string_view op) {
  static constexpr std::string_view names[] = {"aten.scatter", "aten.index_add", "aten.index_copy", "aten.index_put",
                                               "aten.index_reduce"};
  return std::any_of(std::begin(names), std::end(names), [&](auto name) { return op.starts_with(name); });
}

TEST(Determinism, TensorsWithoutDimensionsAreIndexedAsInEager) {
  for (const auto& one : indexed()) {
    const auto analysis = derived(one, {});
    ASSERT_TRUE(analysis->derived()) << one.op << (analysis->problems.empty() ? "" : analysis->problems.back().message);
    const auto& document = *analysis->document;
    for (const auto op : analysis->joint.ops) {
      const auto& name = document.symbol(op).name;
      if (!refusesWithoutDimensions(name)) continue;
      const auto choice = gpuKernelOf(document, op);
      EXPECT_FALSE(choice.usesMode()) << one.op << ": " << name;
      EXPECT_TRUE(choice.lastBit.empty()) << one.op << ": one element into one place has no order";
    }
  }
}

// In the forward or in the backward: that of gather is a scatter_add, that of topk a scatter.
TEST(Determinism, WhereTheDeterministicKernelIsRightItIsTaken) {
  for (const auto& one : indexed()) {
    const auto analysis = derived(one, {6});
    ASSERT_TRUE(analysis->derived()) << one.op;
    const auto& document = *analysis->document;
    EXPECT_TRUE(std::any_of(analysis->joint.ops.begin(), analysis->joint.ops.end(), [&](BoundSymbolId op) {
      return gpuKernelOf(document, op).usesMode();
    })) << one.op;
    for (const auto op : analysis->joint.ops) {
      if (document.symbol(op).name != "aten.index_reduce.default") continue;
      EXPECT_FALSE(gpuKernelOf(document, op).usesMode()) << "a mean has no index_put";
      EXPECT_FALSE(gpuKernelOf(document, op).lastBit.empty());
    }
  }
}

TEST(Determinism, ManyIntoOnePlaceMayChangeTheLastBit) {
  ModelBuilder m;
  const auto one = m.input("x", {}), many = m.input("s", {5});
  m.output(m.op("aten.scatter_add.default", {one, 0, m.input("i", {5}, DType::i64), many}));
  const auto analysis = m.analyse(onCuda());
  const auto note = lastBitNote(*analysis->document, analysis->joint.ops);
  EXPECT_NE(note.find("aten.scatter_add ("), std::string::npos) << note;
}

TEST(Determinism, TheWrongKernelOfReflectionPadIsNotTaken) {
  ModelBuilder m;
  m.output(m.op("aten.reflection_pad2d.default", {m.input("x", {1, 2, 4, 4}), ModelBuilder::list({1, 2, 1, 2})}));
  const auto analysis = m.analyse(onCuda());
  ASSERT_TRUE(analysis->derived());
  const auto& document = *analysis->document;
  bool isThere = false;
  for (const auto op : analysis->joint.ops) {
    if (!document.symbol(op).name.starts_with("aten.reflection_pad2d_backward")) continue;
    isThere = true;
    const auto choice = gpuKernelOf(document, op);
    EXPECT_EQ(choice.kernel, GpuKernel::wrong);
    EXPECT_FALSE(choice.usesMode());
    EXPECT_FALSE(choice.lastBit.empty());
  }
  EXPECT_TRUE(isThere);
  const auto& problems = analysis->problems;
  EXPECT_TRUE(std::any_of(problems.begin(), problems.end(), [](const Problem& p) {
    return p.severity == Problem::Severity::note &&
           p.message.find("aten.reflection_pad2d_backward (") != std::string::npos;
  })) << "a note says that a step back may change the last bit";
}

TEST(Determinism, EveryOpOfTheTableIsOneOfLibTorchAndHasAReason) {
  std::set<std::string_view> seen;
  for (const auto& rule : gpuKernelRules()) {
    EXPECT_TRUE(seen.insert(rule.op).second) << rule.op << " is there twice";
    EXPECT_FALSE(rule.reason.empty()) << rule.op;
    const auto name = "aten::" + std::string(rule.op.substr(5));
    const auto all = c10::Dispatcher::singleton().getAllOpNames();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& op) {
      return op.name == name || op.name == name + "_";
    })) << rule.op;
  }
}

TEST(Determinism, AttentionNeedsTheModeThatDoesNotMerelyWarn) {
  const auto& context = at::globalContext();
  using Mode = DeterministicScope::Mode;
  {
    const DeterministicScope scope(Mode::strict);
    EXPECT_TRUE(context.deterministicAlgorithms());
    EXPECT_FALSE(context.deterministicAlgorithmsWarnOnly());
  }
  {
    const DeterministicScope scope(Mode::on);
    EXPECT_TRUE(context.deterministicAlgorithms());
    EXPECT_TRUE(context.deterministicAlgorithmsWarnOnly());
    const DeterministicScope inner(Mode::off);
    EXPECT_FALSE(context.deterministicAlgorithms());
  }
  EXPECT_FALSE(context.deterministicAlgorithms());
}

}  // namespace
}  // namespace retrograd::test
