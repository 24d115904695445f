#include "core/split/min_cut.h"

#include <gtest/gtest.h>

#include "core/split/flow.h"
#include "core/split/op_cost.h"
#include "core/split/partition.h"
#include "tests/core/split/joint.h"

namespace retrograd {
namespace {

using test::JointBuilder;
using test::Lines;

PartitionOptions minCut(std::optional<std::int64_t> budget = {}) { return {PartitionOptions::minCut, budget, {}}; }

TEST(Flow, FindsTheSmallestCutWithTheSmallestSinkSide) {
  FlowNetwork network(6);  // 0 -> {2, 3} -> {4, 5} -> 1
  network.addEdge(0, 2, 10);
  network.addEdge(0, 3, 10);
  network.addEdge(2, 4, 4);
  network.addEdge(2, 5, 8);
  network.addEdge(3, 5, 9);
  network.addEdge(4, 1, 10);
  network.addEdge(5, 1, 10);
  const auto side = network.sinkSide(0, 1);
  EXPECT_EQ(side, (std::vector<char>{0, 1, 0, 0, 1, 0}));  // cut: 2-4 (4) and 5-1 (10)
}

TEST(Flow, PrefersTheCutNearestToTheSink) {
  FlowNetwork network(4);
  network.addEdge(0, 2, 5);
  network.addEdge(2, 3, 5);
  network.addEdge(3, 1, 5);
  EXPECT_EQ(network.sinkSide(0, 1), (std::vector<char>{0, 1, 0, 0}));
}

TEST(OpCost, KnowsTheHeavyFamilies) {
  EXPECT_EQ(familyOf("aten.mm.default"), OpFamily::matrixProduct);
  EXPECT_EQ(familyOf("aten.addmm.default"), OpFamily::matrixProduct);
  EXPECT_EQ(familyOf("aten._scaled_mm.default"), OpFamily::matrixProduct);
  EXPECT_EQ(familyOf("aten.linear.default"), OpFamily::matrixProduct);
  EXPECT_EQ(familyOf("aten.convolution.default"), OpFamily::convolution);
  EXPECT_EQ(familyOf("aten.mkldnn_convolution.default"), OpFamily::convolution);
  EXPECT_EQ(familyOf("aten._slow_conv2d_forward.default"), OpFamily::convolution);
  EXPECT_EQ(familyOf("aten._scaled_dot_product_flash_attention_for_cpu.default"), OpFamily::attention);
  EXPECT_EQ(familyOf("aten.mkldnn_rnn_layer.default"), OpFamily::recurrent);
  EXPECT_EQ(familyOf("aten.linalg_inv_ex.default"), OpFamily::solver);
  EXPECT_EQ(familyOf("aten.sort.stable"), OpFamily::sorting);
  for (auto light : {"aten.mul.Tensor", "aten.native_layer_norm.default", "aten.gelu.default", "aten.linspace.default",
                     "aten.commutative.default"})
    EXPECT_EQ(familyOf(light), OpFamily::other) << light;
}

TEST(OpCost, AMatrixProductCostsMoreThanWhatItMoves) {
  JointBuilder m;
  const auto a = m.input("a", {64, 64}), b = m.input("b", {64, 64});
  const auto product = m.forward("aten.mm.default", {a, b}, "p"), sum = m.forward("aten.add.Tensor", {a, b}, "s");
  EXPECT_GT(opCost(m.document, m.document.value(product).producer),
            3 * opCost(m.document, m.document.value(sum).producer));
}

/// h = mm(x, w); then `wide` steps on h, each read by the backward: only h need be saved.
struct Elementwise : JointBuilder {
  ValueId x = input("x", {8}), w = input("w", {8}, ValueKind::parameter), h = forward("aten.mm.default", {x, w}, "h"),
          a = forward("aten.sin.default", {h}, "a"), b = forward("aten.exp.default", {a}, "b"),
          y = forward("aten.mm.default", {b, w}, "y");
  Elementwise() {
    backward({y});
    auto g = cotangent({8});
    for (auto value : {b, a, h}) g = gradient("aten.mul.Tensor", {g, value}, "g");
    trace.outputs.push_back(g);
  }
};

TEST(MinCut, B15_SavesTheFewestBytesByShape) {
  Elementwise m;
  EXPECT_EQ(savedBytes(m.document, m.trace).storages, 3 * 32);
  const auto result = partition(m.document, m.trace, minCut());
  EXPECT_EQ(savedBytes(m.document, result.joint).storages, 32);
  EXPECT_EQ(m.backwardOf(result.joint).front(), "bw_a = sin(h)");
  EXPECT_EQ(m.problems(result.joint), Lines());
}

TEST(MinCut, B15_NeverRecomputesAMatrixProduct) {
  Elementwise m;
  for (const auto& line : m.backwardOf(partition(m.document, m.trace, minCut()).joint))
    EXPECT_EQ(line.find("mm("), std::string::npos) << line;
}

TEST(MinCut, B15_ANarrowValueIsCutInsteadOfAWideOne) {
  JointBuilder m;
  const auto x = m.input("x", {8}), w = m.input("w", {8}, ValueKind::parameter),
             wide = m.forward("aten.mm.default", {x, w}, "wide");
  const auto narrow = m.forward("aten.sum.default", {wide}, "narrow");
  m.document.value(narrow).meta = m.meta({1});
  m.document.storage(narrow).bytes = 4;
  const auto y = m.forward("aten.expand_copy.default", {narrow}, "y");
  m.document.value(y).meta = m.meta({8});
  m.document.storage(y).bytes = 32;
  m.backward({y});
  m.trace.outputs.push_back(m.gradient("aten.mul.Tensor", {m.cotangent({8}), y}, "g"));
  const auto result = partition(m.document, m.trace, minCut());
  EXPECT_EQ(m.backwardOf(result.joint), (Lines{"bw_y = expand_copy(narrow)", "g = mul(cotangent, bw_y)"}));
}

TEST(MinCut, B15_DrawsWritesAndDataAreSaved) {
  JointBuilder m;
  const auto x = m.input("x", {8});
  const auto draw = m.forward("aten.rand_like.default", {x}, "draw", effect::random);
  const auto data = m.forward("aten.nonzero.default", {x}, "data", effect::needsData);
  const auto copy = m.forward("aten.clone.default", {x}, "copy"),
             written = m.write("aten.sin_.default", {copy}, "written");
  m.backward({x});
  auto g = m.cotangent({8});
  for (auto value : {draw, data, written}) g = m.gradient("aten.mul.Tensor", {g, value}, "g");
  m.trace.outputs.push_back(g);
  EXPECT_EQ(partition(m.document, m.trace, minCut()).joint.ops, m.trace.ops);
}

TEST(MinCut, ViewsOfParametersAreMadeAgain) {
  JointBuilder m;
  const auto w = m.input("w", {8}, ValueKind::parameter), t = m.view("aten.t.default", w, "t", {8});
  m.backward({w});
  m.trace.outputs.push_back(m.gradient("aten.mul.Tensor", {m.cotangent({8}), t}, "g"));
  EXPECT_EQ(m.backwardOf(partition(m.document, m.trace, minCut()).joint),
            (Lines{"bw_t = t(w)", "g = mul(cotangent, bw_t)"}));
}

TEST(MinCut, AStorageIsSavedOnceAndItsViewsAreMadeAgainWhereTheyHoldMore) {
  JointBuilder m;
  const auto x = m.input("x", {8}), h = m.forward("aten.mm.default", {x, x}, "h");
  const auto half = m.view("aten.narrow.default", h, "half", {4}), all = m.view("aten.view.default", h, "all", {2, 4});
  m.backward({h});
  const auto g = m.gradient("aten.mul.Tensor", {m.cotangent({8}), half}, "g");
  m.trace.outputs.push_back(m.gradient("aten.mul.Tensor", {g, all}, "g2"));
  const auto result = partition(m.document, m.trace, minCut());
  EXPECT_EQ(m.backwardOf(result.joint),
            (Lines{"bw_half = narrow(h)", "g = mul(cotangent, bw_half)", "bw_all = view(h)", "g2 = mul(g, bw_all)"}));
  EXPECT_EQ(savedBytes(m.document, result.joint).values, 32);
}

/// Three independent chains off saved products, of different lengths: three steps between nothing and all.
struct Branches : JointBuilder {
  Branches() {
    const auto w = input("w", {8}, ValueKind::parameter);
    std::vector<ValueId> results, read;
    for (int k = 0; k < 3; ++k) {
      auto value = forward("aten.mm.default", {w, w}, "h" + std::to_string(k));
      read.push_back(value);
      for (int step = 0; step <= k; ++step) {
        value = forward("aten.add.Tensor", {value, w}, "s" + std::to_string(k) + std::to_string(step));
        read.push_back(value);
      }
      results.push_back(value);
    }
    backward(results);
    auto g = cotangent({8});
    for (auto value : read) g = gradient("aten.mul.Tensor", {g, value});
    trace.outputs.push_back(g);
  }
};

std::size_t recomputedOps(const JointBuilder& m, const Trace& joint) {
  return static_cast<std::size_t>(std::count_if(
      joint.ops.begin(), joint.ops.end(), [&](BoundSymbolId op) { return m.document.boundSymbol(op).recomputed; }));
}

TEST(MinCut, Budget_MoreNeverRecomputesMoreAndEachIsKept) {
  Branches m;
  const auto most = savedBytes(m.document, m.trace).storages;
  EXPECT_EQ(most, 9 * 32);
  std::size_t before = 100;
  for (std::int64_t budget = 3 * 32; budget <= most + 32; budget += 16) {
    const auto joint = partition(m.document, m.trace, minCut(budget)).joint;
    EXPECT_LE(savedBytes(m.document, joint).storages, budget);
    EXPECT_LE(recomputedOps(m, joint), before) << budget;
    before = recomputedOps(m, joint);
    EXPECT_EQ(m.problems(joint), Lines());
  }
  EXPECT_EQ(before, 0u) << "where all fits, nothing is recomputed";
}

TEST(MinCut, Budget_RecomputesNoMoreThanItMust) {
  Branches m;
  const auto joint = partition(m.document, m.trace, minCut(8 * 32)).joint;
  EXPECT_EQ(recomputedOps(m, joint), 1u);
}

TEST(MinCut, Budget_TooSmallNamesTheSmallest) {
  Branches m;
  try {
    partition(m.document, m.trace, minCut(3 * 32 - 1));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badUse);
    EXPECT_NE(e.message().find("96 bytes"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace retrograd
