#include "core/questions/why.h"
#include "core/torch/analysis/analyse.h"

#include <gtest/gtest.h>

#include "core/derivation/gradient_of.h"
#include "core/questions/partition_wishes.h"
#include "core/split/min_cut.h"
#include "core/torch/reading/session_file.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

using Kind = GradientStop::Kind;

TEST(WhySaved, NamesReadersBytesAndTheWayToRecompute) {
  ModelBuilder m;
  const auto x = m.input("x", {4, 8}), w = m.parameter("w", {8, 8});
  const auto product = m.op("aten.mm.default", {x, w});
  m.output(m.op("aten.sum.default", {m.op("aten.sin.default", {m.op("aten.mul.Tensor", {product, product})})}));
  const auto a = m.analyse();
  // Saved: mm's result (mul reads it twice) and mul's (sin's derivative reads it).
  ASSERT_EQ(opNames(*a, a->forward), "mm mul sin sum");
  const auto mul = a->document->outputs(a->forward.ops[1])[0], mm = a->document->outputs(a->forward.ops[0])[0];
  const auto why = whySaved(*a, mul);
  EXPECT_TRUE(why.saved);
  EXPECT_EQ(why.maker, a->forward.ops[1]);
  EXPECT_EQ(why.storageBytes, 4 * 8 * 4);
  ASSERT_EQ(why.readers.size(), 1u);
  EXPECT_EQ(a->document->opName(why.readers[0].op), "torch.ops.aten.cos.default");
  EXPECT_EQ(why.readers[0].argument, "self");
  EXPECT_EQ(a->document->opName(why.readers[0].origin), "torch.ops.aten.sin.default");
  EXPECT_EQ(why.recompute.ops, std::vector{a->forward.ops[1]});  // from mm's result, which is saved anyway
  EXPECT_EQ(why.recompute.from, std::vector{mm});
  EXPECT_EQ(why.recompute.extraSaved, 0);
  EXPECT_GT(why.recompute.cost, 0);
  EXPECT_EQ(whySaved(*a, mm).readers.size(), 2u);

  const auto sin = a->document->outputs(a->forward.ops[2])[0];
  EXPECT_FALSE(whySaved(*a, sin).saved);
}

TEST(WhySaved, WhatWouldHaveToBeSavedInsteadIsCounted) {
  ModelBuilder m;
  const auto x = m.input("x", {4, 8}), w = m.parameter("w", {8, 8});
  m.output(m.op("aten.sum.default", {m.op("aten.sin.default", {m.op("aten.mm.default", {x, w})})}));
  const auto a = m.analyse();
  const auto why = whySaved(*a, a->document->outputs(a->forward.ops[0])[0]);
  EXPECT_TRUE(why.saved);
  EXPECT_EQ(why.recompute.ops, std::vector{a->forward.ops[0]});  // a matrix product: possible, at a price
  EXPECT_GT(why.recompute.cost, 4 * 8 * 8 / 4);
}

// What Why promises, What If keeps, to the byte.
TEST(WhySaved, FreesWhatItPromises) {
  for (const auto* name :
       {"resources/samples/tiny_gpt.pt2", "resources/samples/mlp.pt2", "tests/data/models/batchnorm_train/model.pt2",
        "tests/data/models/dropout_train/model.pt2", "tests/data/models/inplace_views/model.pt2"}) {
    const auto a = openModel(sourcePath(name));
    const auto before = savedBytes(*a->document, a->joint).storages;
    int asked = 0;
    for (auto value : std::span(a->backward.inputs).first(a->backward.savedCount)) {
      const auto why = whySaved(*a, value);
      if (why.storageBytes == 0 || !why.maker || !why.sharing.empty() || !why.recompute.impossible.empty()) continue;
      SCOPED_TRACE(a->document->displayName(value));
      auto request = a->request;
      request.partition = recomputing(*a, value);
      const auto other = deriveAgain(*a, request);
      const auto after = savedBytes(*other->document, other->joint).storages;
      const auto promised = before - why.recompute.freed + why.recompute.extraSaved;
      EXPECT_EQ(after, promised);
      ++asked;
    }
    EXPECT_GT(asked, 0) << name;
  }
}

std::vector<Kind> kinds(const WhyNoGradient& why) {
  std::vector<Kind> all;
  for (const auto& stop : why.stops) all.push_back(stop.kind);
  return all;
}

TEST(WhyNoGradient, FrozenAndIntegerValues) {
  ModelBuilder m;
  const auto w = m.parameter("w", {3}, false), x = m.input("x", {3}), i = m.input("i", {3}, DType::i64);
  m.output(m.op("aten.mul.Tensor", {m.op("aten.mul.Tensor", {x, w}), i}));
  const auto a = m.analyse();
  EXPECT_EQ(kinds(whyNoGradient(*a, w)), std::vector{Kind::notRequested});
  EXPECT_EQ(kinds(whyNoGradient(*a, i)), std::vector{Kind::notDifferentiable});
  const auto has = whyNoGradient(*a, x);
  EXPECT_TRUE(has.gradient && has.stops.empty());
}

