// Roots of NaN and infinities: masks whatever op carries them, memory that is written after it was made, several roots.
#include <gtest/gtest.h>

#include <limits>

#include "core/questions/nan_walk.h"
#include "core/torch/session/record_run.h"
#include "tests/support/float_tensor.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::string opOf(const Analysis& a, BoundSymbolId op) { return op ? a.document->opName(op) : "none"; }

NanWalk walked(const Analysis& analysis) { return walkToRoots(analysis, recordRun(analysis)); }

/// Scores of a row that a mask hides as a whole; `add` puts the mask on the product of q and k.
std::string rootOfMaskedRow(const std::function<ValueId(ModelBuilder&, ValueId, ValueId, ValueId)>& add) {
  ModelBuilder m;
  const auto q = m.input("q", {1, 2, 2}), k = m.input("k", {1, 2, 2}), mask = m.input("mask", {1, 2, 2});
  const auto masked = add(m, mask, q, k);
  m.output(m.op("aten.sum.default", {m.op("aten._softmax.default", {masked, -1, Argument::ofBool(false)})}));
  DerivationRequest request;
  request.inputs["q"] = request.inputs["k"] = floatTensor({1, 2, 2}, {1, 2, 3, 4});
  request.inputs["mask"] = floatTensor({1, 2, 2}, {0, 0, -infinity, -infinity});
  const auto analysis = m.analyse(request);
  return opOf(*analysis, walked(*analysis).root);
}

TEST(Roots, AMaskPassesItsInfinitiesOnWhateverOpCarriesIt) {
  const std::string softmax = "torch.ops.aten._softmax.default";
  EXPECT_EQ(
      rootOfMaskedRow([](auto& m, auto mask, auto q, auto k) { return m.op("aten.baddbmm.default", {mask, q, k}); }),
      softmax);
  EXPECT_EQ(rootOfMaskedRow([](auto& m, auto mask, auto q, auto k) {
              const auto flat = [&](ValueId x) { return m.op("aten.select.int", {x, 0, 0}); };
              return m.op("aten.addmm.default", {flat(mask), flat(q), flat(k)});
            }),
            softmax);
  // A scale behind the mask.
  EXPECT_EQ(rootOfMaskedRow([](auto& m, auto mask, auto q, auto k) {
              const auto scores = m.op("aten.add.Tensor", {m.op("aten.bmm.default", {q, k}), mask});
              return m.op("aten.mul.Tensor", {m.op("aten.div.Tensor", {scores, 2.0}), 0.5});
            }),
            softmax);
  // A mask that is written into zeros.
  EXPECT_EQ(rootOfMaskedRow([](auto& m, auto mask, auto q, auto k) {
              const auto zeros = m.op("aten.zeros_like.default", {mask});
              m.op("aten.fill_.Scalar", {m.op("aten.select.int", {zeros, 1, 1}), static_cast<double>(-infinity)});
              return m.op("aten.add.Tensor", {m.op("aten.bmm.default", {q, k}), zeros});
            }),
            softmax);
}

// The mask's operand alone passes; a product that overflows in the same op is its fault.
TEST(Roots, AProductThatOverflowsWhereAMaskIsAddedIsTheRoot) {
  ModelBuilder m;
  const auto q = m.input("q", {1, 2, 2}), mask = m.input("mask", {1, 2, 2});
  m.output(m.op("aten.sum.default", {m.op("aten.baddbmm.default", {mask, q, q})}));
  DerivationRequest request;
  request.inputs["q"] = floatTensor({1, 2, 2}, {1e30F, 1e30F, 1e30F, 1e30F});
  request.inputs["mask"] = floatTensor({1, 2, 2}, {0, 0, 0, 0});
  const auto analysis = m.analyse(request);
  EXPECT_EQ(opOf(*analysis, walked(*analysis).root), "torch.ops.aten.baddbmm.default");
}

TEST(Roots, MaskOfMultiheadAttention) {
  const auto analysis = openModel(sourcePath("tests/data/reports/mask_baddbmm.pt2"));
  EXPECT_NE(opOf(*analysis, walked(*analysis).root).find("softmax"), std::string::npos);
}

// An input may bring a mask's infinities only where it has any: those of log's are a fault, whatever they are
// multiplied by.
TEST(Roots, OnlyAnInputWithInfinitiesIsAMask) {
  ModelBuilder m;
  const auto x = m.input("x", {2}), y = m.input("y", {2});
  const auto bad = m.op("aten.log.default", {x});
  const auto log = m.lastOp();
  m.output(m.op("aten.sum.default", {m.op("aten.mul.Tensor", {bad, y})}));
  DerivationRequest request;
  request.inputs["x"] = floatTensor({2}, {0, 0});
  request.inputs["y"] = floatTensor({2}, {1, -1});
  const auto analysis = m.analyse(request);
  const auto walk = walked(*analysis);
  EXPECT_EQ(walk.forward, log) << opOf(*analysis, walk.root);
}

