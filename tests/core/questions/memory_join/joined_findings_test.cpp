#include "core/questions/memory_join/recorded_memory.h"

#include <gtest/gtest.h>

#include "tests/core/formats/memory/small_snapshot.h"

namespace retrograd {
namespace {

using Kind = MemoryFinding::Kind;
using Use = TracedAllocation::Use;

/// One megabyte that the forward saves at net.py:5, and what the trace knows of it.
class SavedBlock {
 public:
  SavedBlock()
      : snapshot_(test::read(
            test::SmallSnapshot().event({"alloc", 1 << 24, 1 << 20, {{"forward", "/job/net.py", 5}}}).pickle())),
        places_(snapshot_) {
    auto& traced = join_.trace.allocations.emplace_back();
    traced.bytes = 1 << 20;
    traced.op = "aten.mul.Tensor";
    traced.module = "blocks.0";
    traced.use = Use::saved;
    traced.firstBackward = 7;
    traced.lastReader = "aten.mm";
    auto& block = join_.allocations.emplace_back();
    block.what = wholeHistory(snapshot_, 0, places_).allocations.at(0);
    block.traced = 0;
    block.level = JoinLevel::aligned;
  }

  TracedAllocation& traced() { return join_.trace.allocations.front(); }
  JoinedAllocation& block() { return join_.allocations.front(); }
  std::vector<MemoryFinding> findings(std::int64_t event = 0) const {
    return joinedFindings(join_, places_, joinedMoment(join_, event), event);
  }
  /// Fails unless there is one finding, of this kind and with the bytes and line of the block.
  void expect(Kind kind, const std::string& words) const {
    const auto found = findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, kind);
    EXPECT_EQ(found[0].bytes, std::uint64_t{1} << 20);
    EXPECT_EQ(found[0].line, "net.py:5");
    EXPECT_NE(found[0].text.find(words), std::string::npos) << found[0].text;
    EXPECT_NE(found[0].text.find("aten.mul.Tensor of blocks.0 at net.py:5"), std::string::npos) << found[0].text;
  }

 private:
  MemorySnapshot snapshot_;
  MemoryPlaces places_;
  MemoryJoin join_;
};

TEST(JoinedFindings, NothingIsSaidOfASavedTensorThatIsRead) { EXPECT_TRUE(SavedBlock().findings().empty()); }

TEST(JoinedFindings, ACopyOfWhatIsSavedTooIsSavedTwice) {
  SavedBlock saved;
  saved.traced().copyOf = "t5";
  saved.expect(Kind::savedTwice, "a copy of t5, which is saved too");
}

TEST(JoinedFindings, ATensorThatNoOpReadsIsNeverRead) {
  SavedBlock saved;
  saved.traced().firstBackward = 0;
  saved.expect(Kind::neverRead, "no op of the backward reads it");
}

TEST(JoinedFindings, ATensorThatItsOneReaderCastsIsSavedTooWide) {
  SavedBlock saved;
  saved.traced().storedAs = "torch.bfloat16";
  saved.expect(Kind::wideDtype, "its one reader turns it into torch.bfloat16: save that");
}

TEST(JoinedFindings, ATensorIsHeldLateOnceItsLastReaderHasRun) {
  SavedBlock saved;
  saved.block().couldBeFreed = 0;
  saved.expect(Kind::heldLate, "held after its last reader, aten.mm");
  saved.block().couldBeFreed = 4;
  EXPECT_TRUE(saved.findings().empty());
}

/// What a checkpoint made again was asked for, and is not saved.
TEST(JoinedFindings, WhatIsRecomputedIsNotBlamed) {
  SavedBlock saved;
  saved.block().recomputed = true;
  saved.traced().copyOf = "t5";
  saved.traced().firstBackward = 0;
  EXPECT_TRUE(saved.findings().empty());
}

}  // namespace
}  // namespace retrograd