TEST(WhyNoGradient, LeadsToEachPlaceThatCutsItOff) {
  ModelBuilder m;
  const auto x = m.input("x", {3}), w = m.parameter("w", {3});
  const auto scaled = m.op("aten.mul.Tensor", {w, w});
  const auto scaledOp = m.lastOp();
  const auto detached = m.op("aten.detach.default", {scaled});
  const auto detachOp = m.lastOp();
  const auto quiet = m.op("aten.sin.default", {scaled}, /*gradMode=*/false);
  const auto quietOp = m.lastOp();
  const auto mask = m.op("aten.gt.Scalar", {scaled, 0.0});
  const auto maskOp = m.lastOp();
  m.document().value(mask).meta = m.document().internMeta([] {
    TensorMeta b;
    b.dtype = DType::b8;
    b.sizes = {3};
    b.strides = {1};
    return b;
  }());
  m.op("aten.exp.default", {scaled});  // nobody reads it
  m.output(m.op("aten.where.self", {mask, m.op("aten.mul.Tensor", {x, detached}), quiet}));
  const auto a = m.analyse();
  const auto why = whyNoGradient(*a, w);
  EXPECT_FALSE(why.gradient);
  std::map<Kind, const GradientStop*> found;
  for (const auto& stop : why.stops) found[stop.kind] = &stop;
  ASSERT_TRUE(found.contains(Kind::detached) && found.contains(Kind::noGradRegion) && found.contains(Kind::integerOp) &&
              found.contains(Kind::unused));
  EXPECT_EQ(found.size(), 4u);
  EXPECT_EQ(found[Kind::detached]->op, detachOp);
  EXPECT_EQ(found[Kind::detached]->path, (std::vector{scaledOp, detachOp}));
  EXPECT_EQ(found[Kind::noGradRegion]->op, quietOp);
  EXPECT_EQ(found[Kind::integerOp]->op, maskOp);
  for (const auto& stop : why.stops) EXPECT_FALSE(describe(*a->document, stop).empty());
}

TEST(WhyNoGradient, OutputsIntoWhichNothingComes) {
  ModelBuilder m;
  const auto x = m.input("x", {3}), w = m.parameter("w", {3});
  m.output(m.op("aten.sin.default", {x}));
  m.output(m.op("aten.sin.default", {w}));
  DerivationRequest options;
  options.exactCotangents = true;
  options.cotangents["0"] = [] {
    TensorData data;
    data.meta.sizes = {3};
    data.meta.strides = {1};
    auto numbers = std::make_shared<std::vector<float>>(3, 1.f);
    data.data = reinterpret_cast<const std::byte*>(numbers->data());
    data.bytes = 12;
    data.owner = numbers;
    return data;
  }();
  const auto a = m.analyse(options);
  EXPECT_EQ(kinds(whyNoGradient(*a, w)), std::vector{Kind::outputWithoutCotangent});
}

TEST(WhyNoGradient, AGradientThatPassesUnchangedIsOne) {
  ModelBuilder m;
  const auto x = m.input("x", {3}), w = m.parameter("w", {3});
  const auto left = m.op("aten.sin.default", {x}), right = m.op("aten.mul.Tensor", {x, w});
  const auto sum = m.op("aten.add.Tensor", {left, right}), same = m.op("aten.alias.default", {sum});
  const auto result = m.op("aten.cos.default", {same});
  m.output(result);
  const auto a = m.analyse();
  const auto gradient = gradientOf(*a, same);
  ASSERT_TRUE(gradient);
  for (auto value : {left, right, sum})
    EXPECT_EQ(whyNoGradient(*a, value).gradient, gradient) << a->document->displayName(value);
  EXPECT_EQ(gradientOf(*a, result), a->joint.inputs.back());  // the cotangent itself
  EXPECT_EQ(gradientTermsOf(*a, x).size(), 2u);
  // A session keeps it.
  const auto path = testing::TempDir() + "passes.retrograd";
  SaveSessionOptions save;
  save.embed = true;
  saveSession(*a, path, save);
  EXPECT_EQ(gradientOf(*loadSession(path), left), gradient);
}

// The table of all values says what a search for each of them finds: sums, tied parameters, cotangents that pass
// unchanged.
TEST(GradientOf, AllValuesAreAsEachAlone) {
  ModelBuilder m;
  const auto x = m.input("x", {3}), w = m.parameter("w", {3}), frozen = m.input("y", {3});
  const auto sum = m.op("aten.add.Tensor", {m.op("aten.sin.default", {x}), m.op("aten.mul.Tensor", {x, w})});
  m.output(m.op("aten.cos.default", {m.op("aten.mul.Tensor", {m.op("aten.alias.default", {sum}), frozen})}));
  for (const auto& a : {m.analyse(), openModel(sourcePath("resources/samples/tiny_gpt.pt2"))}) {
    const auto all = gradientsOfValues(*a);
    std::size_t known = 0;
    for (auto value : all.ids()) {
      EXPECT_EQ(all[value], gradientOf(*a, value)) << a->document->displayName(value);
      known += all[value].valid();
    }
    EXPECT_GT(known, 3u);
  }
}

TEST(WhyNoGradient, OfARealModel) {
  const auto a = openModel(sourcePath("tests/data/models/mlp/model.pt2"));
  EXPECT_TRUE(whyNoGradient(*a, findValue(*a, "l1.weight").value()).gradient);
  EXPECT_FALSE(findValue(*a, "no such value"));
}

}  // namespace
}  // namespace retrograd::test