// `zeros` is finite when it is made; what exp reads of it is not.
TEST(Roots, WhatAnOpReadsIsWhatItsMemoryHeldThen) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  const auto zeros = m.op("aten.zeros_like.default", {x});
  const auto part = m.op("aten.slice.Tensor", {zeros, 0, 0, 2});
  const auto bad = m.op("aten.log.default", {m.op("aten.slice.Tensor", {x, 0, 0, 2})});
  const auto log = m.lastOp();
  m.op("aten.copy_.default", {part, bad});
  m.output(m.op("aten.sum.default", {m.op("aten.exp.default", {m.op("aten.neg.default", {zeros})})}));
  DerivationRequest request;
  request.inputs["x"] = floatTensor({4}, {0, 1, 2, 3});
  const auto analysis = m.analyse(request);
  const auto walk = walked(*analysis);
  EXPECT_EQ(walk.forward, log) << opOf(*analysis, walk.root);
}

// Two parts are written, the first with infinities; what exp reads comes from that write, not from the last.
TEST(Roots, OfSeveralWritesTheBadOneIsFollowed) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  const auto zeros = m.op("aten.zeros_like.default", {x});
  const auto part = [&](ValueId of, int from) { return m.op("aten.slice.Tensor", {of, 0, from, from + 2}); };
  const auto bad = m.op("aten.log.default", {part(x, 0)});
  const auto log = m.lastOp();
  m.op("aten.copy_.default", {part(zeros, 0), bad});
  m.op("aten.copy_.default", {part(zeros, 2), part(x, 2)});
  m.output(m.op("aten.sum.default", {m.op("aten.exp.default", {m.op("aten.neg.default", {zeros})})}));
  DerivationRequest request;
  request.inputs["x"] = floatTensor({4}, {0, 1, 2, 3});
  const auto analysis = m.analyse(request);
  const auto walk = walked(*analysis);
  EXPECT_EQ(walk.forward, log) << opOf(*analysis, walk.root);
}

// Of memory that was bad and is whole again, nothing is left.
TEST(Roots, MemoryThatIsWrittenOverIsHealthyAgain) {
  ModelBuilder m;
  const auto x = m.input("x", {2});
  const auto bad = m.op("aten.log.default", {x});
  m.op("aten.fill_.Scalar", {bad, 1.0});
  m.output(m.op("aten.sum.default", {m.op("aten.sqrt.default", {m.op("aten.neg.default", {bad})})}));
  DerivationRequest request;
  request.inputs["x"] = floatTensor({2}, {0, 0});
  const auto analysis = m.analyse(request);
  EXPECT_EQ(opOf(*analysis, walked(*analysis).root), "torch.ops.aten.sqrt.default");
}

TEST(Roots, DerivativeOfTheSpectrumOfSilence) {
  const auto analysis = openModel(sourcePath("tests/data/reports/rfft_abs.pt2"));
  const auto walk = walked(*analysis);
  EXPECT_NE(opOf(*analysis, walk.root).find("aten.div"), std::string::npos) << opOf(*analysis, walk.root);
  const auto of = opOf(*analysis, walk.forward);
  EXPECT_TRUE(of.find("log") != std::string::npos || of.find("abs") != std::string::npos) << of;
}

// Roots that have nothing to do with one another are all listed, in order of the run.
TEST(Roots, IndependentRootsAreAllListed) {
  ModelBuilder m;
  const auto x = m.input("x", {2}), y = m.input("y", {2});
  const auto a = m.op("aten.log.default", {x});
  const auto log = m.lastOp();
  const auto b = m.op("aten.sqrt.default", {y});
  const auto sqrt = m.lastOp();
  m.output(m.op("aten.sum.default", {m.op("aten.add.Tensor", {a, b})}));
  DerivationRequest request;
  request.inputs["x"] = floatTensor({2}, {0, 1});
  request.inputs["y"] = floatTensor({2}, {-1, 1});
  const auto analysis = m.analyse(request);
  const auto walk = walked(*analysis);
  std::set<BoundSymbolId> found{walk.forward};
  for (const auto& other : walk.otherRoots) found.insert(other.forward);
  EXPECT_EQ(found, (std::set<BoundSymbolId>{log, sqrt}));
  EXPECT_EQ(walk.otherRoots.size(), 1u);
}

TEST(Roots, OneRootIsListedOnce) {
  const auto analysis = openModel(sourcePath("tests/data/planted/log_of_zero.txt"));
  const auto walk = walked(*analysis);
  EXPECT_TRUE(walk.root);
  for (const auto& other : walk.otherRoots) EXPECT_NE(other.forward, walk.forward);
}

// A loss is never meant to be infinite, whatever masks lead to it.
TEST(Roots, ALossThatAMaskMakesInfiniteIsBad) {
  ModelBuilder m;
  const auto x = m.input("x", {2});
  m.output(m.op("aten.sum.default", {x}));
  DerivationRequest request;
  request.inputs["x"] = floatTensor({2}, {-infinity, 0});
  const auto analysis = m.analyse(request);
  EXPECT_EQ(walkToRoots(*analysis, recordRun(*analysis)).path.at(0).value, analysis->joint.outputs[0]);
}

}  // namespace
}  // namespace retrograd::test
