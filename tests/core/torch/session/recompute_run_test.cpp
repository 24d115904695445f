// Recomputation and min-cut on real files: the numbers must be those of LibTorch's own autograd.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "core/split/min_cut.h"
#include "core/split/op_cost.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/checking/check.h"
#include "core/torch/checking/suite.h"
#include "core/torch/judging/compare.h"
#include "core/torch/session/session.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/effects.h"
#include "core/trace/verifier.h"
#include "tests/support/comparison.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

std::string model(const std::string& name) { return sourcePath("tests/data/models/") + name + "/model.pt2"; }

PartitionOptions recomputing(std::vector<std::string> what) {
  return {PartitionOptions::defaultKind, {}, std::move(what)};
}
PartitionOptions minCut(std::optional<std::int64_t> budget = {}) { return {PartitionOptions::minCut, budget, {}}; }

std::shared_ptr<const Analysis> open(const std::string& name, const PartitionOptions& partition) {
  DerivationRequest options;
  options.partition = partition;
  return openModel(model(name), options);
}

struct RealFile : testing::TestWithParam<std::string> {
  void check(const PartitionOptions& partition) {
    CheckOptions options;
    options.partition = partition;
    options.reference = std::filesystem::path(model(GetParam())).replace_filename("ref.safetensors").string();
    const auto report = checkModel(model(GetParam()), options);
    EXPECT_EQ(test::verdictOf(report), Verdict::pass) << decide(report).reason;
    const auto analysis = open(GetParam(), partition);
    for (const auto* trace : {&analysis->joint, &analysis->forward, &analysis->backward})
      for (const auto& problem : verify(*analysis->document, *trace))
        ADD_FAILURE() << problem.place << ": " << problem.message;
  }
};

TEST_P(RealFile, A26_GivesTheSameWithAllRecomputed) { check(recomputing({"all"})); }
TEST_P(RealFile, B15_GivesTheSameWithMinCut) { check(minCut()); }

TEST_P(RealFile, A26_GivesTheSameWithHalfOfTheModulesRecomputed) {
  const auto plain = open(GetParam(), {});
  std::set<std::string> modules;
  for (auto op : plain->forward.ops)
    if (const auto path = plain->document->text(plain->document->boundSymbol(op).module); !path.empty())
      modules.emplace(path);
  std::vector<std::string> half;
  bool take = true;
  for (const auto& path : modules)
    if (std::exchange(take, !take)) half.push_back(path);
  check(recomputing(half));
}

TEST_P(RealFile, B15_MinCutIsNeverWorseThanTheFormulas) {
  const auto plain = open(GetParam(), {}), cut = open(GetParam(), minCut());
  const auto before = savedBytes(*plain->document, plain->joint), after = savedBytes(*cut->document, cut->joint);
  EXPECT_LE(after.storages, before.storages);
  EXPECT_LE(after.values, before.values);
}

TEST_P(RealFile, B15_MinCutRepeatsNoHeavyOpAndNoDraw) {
  const auto cut = open(GetParam(), minCut());
  for (auto op : cut->joint.ops) {
    const auto& bound = cut->document->boundSymbol(op);
    if (!bound.recomputed) continue;
    EXPECT_FALSE(isHeavy(familyOf(cut->document->symbol(bound.symbol).name))) << cut->document->opName(op);
    EXPECT_FALSE(hasSideEffect(*cut->document, op)) << cut->document->opName(op);
  }
}

INSTANTIATE_TEST_SUITE_P(OnDisk, RealFile,
                         testing::Values("mlp", "cond_hop", "multi_output", "batchnorm_train", "dropout_train",
                                         "inplace_views"),
                         [](const auto& info) { return info.param; });

TEST(RecomputeRun, D1_RepeatedDropoutHasTheForwardsMask) {
  const auto plain = open("dropout_train", {}), again = open("dropout_train", recomputing({"all"}));
  std::size_t replays = 0;
  for (auto op : again->joint.ops) replays += again->document->boundSymbol(op).replays.valid();
  EXPECT_EQ(replays, 2u);
  const auto expected = runJoint(*plain), actual = runSplit(*again);
  ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
  for (const auto& [key, gradient] : expected.gradients)
    EXPECT_TRUE(identical(actual.gradients.at(key), gradient)) << key;
}

TEST(RecomputeRun, D1_SteppingBackAndForthReplaysTheSameDraw) {
  const auto analysis = open("dropout_train", recomputing({"all"}));
  Session session(analysis);
  session.runTo(session.size());
  const auto expected = session.gradients();
  for (const auto position : {session.forwardSize() + 3, std::size_t{2}, session.forwardSize()}) {
    session.runTo(position);
    session.runTo(session.size());
    for (const auto& [key, gradient] : session.gradients())
      EXPECT_TRUE(identical(gradient, expected.at(key))) << key << " after " << position;
  }
}

