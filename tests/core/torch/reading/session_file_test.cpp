#include "core/torch/reading/session_file.h"
#include "core/torch/analysis/analyse.h"

#include "core/torch/reading/read_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/formats/zip/archive.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/checking/check.h"
#include "core/torch/judging/compare.h"
#include "core/torch/session/session.h"
#include "core/trace/print/json.h"
#include "core/trace/print/printer.h"
#include "core/trace/verifier.h"
#include "tests/core/formats/cases.h"
#include "tests/core/torch/models.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace fs = std::filesystem;

namespace retrograd::test {
namespace {

std::string model(const std::string& name) { return (data() / name / "model.pt2").string(); }

std::string saved(const Analysis& analysis, const SaveSessionOptions& options = {},
                  const std::string& name = "saved.retrograd") {
  const auto path = writeTemporary(name, "x");
  saveSession(analysis, path, options);
  return path;
}

/// The model of a session file under another request.
std::shared_ptr<const Analysis> derivedAgain(const std::string& path, const DerivationRequest& request) {
  const auto stored = loadSession(path);
  return deriveAnew(*stored, overlaid(*stored, request));
}

std::vector<const Trace*> tracesOf(const Analysis& analysis) {
  return {&analysis.computation().trace, &analysis.joint, &analysis.forward, &analysis.backward};
}

std::string printed(const Analysis& analysis) {
  std::string text;
  for (const auto* trace : tracesOf(analysis)) text += printTrace(*analysis.document, *trace);
  TraceDocumentInfo info{analysis.file.path, analysis.file.torchVersion, &analysis.computation(),
                         &analysis.forward,  analysis.problems,          analysis.inputSource};
  return text + dumpJson(traceDocument(*analysis.document, tracesOf(analysis), info), 1);
}

/// Without ids and names, which a second derivation on one document cannot give again.
std::string ops(const Analysis& analysis) {
  std::string text;
  for (const auto* trace : tracesOf(analysis)) text += opNames(analysis, *trace) + "\n";
  return text;
}

void expectSame(const TensorMap& a, const TensorMap& b) {
  EXPECT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_TRUE(identical(tensor, b.at(name))) << name;
  }
}

void expectSameRun(const Analysis& a, const Analysis& b) {
  const auto first = runJoint(a), second = runJoint(b);
  expectSame(first.gradients, second.gradients);
  expectSame(first.mutated, second.mutated);
  ASSERT_EQ(first.outputs.size(), second.outputs.size());
  for (std::size_t i = 0; i < first.outputs.size(); ++i) {
    ASSERT_EQ(first.outputs[i].has_value(), second.outputs[i].has_value());
    if (first.outputs[i]) EXPECT_TRUE(identical(*first.outputs[i], *second.outputs[i])) << "output " << i;
  }
}

class SavedModels : public testing::TestWithParam<std::string> {};

TEST_P(SavedModels, openAsTheyWere) {
  for (const bool embed : {false, true}) {
    const auto before = openModel(GetParam());
    const auto after = loadSession(saved(*before, {.embed = embed}));
    EXPECT_EQ(printed(*before), printed(*after));
    for (const auto* trace : tracesOf(*after))
      for (const auto& problem : verify(*after->document, *trace))
        ADD_FAILURE() << problem.place << ": " << problem.message;
    EXPECT_EQ(before->derived(), after->derived());
    if (embed && after->derived()) expectSameRun(*before, *after);
  }
}

TEST_P(SavedModels, canBeDerivedAgain) {
  const auto fresh = openModel(GetParam());
  const auto stored = loadSession(saved(*fresh));
  const auto again = deriveAnew(*stored, optionsFromModel(*stored));
  ASSERT_EQ(fresh->derived(), again->derived());
  if (!fresh->derived()) GTEST_SKIP() << "LibTorch refuses its derivative";
  EXPECT_EQ(ops(*fresh), ops(*again));
  expectSameRun(*fresh, *again);
}

std::string testName(const testing::TestParamInfo<std::string>& info) {
  auto text = std::to_string(info.index) + "_" + fs::path(info.param).parent_path().filename().string() + "_" +
              fs::path(info.param).stem().string();
  std::replace_if(text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return text;
}
INSTANTIATE_TEST_SUITE_P(OnDisk, SavedModels, testing::ValuesIn(everyModel()), testName);

TEST(SavedSession, keepsRecomputationAndOptions) {
  DerivationRequest options;
  options.seed = 11;
  options.gradInputs = std::vector<std::string>{};
  options.partition = {PartitionOptions::minCut, {}, {"all"}};
  const auto before = openModel(model("dropout_train"), options);
  const auto after = loadSession(saved(*before));
  EXPECT_EQ(printed(*before), printed(*after));
  EXPECT_EQ(after->request.partition, options.partition);
  EXPECT_EQ(after->request.gradInputs, options.gradInputs);
  EXPECT_EQ(after->request.seed, 11u);
  expectSameRun(*before, *after);  // draws are replayed as before
}

TEST(SavedSession, keepsGradientsOfGradients) {
  for (const auto kind : {TraceKind::joint, TraceKind::backward})
    for (const bool embed : {false, true}) {
      DerivationRequest options;
      options.order = 2;
      options.again = kind;
      const auto before = openModel(model("mlp"), options);
      const auto after = loadSession(saved(*before, {.embed = embed}));
      EXPECT_EQ(printed(*before), printed(*after));
      ASSERT_TRUE(after->differentiated);
      EXPECT_EQ(printed(*before->differentiated), printed(*after->differentiated));
      EXPECT_EQ(differentiatedKind(*after), kind);
      expectSameRun(*before, *after);
      expectSameRun(*before->differentiated, *after->differentiated);
      const auto again = deriveAnew(*after, optionsFromModel(*after));
      EXPECT_EQ(ops(*before), ops(*again));
      EXPECT_EQ(runJoint(*before).gradients.size(), runJoint(*again).gradients.size());
    }
  DerivationRequest third;
  third.order = 3;
  const auto before = openModel(model("mlp"), third);
  const auto after = loadSession(saved(*before));
  EXPECT_EQ(orderOf(*after), 3);
  EXPECT_EQ(printed(*before), printed(*after));
}

TEST(SavedSession, keepsInputsThatWereGiven) {
  DerivationRequest options;
  const auto sample = openModel(model("mlp"));
  const auto like = sample->request.inputs.at("x").meta;
  auto numbers = std::make_shared<std::vector<float>>(static_cast<std::size_t>(like.elements()), 0.25f);
  options.inputs["x"] = {like, reinterpret_cast<const std::byte*>(numbers->data()), numbers->size() * 4, numbers};
  const auto before = openModel(model("mlp"), options);
  const auto after = loadSession(saved(*before));
  expectSame(before->request.inputs, after->request.inputs);
  EXPECT_EQ(after->inputSource, std::vector<std::string>{"x: given"});
  expectSameRun(*before, *after);
}

TEST(SavedSession, keepsMarksThroughLoadingSavingAndDerivingAgain) {
  const std::map<std::string, std::string> marks{{"breakpoints", R"([ {"op": "linear", "role": 1} ])"},
                                                 {"notes", R"({"7": "why?"})"}};
  const auto own = [](std::map<std::string, std::string> all) {
    EXPECT_EQ(all.erase("threads"), 1u);  // next to the user's: with how many threads it was saved
    return all;
  };
  auto path = saved(*openModel(model("mlp")), {.marks = marks});
  auto analysis = loadSession(path);
  EXPECT_EQ(own(analysis->marks), marks);
  EXPECT_EQ(analysis->sessionPath, path);
  path = saved(*analysis, {}, "again.retrograd");
  EXPECT_EQ(own(loadSession(path)->marks), marks);
  DerivationRequest options;
  options.seed = 3;
  EXPECT_EQ(own(derivedAgain(path, options)->marks), marks);
}

TEST(SavedSession, keepsTheValuesOfARun) {
  const auto before = openModel(model("inplace_views"));
  auto after = loadSession(saved(*before, {.values = true}));
  Session session(before);
  std::size_t compared = 0;
  while (session.position() < session.size()) {
    const auto op = session.opAt(session.position());
    session.step();
    for (auto output : before->document->outputs(op)) {
      const auto it = after->values.find(output);
      if (!output || it == after->values.end() || !session.state(output).present) continue;
      EXPECT_TRUE(identical(it->second, session.contents(output))) << before->document->displayName(output);
      ++compared;
    }
  }
  EXPECT_GT(compared, 30u);
  after.reset();  // a file that is open is not written over
  EXPECT_TRUE(loadSession(saved(*before))->values.empty());
}

TEST(SavedSession, derivingAgainUsesWhatIsStoredUnlessAskedForMore) {
  DerivationRequest options;
  options.partition.recompute = {"all"};
  const auto path = saved(*openModel(model("mlp"), options));
  EXPECT_EQ(loadSession(path)->request.partition, options.partition);

  DerivationRequest other;
  other.gradInputs = std::vector<std::string>{};
  const auto changed = derivedAgain(path, other);
  EXPECT_EQ(changed->request.partition, options.partition);  // what is not asked for stays
  ASSERT_FALSE(changed->problems.empty());
  EXPECT_NE(changed->problems.back().message.find("derived again"), std::string::npos);
  other.partition = options.partition;
  const auto fresh = openModel(model("mlp"), other);
  EXPECT_EQ(ops(*fresh), ops(*changed));  // no trace of the gradient that the stored derivation had
  expectSame(runJoint(*fresh).gradients, runJoint(*changed).gradients);
}

TEST(SavedSession, eachThingThatIsAskedForTakesTheSavedOnesPlace) {
  using strings = std::vector<std::string>;
  const auto path = saved(*openModel(model("mlp")));
  const auto stored = loadSession(path);
  const auto asked = [&](auto change) {
    DerivationRequest request;
    change(request);
    return derivedAgain(path, request)->request;
  };
  const auto shape = stored->request.inputs.at("x").meta.sizes;
  const auto drawn = asked([&](auto& r) { r.shapes["x"] = {shape, {}}; });
  EXPECT_FALSE(identical(drawn.inputs.at("x"), stored->request.inputs.at("x")));
  EXPECT_EQ(asked([](auto& r) { r.seed = 3; }).seed, 3u);
  EXPECT_EQ(asked([](auto& r) { r.partition.recompute = {"all"}; }).partition.recompute, strings{"all"});
  EXPECT_EQ(asked([](auto& r) { r.precision = DType::f64; }).precision, DType::f64);
  EXPECT_EQ(asked([](auto& r) { r.gradInputs = strings{}; }).gradInputs, strings{});
  const auto refusal = [&](auto change) {
    try {
      asked(change);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_NE(refusal([](auto& r) { r.data.compile = "0/0"; }).find("one compile"), std::string::npos);
  EXPECT_NE(refusal([](auto& r) { r.data.rank = 3; }).find("one rank"), std::string::npos);
  EXPECT_NE(refusal([&](auto& r) { r.shapes["z"] = {shape, {}}; }).find("no such input"), std::string::npos);
  EXPECT_NE(refusal([](auto& r) { r.numbers["z"] = Argument::ofInt(3); }).find("no such input"), std::string::npos);
  EXPECT_NE(refusal([](auto& r) { r.numbers["x"] = Argument::ofInt(3); }).find("not a number"), std::string::npos);
}

TEST(SavedSession, derivingAgainForgetsWhatWasDifferentiated) {
  ModelBuilder m;
  const auto x = m.input("x", {3}), w = m.parameter("w", {3});
  for (auto output : {m.op("aten.sin.default", {x}), m.op("aten.mul.Tensor", {x, w})}) {
    auto& value = m.document().value(output);  // as a file's reader leaves it
    value.meta = m.document().value(x).meta;
    value.storage = m.document().addStorage(12, output);
    m.output(output);
  }
  const auto path = saved(*m.analyse(), {.embed = true});
  DerivationRequest none;
  none.gradInputs = std::vector<std::string>{};
  const auto again = derivedAgain(path, none);
  EXPECT_FALSE(again->joint.inputs[2]);  // sin(x) has no gradient now, so no cotangent flows in
  EXPECT_TRUE(again->joint.inputs[3]);
}

TEST(SavedSession, checksLikeItsModel) {
  const auto path = saved(*openModel(model("batchnorm_train")));
  CheckOptions options;
  EXPECT_EQ(test::verdictOf(checkModel(path, options)), Verdict::pass);
  options.reference = (data() / "batchnorm_train/ref.safetensors").string();  // in double, too
  EXPECT_EQ(test::verdictOf(checkModel(path, options)), Verdict::pass);
}

TEST(SavedSession, aComputationWithUnknownOpsComesBackUnderived) {
  auto file = readModel(model("mlp"));
  Symbol unknown;
  unknown.name = "mylib.op.default";
  auto& document = *file.document;
  const auto first = file.computation.trace.ops[1];
  document.boundSymbol(first).symbol = document.internSymbol(unknown);
  document.boundSymbol(first).effects |= 4;  // opaque
  file.problems.push_back({Problem::Severity::error, "unknown op mylib.op.default", "", first.index});
  const auto before = analyse(std::move(file));
  const auto after = loadSession(saved(*before));
  EXPECT_FALSE(after->derived());
  EXPECT_EQ(printTrace(*before->document, before->computation().trace),
            printTrace(*after->document, after->computation().trace));
}

/// A copy of a model in a folder of its own, which can be moved and changed.
struct Copy {
  fs::path folder, model, session;
  explicit Copy(const std::string& name) : folder(fs::path(writeTemporary(name + ".txt", "x")).parent_path() / name) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    model = folder / "model.pt2";
    session = folder / "model.retrograd";
    fs::copy_file(test::model("mlp"), model);
    saveSession(*openModel(model.string()), session.string());
  }
  std::string failure() const {
    try {
      loadSession(session.string());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::badInput);
      return e.what();
    }
    return "nothing failed";
  }
};

TEST(SavedSession, findsItsModelWhenBothMove) {
  Copy copy("moved");
  const auto elsewhere = copy.folder.parent_path() / "moved_elsewhere";
  fs::remove_all(elsewhere);
  fs::rename(copy.folder, elsewhere);
  const auto analysis = loadSession((elsewhere / "model.retrograd").string());
  EXPECT_EQ(analysis->file.path, (elsewhere / "model.pt2").string());
}

TEST(SavedSession, findsItsModelWhereItWas) {
  Copy copy("stays");
  const auto other = writeTemporary("session_alone.retrograd", contentOf(copy.session));
  EXPECT_EQ(loadSession(other)->file.path, copy.model.string());
}

TEST(SavedSession, aMissingModelIsNamedWithARemedy) {
  Copy copy("missing");
  fs::remove(copy.model);
  const auto failure = copy.failure();
  EXPECT_NE(failure.find(copy.model.string()), std::string::npos) << failure;
  EXPECT_NE(failure.find("is missing"), std::string::npos) << failure;
  EXPECT_NE(failure.find("--embed"), std::string::npos) << failure;
}

TEST(SavedSession, aChangedModelIsRefused) {
  Copy copy("changed");
  const auto analysis = loadSession(copy.session.string());
  fs::remove(copy.model);  // not written over: an open analysis maps it
  fs::copy_file(test::model("dropout_train"), copy.model);
  EXPECT_NE(copy.failure().find("was changed"), std::string::npos);
  EXPECT_THROW(saveSession(*analysis, copy.session.string()), Error);
  EXPECT_NO_THROW(saveSession(*analysis, copy.session.string(), {.embed = true}));
  expectSameRun(*analysis, *loadSession(copy.session.string()));
}

TEST(SavedSession, whatWasEmbeddedNeedsNoModel) {
  Copy copy("embedded");
  saveSession(*openModel(copy.model.string()), copy.session.string(), {.embed = true});
  fs::remove(copy.model);
  expectSameRun(*openModel(model("mlp")), *loadSession(copy.session.string()));
}

TEST(SavedSession, whatCouldNotBeReadIsNotWritten) {
  ModelBuilder m;
  m.output(m.op("aten.sin.default", {m.input("x", {2})}));
  const auto analysis = std::const_pointer_cast<Analysis>(m.analyse());
  std::swap(analysis->joint.ops.front(), analysis->joint.ops.back());  // reads what is not made yet
  const auto path = writeTemporary("unreadable.retrograd", "as it was");
  EXPECT_THROW(saveSession(*analysis, path, {.embed = true}), Error);
  EXPECT_EQ(contentOf(path), "as it was");
}

TEST(SavedSession, anOpThatNoFileMayNameIsNotSaved) {
  auto analysis = std::const_pointer_cast<Analysis>(openModel(model("mlp")));
  Symbol denied;
  denied.name = "aten.from_file.default";
  denied.schema = "aten::from_file(str filename) -> Tensor";
  denied.known = true;
  auto& document = *analysis->file.document;
  document.boundSymbol(analysis->joint.ops.back()).symbol = document.internSymbol(denied);
  try {
    saveSession(*analysis, writeTemporary("denied.retrograd", "x"), {.embed = true});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::unsupportedOp);
    EXPECT_NE(std::string(e.what()).find("from_file"), std::string::npos);
  }
}

/// A file that an earlier version wrote: format 1 keeps opening.
TEST(SavedSession, filesOfFormatOneOpen) {
  const auto path = (fs::path(sourcePath("tests/data/sessions/mlp_format1.retrograd"))).string();
  const auto analysis = loadSession(path);
  EXPECT_EQ(analysis->marks,
            (std::map<std::string, std::string>{{"breakpoints", R"([{"op":"linear","role":"gradient"}])"}}));
  EXPECT_FALSE(analysis->values.empty());
  EXPECT_EQ(analysis->document->value(analysis->joint.inputs[0]).kind, ValueKind::parameter);
  EXPECT_EQ(analysis->document->value(analysis->joint.inputs.back()).kind, ValueKind::cotangent);
  EXPECT_EQ(analysis->document->boundSymbol(analysis->joint.ops.back()).origin.role, Role::gradient);
  expectSameRun(*openModel(model("mlp")), *analysis);
}

}  // namespace
}  // namespace retrograd::test
