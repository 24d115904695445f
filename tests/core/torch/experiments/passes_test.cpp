// Passes, each with its time and its trace.
#include "core/torch/experiments/passes.h"

#include <gtest/gtest.h>

#include "core/torch/experiments/what_if.h"
#include "core/trace/diff/trace_diff.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

using Kind = DiffRow::Kind;

std::shared_ptr<const Analysis> model(const std::string& name) {
  return openModel(sourcePath("tests/data/models/") + name + "/model.pt2");
}
const std::vector<std::string> models{"mlp",           "cond_hop",     "multi_output", "batchnorm_train",
                                      "dropout_train", "inplace_views"};

DiffSide sideOf(const Analysis& a, const Trace& trace) {
  return {a.document.get(), &trace, &a.computation().trace, &a.joint};
}

std::string parameter(const Trace& trace, const std::string& pass, const std::string& name) {
  for (const auto& record : trace.history)
    if (record.pass == pass)
      for (const auto& [key, value] : record.parameters)
        if (key == name) return value;
  return {};
}

}  // namespace

TEST(Passes, EachIsWhatItsRecordSays) {
  for (const auto& name : models) {
    const auto analysis = model(name);
    const auto passes = passesOf(*analysis);
    const auto at = passes.find("dead", TraceKind::joint);
    EXPECT_EQ(passes.results[at].pass, "Dead code elimination");
    const auto side = [&](const Trace& trace) {
      return DiffSide{passes.analysis->document.get(), &trace, nullptr, nullptr};
    };
    const auto diff = diffTraces(side(passes.before(at)), side(passes.results[at].trace));
    EXPECT_EQ(std::to_string(diff.counts.onlyLeft),
              parameter(passes.results[at].trace, "Dead code elimination", "removed"))
        << name;
    EXPECT_EQ(diff.counts.changed + diff.counts.onlyRight + diff.counts.moved, 0U) << name;
    // Deriving again ends where the analysis did.
    const auto same = diffTraces(sideOf(*analysis, analysis->joint), sideOf(*passes.analysis, passes.analysis->joint));
    EXPECT_TRUE(same.equal()) << name;
    EXPECT_EQ(passes.results.back().trace.kind, TraceKind::backward);
    EXPECT_EQ(&passes.before(passes.results.size() - 1), &passes.results[passes.results.size() - 3].trace);
  }
}

TEST(Passes, TheSplitDealsOutTheJoint) {
  const auto analysis = model("mlp");
  const auto passes = passesOf(*analysis);
  std::size_t same = 0;
  for (auto kind : {TraceKind::forward, TraceKind::backward}) {
    const auto at = passes.find("Split", kind);
    ASSERT_EQ(passes.results[at].trace.kind, kind);
    const auto diff = diffTraces({passes.analysis->document.get(), &passes.before(at)},
                                 {passes.analysis->document.get(), &passes.results[at].trace});
    same += diff.counts.same;
    EXPECT_EQ(diff.counts.changed, 0U);
  }
  EXPECT_EQ(same, analysis->joint.ops.size());
}

TEST(Passes, OnesThatWereNotRunAreRefusedWithThoseThatWere) {
  const auto passes = passesOf(*model("mlp"));
  try {
    passes.find("Recomputation", TraceKind::joint);
    FAIL() << "no op of it is recomputed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::badUse);
    EXPECT_NE(error.message().find("Grad transform, Dead code elimination"), std::string::npos) << error.message();
  }
  EXPECT_THROW(passes.before(0), Error);
}

TEST(TraceDiffOfModels, AModelOpenedTwiceIsEqualInAllItsTraces) {
  for (const auto& name : models) {
    const auto a = model(name), b = model(name);
    const auto traces = [](const Analysis& x) {
      return std::vector<const Trace*>{&x.computation().trace, &x.joint, &x.forward, &x.backward};
    };
    for (std::size_t i = 0; i < 4; ++i) {
      const auto diff = diffTraces(sideOf(*a, *traces(*a)[i]), sideOf(*b, *traces(*b)[i]));
      EXPECT_TRUE(diff.equal()) << name << " " << i;
      EXPECT_EQ(diff.counts.same, diff.leftLines.ops.size());
    }
  }
}

TEST(TraceDiffOfModels, AnotherPartitionDiffersInWhatIsSavedAndRunAgain) {
  for (const auto& name : models) {
    const auto a = model(name);
    PartitionOptions partition;
    partition.recompute = {"all"};
    const auto b = whatIf(*a, partition).analysis;
    const auto diff = diffTraces(sideOf(*a, a->joint), sideOf(*b, b->joint));
    std::size_t copies = 0, added = 0;
    for (auto op : b->joint.ops) copies += b->document->boundSymbol(op).recomputed;
    for (const auto& row : diff.rows) {
      if (row.part != DiffRow::Part::op) continue;
      // No op of the formulas comes or goes: what is on one side alone is a copy.
      EXPECT_NE(row.kind, Kind::onlyLeft) << name;
      const auto right = diff.op(row, Side::right);
      if (row.kind == Kind::onlyRight) EXPECT_EQ(b->document->boundSymbol(right).origin.role, Role::recompute) << name;
      added += row.kind == Kind::onlyRight || (row.showsRight() && (row.changes & change::recomputed));
      EXPECT_EQ(row.changes & ~(change::arguments | change::saved | change::recomputed), 0) << name;
    }
    EXPECT_EQ(added, copies) << name;
  }
}

TEST(TraceDiffOfModels, AComputationIsNextToWhatItBecame) {
  const auto a = model("mlp");
  const auto diff = diffTraces(sideOf(*a, a->computation().trace), sideOf(*a, a->joint));
  EXPECT_EQ(diff.counts.onlyLeft, 0U);
  std::string changed;
  for (const auto& row : diff.rows)
    if (row.part == DiffRow::Part::op && row.left >= 0)
      changed += a->document->opName(diff.op(row, Side::left)).substr(15) + ">" +
                 a->document->opName(diff.op(row, Side::right)).substr(15) + " ";
  EXPECT_TRUE(changed.starts_with("linear.default>addmm.default relu.default>relu.default ")) << changed;
}

}  // namespace retrograd