/// What a draw at the end of the backward gives: it takes the place of the first gradient.
TensorData lateDraw(const Analysis& analysis) {
  auto copy = std::make_shared<Analysis>(analysis);
  auto document = std::make_shared<Document>(*analysis.document);
  const auto x = copy->joint.inputs.at(0);
  const auto symbol = document->internSymbol(*lookupSymbol("aten.rand_like.default"));
  CallPattern pattern{{Argument::ofOperand(0)}, {}, 1, {}};
  pattern.arguments.resize(document->symbol(symbol).arguments.size(), Argument::ofMissing());
  BoundSymbol draw;
  draw.symbol = symbol;
  draw.pattern = document->internPattern(pattern);
  draw.effects = effect::random;
  const std::array operands{x}, outputs{document->addValue(document->value(x))};
  copy->joint.ops.push_back(document->addBoundSymbol(draw, operands, outputs));
  copy->joint.outputs.at(copy->joint.resultCount) = outputs[0];
  copy->document = document;
  const auto key = "p." + copy->computation().inputs.at(0).target;
  return runJoint(*copy).gradients.at(key);
}

TEST(RecomputeRun, D1_ReplaysLeaveTheGeneratorAlone) {
  EXPECT_TRUE(identical(lateDraw(*open("dropout_train", {})), lateDraw(*open("dropout_train", recomputing({"all"})))));
}

TEST(RecomputeRun, D9_DerivesTwiceFromOneDocument) {
  const auto analysis = open("dropout_train", recomputing({"all"}));
  EXPECT_NO_THROW(timeDerivation(*analysis, 2));
}

TEST(RecomputeRun, WritesThatRunOnceAreNamed) {
  const auto analysis = open("batchnorm_train", recomputing({"all"}));
  const auto isBatchNorm = [](const Problem& p) {
    return p.place.find("batch_norm") != std::string::npos && p.severity == Problem::Severity::note;
  };
  EXPECT_TRUE(std::any_of(analysis->problems.begin(), analysis->problems.end(), isBatchNorm));
}

TEST(RecomputeRun, ABudgetThatIsTooSmallNamesTheFileAndTheSmallest) {
  try {
    open("mlp", minCut(0));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badUse);
    EXPECT_NE(std::string(e.what()).find("mlp"), std::string::npos);
    EXPECT_NE(e.message().find("smallest possible budget"), std::string::npos);
  }
}

/// checkpoint(x -> dropout(tanh(mm(x, w)))), then exp: built by hand, as torch.export writes it.
class CheckpointModel {
 public:
  explicit CheckpointModel(bool nested = false) {
    file_.path = "by hand";
    file_.document = std::make_shared<Document>();
    const auto x = input("x", InputKind::user), w = input("w", InputKind::parameter);
    const auto result =
        nested
            ? region({x, w}, [&](auto in) { return region({in[0], in[1]}, [&](auto inner) { return body(inner); }); })
            : region({x, w}, [&](auto in) { return body(in); });
    const auto y = call("aten.exp.default", {result});
    file_.computation.trace.ops = ops_;
    file_.computation.trace.outputs = {y};
    file_.computation.outputs.push_back({OutputKind::user, y, {}, {}});
    file_.computation.trace.name = "computation";
  }
  ModelFile take() { return std::move(file_); }

 private:
  ValueId body(const std::vector<ValueId>& in) {
    const auto t = call("aten.tanh.default", {call("aten.mm.default", {in[0], in[1]})});
    return call("aten.dropout.default", {t}, {Argument::ofReal(0.5), Argument::ofBool(true)});
  }

  ValueId value(const std::string& name, ValueKind kind) {
    TensorMeta meta;
    meta.sizes = {6, 6};
    meta.strides = {6, 1};
    Value v;
    v.name = file_.document->intern(name);
    v.kind = kind;
    v.meta = file_.document->internMeta(meta);
    v.storage = file_.document->addStorage(meta.bytes(), {}, kind != ValueKind::activation);
    return file_.document->addValue(v);
  }

  ValueId input(const std::string& name, InputKind kind) {
    const auto id = value(name, kind == InputKind::user ? ValueKind::input : ValueKind::parameter);
    InputSpec spec;
    spec.kind = kind;
    spec.name = spec.target = name;
    spec.requiresGrad = true;
    spec.value = id;
    if (kind == InputKind::parameter) {
      auto numbers = std::make_shared<std::vector<float>>(36);
      for (std::size_t i = 0; i < 36; ++i) (*numbers)[i] = 0.1f * static_cast<float>(i % 7) - 0.2f;
      file_.weights[name] = {file_.document->meta(id), reinterpret_cast<const std::byte*>(numbers->data()), 144,
                             numbers};
    }
    file_.computation.inputs.push_back(spec);
    file_.computation.trace.inputs.push_back(id);
    return id;
  }

  BoundSymbolId bind(SymbolId symbol, std::vector<Argument> arguments, const std::vector<ValueId>& operands,
                     const std::vector<ValueId>& outputs, std::vector<std::int32_t> returns = {}) {
    BoundSymbol bound;
    bound.symbol = symbol;
    bound.pattern = file_.document->internPattern(
        {std::move(arguments), {}, static_cast<std::int32_t>(operands.size()), std::move(returns)});
    bound.parent = parent_;
    bound.name = file_.document->intern("node_" + std::to_string(file_.document->boundSymbolCount()));
    return file_.document->addBoundSymbol(bound, operands, outputs);
  }

