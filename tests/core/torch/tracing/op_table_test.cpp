#include "core/torch/tracing/op_table.h"

#include <gtest/gtest.h>

#include "core/trace/document.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

TEST(OpTable, knowsSchemas) {
  const auto addmm = lookupSymbol("aten.addmm.default");
  ASSERT_TRUE(addmm);
  EXPECT_TRUE(addmm->known);
  EXPECT_EQ(addmm->schema,
            "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor");
  ASSERT_EQ(addmm->arguments.size(), 5u);
  EXPECT_EQ(addmm->arguments[3].name, "beta");
  EXPECT_EQ(addmm->arguments[3].type, "Scalar");
  EXPECT_TRUE(addmm->arguments[3].keywordOnly);
  EXPECT_EQ(addmm->arguments[3].defaultValue, Argument::ofInt(1));
  EXPECT_FALSE(addmm->isMutable || addmm->isView || addmm->isRandom || addmm->needsData);
}

TEST(OpTable, printsRealTypes) {
  const auto full = lookupSymbol("aten.full.default");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->arguments[0].type, "SymInt[]");
  EXPECT_EQ(full->arguments[2].type, "ScalarType?");
  EXPECT_EQ(full->arguments[3].type, "Layout?");
  EXPECT_EQ(full->arguments[4].type, "Device?");
  const auto conv = lookupSymbol("aten.conv2d.default");
  ASSERT_TRUE(conv);
  EXPECT_EQ(conv->arguments[3].type, "SymInt[2]");
  EXPECT_EQ(lookupSymbol("aten.index.Tensor")->arguments[1].type, "Tensor?[]");
}

TEST(OpTable, knowsEffects) {
  EXPECT_TRUE(lookupSymbol("aten.add_.Tensor")->isMutable);
  EXPECT_TRUE(lookupSymbol("aten.add_.Tensor")->arguments[0].isWrite);
  EXPECT_FALSE(lookupSymbol("aten.add_.Tensor")->isView);
  EXPECT_TRUE(lookupSymbol("aten.t.default")->isView);
  EXPECT_TRUE(lookupSymbol("aten.bernoulli.default")->isRandom);
  EXPECT_TRUE(lookupSymbol("aten.nonzero.default")->needsData);
  EXPECT_TRUE(lookupSymbol("aten.item.default")->needsData ||
              lookupSymbol("aten._local_scalar_dense.default")->needsData);
}

TEST(OpTable, listsAliasTheirSource) {
  const auto split = lookupSymbol("aten.split.Tensor");
  ASSERT_TRUE(split);
  EXPECT_TRUE(split->isView);
  EXPECT_GE(split->arguments[0].aliasSet, 0);
  EXPECT_EQ(split->arguments[0].aliasSet, split->returns[0].aliasSet);
  EXPECT_TRUE(lookupSymbol("aten._foreach_add_.Scalar")->arguments[0].isWrite);
}

TEST(OpTable, refusesWhatReachesOutside) {
  for (const auto* name :
       {"aten.from_file.default", "aten.save.default", "prim.rpc_sync.default", "c10d.send.default",
        "aten.set_data.default", "aten.set_.source_Storage", "aten._sparse_csr_tensor_unsafe.default",
        "aten.nothing_of_this_name.default", "mine.op.default", "aten", "aten.add", "", "..", "aten.add.Tensor.x"})
    EXPECT_FALSE(lookupSymbol(name)) << name;
}

TEST(OpTable, pipeSplitIsAMarker) {
  const auto marker = lookupSymbol("pippy._pipe_split.default");
  ASSERT_TRUE(marker);
  EXPECT_TRUE(marker->arguments.empty() && marker->returns.empty());
  EXPECT_EQ(effectsOf(*marker, {}), effect::opaque);
}

}  // namespace
}  // namespace retrograd