  ValueId call(const std::string& op, std::vector<ValueId> operands, const std::vector<Argument>& more = {}) {
    std::vector<Argument> arguments;
    for (std::size_t i = 0; i < operands.size(); ++i)
      arguments.push_back(Argument::ofOperand(static_cast<std::int64_t>(i)));
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto symbol = file_.document->internSymbol(*lookupSymbol(op));
    while (arguments.size() < file_.document->symbol(symbol).arguments.size())
      arguments.push_back(Argument::ofMissing());
    const auto out = value("v" + std::to_string(file_.document->valueCount()), ValueKind::activation);
    ops_.push_back(bind(symbol, std::move(arguments), operands, {out}));
    file_.document->value(out).producer = ops_.back();
    return out;
  }

  template <class Body>
  ValueId region(const std::vector<ValueId>& arguments, Body&& body) {
    Symbol symbol;
    symbol.name = "higher_order.tag_activation_checkpoint";
    symbol.known = true;
    symbol.isHigherOrder = true;
    Subgraph graph;
    graph.name = "region";
    const auto graphId = file_.document->addSubgraph(graph);
    std::vector<Argument> list{Argument::ofSubgraph(graphId)};
    for (std::size_t i = 0; i < arguments.size(); ++i)
      list.push_back(Argument::ofOperand(static_cast<std::int64_t>(i)));
    const auto out = value("region" + std::to_string(graphId.index), ValueKind::activation);
    const auto op = bind(file_.document->internSymbol(symbol), list, arguments, {out}, {1});
    const auto outerOps = std::exchange(ops_, {});
    const auto outerParent = std::exchange(parent_, op);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      graph.inputs.push_back(value("arg" + std::to_string(i), ValueKind::activation));
    graph.outputValues = {body(graph.inputs)};
    graph.outputs = {Argument::ofOperand(0)};
    graph.ops = std::exchange(ops_, outerOps);
    parent_ = outerParent;
    file_.document->subgraph(graphId) = graph;
    ops_.push_back(op);
    return out;
  }

  ModelFile file_;
  std::vector<BoundSymbolId> ops_;
  BoundSymbolId parent_;
};

std::vector<std::string> recomputedOps(const Analysis& analysis) {
  std::vector<std::string> names;
  for (auto op : analysis.joint.ops)
    if (analysis.document->boundSymbol(op).recomputed) names.push_back(analysis.document->symbol(op).name);
  return names;
}

void expectEagersGradients(const Analysis& analysis) {
  const auto expected = runEager(analysis), actual = runSplit(analysis);
  ASSERT_EQ(actual.gradients.size(), 2u);
  for (const auto& [key, gradient] : expected.gradients) {
    test::Comparison comparison;
    comparison.add(key, actual.gradients.at(key), gradient);
    EXPECT_LE(comparison.error(), 1e-6) << key;
  }
}

// What A25 describes cannot happen: a region of the file is kept, so the values inside its last op are not saved
// either.
TEST(Checkpoint, A23_RegionsOfTheFileAreRecomputed_D1_WithTheSameDraw_D3_ToTheirLastOp) {
  const auto analysis = analyse(CheckpointModel().take());
  ASSERT_TRUE(analysis->derived()) << analysis->problems.at(0).message;
  for (const auto& problem : verify(*analysis->document, analysis->joint))
    ADD_FAILURE() << problem.place << ": " << problem.message;
  const auto again = recomputedOps(*analysis);
  EXPECT_EQ(std::count(again.begin(), again.end(), "aten.tanh.default"), 1);
  EXPECT_EQ(std::count(again.begin(), again.end(), "aten.bernoulli_.float"), 1);
  EXPECT_EQ(savedBytes(*analysis->document, analysis->joint).storages, 144)
      << "exp's own result alone: no mask, no tanh";
  expectEagersGradients(*analysis);
}

TEST(Checkpoint, A24_ResultsAreShallowCopiesThatStayOutside) {
  const auto analysis = analyse(CheckpointModel().take());
  bool copied = false;
  for (auto op : analysis->forward.ops) copied |= analysis->document->symbol(op).name == "aten.alias.default";
  EXPECT_TRUE(copied);
}

TEST(Checkpoint, D4_RegionsNest) {
  const auto analysis = analyse(CheckpointModel(true).take());
  ASSERT_TRUE(analysis->derived()) << analysis->problems.at(0).message;
  EXPECT_EQ(savedBytes(*analysis->document, analysis->joint).storages, 144);
  expectEagersGradients(*analysis);
}

TEST(Checkpoint, B15_MinCutSavesNoMoreThanTheRegionsDo) {
  DerivationRequest options;
  options.partition = minCut();
  const auto analysis = analyse(CheckpointModel().take(), options);
  EXPECT_LE(savedBytes(*analysis->document, analysis->joint).storages, 144);
  expectEagersGradients(*analysis);
}

}  // namespace
}  // namespace retrograd
