// Dynamic shapes: sizes stay symbolic in every trace, and what is listed for some sizes is what runs for others.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "core/derivation/sizes.h"
#include "core/formats/read/read_file.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/checking/check.h"
#include "core/torch/judging/reference.h"
#include "core/trace/print/printer.h"
#include "core/trace/verifier.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

std::string file(const std::string& name) { return sourcePath("tests/data/dynamic/") + name; }
std::string reference(const std::string& name) {
  return std::filesystem::path(file(name)).replace_filename("ref.safetensors").string();
}

std::shared_ptr<const Analysis> openAsExported(const std::string& name, const PartitionOptions& partition = {}) {
  DerivationRequest options;
  options.partition = partition;
  return openModel(file(name), options);
}
std::shared_ptr<const Analysis> openAsReference(const std::string& name, const PartitionOptions& partition = {}) {
  auto model = readModelFile(file(name), lookupSymbol);
  auto options = requestFor(readReference(reference(name)), model);
  options.partition = partition;
  return analyse(std::move(model), options);
}

/// A tensor of ones or, for integers, zeros.
TensorData tensorOf(std::vector<std::int64_t> sizes, DType dtype = DType::f32) {
  TensorData tensor;
  tensor.meta.dtype = dtype;
  tensor.meta.strides = contiguousStrides(sizes);
  tensor.meta.sizes = std::move(sizes);
  const auto bytes = static_cast<std::size_t>(tensor.meta.bytes());
  auto memory = std::make_shared<std::vector<std::byte>>(std::max<std::size_t>(bytes, 8));
  if (dtype == DType::f32) std::fill_n(reinterpret_cast<float*>(memory->data()), bytes / sizeof(float), 1.0f);
  tensor.data = memory->data();
  tensor.bytes = bytes;
  tensor.owner = memory;
  return tensor;
}

std::string failureWith(const std::string& name, const TensorMap& inputs) {
  DerivationRequest options;
  options.inputs = inputs;
  try {
    openModel(file(name), options);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badUse) << e.what();
    return e.what();
  }
  return "nothing failed";
}

void expectContains(const std::string& text, std::initializer_list<std::string> parts) {
  for (const auto& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is missing in: " << text;
}

PartitionOptions recomputingAll() { return {PartitionOptions::defaultKind, {}, {"all"}}; }
PartitionOptions minCut() { return {PartitionOptions::minCut, {}, {}}; }

const char* const generic[] = {"attention/model.pt2", "convolution/model.pt2", "shapes/model.pt2",    "shapes/core.pt2",
                               "loss/model.pt2",      "halves/model.pt2",      "statistics/model.pt2"};
const char* const special[] = {"selection/model.pt2", "recurrence/model.pt2"};

std::string testName(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

struct DynamicFile : testing::TestWithParam<const char*> {
  static void check(const PartitionOptions& partition) {
    CheckOptions options;
    options.partition = partition;
    options.reference = reference(GetParam());
    const auto report = checkModel(file(GetParam()), options);
    EXPECT_EQ(test::verdictOf(report), Verdict::pass) << decide(report).reason;
    for (const auto& note : report.notes) EXPECT_EQ(note.find("not compared"), std::string::npos) << note;
  }
};

TEST_P(DynamicFile, runsWithOtherSizesThanTheExportedOnes) { check({}); }
TEST_P(DynamicFile, runsWithOtherSizesAndAllRecomputed) { check(recomputingAll()); }
TEST_P(DynamicFile, runsWithOtherSizesAndMinCut) { check(minCut()); }
INSTANTIATE_TEST_SUITE_P(OnDisk, DynamicFile, testing::ValuesIn(generic), testName);
INSTANTIATE_TEST_SUITE_P(DataOrKernelDecide, DynamicFile, testing::ValuesIn(special), testName);

/// Calls as printed, and types without their hints.
std::vector<std::string> listing(const Analysis& analysis, const Trace& trace) {
  std::vector<std::string> lines;
  const auto typed = [&](ValueId value) {
    std::string text = analysis.document->displayName(value) + ": ";
    return analysis.document->isTensor(value) ? text + symbolicShape(analysis.document->meta(value)) : text;
  };
  for (auto input : trace.inputs) lines.push_back(input ? typed(input) : "None");
  for (auto op : trace.ops) {
    lines.push_back(printCall(*analysis.document, op));
    for (auto output : analysis.document->outputs(op))
      if (output) lines.back() += "  # " + typed(output);
  }
  return lines;
}

struct GenericFile : testing::TestWithParam<const char*> {
  static void expectSameListings(const PartitionOptions& partition) {
    const auto exported = openAsExported(GetParam(), partition), other = openAsReference(GetParam(), partition);
    EXPECT_NE(exported->document->sizeHints(), other->document->sizeHints());
    for (const auto* analysis : {exported.get(), other.get()})
      for (const auto& problem : analysis->problems)
        if (problem.message.find("recomputed") == std::string::npos)
          ADD_FAILURE() << problem.place << ": " << problem.message;
    for (const auto* trace : {&other->joint, &other->forward, &other->backward})
      for (const auto& problem : verify(*other->document, *trace))
        ADD_FAILURE() << problem.place << ": " << problem.message;
    EXPECT_EQ(listing(*exported, exported->joint), listing(*other, other->joint));
    EXPECT_EQ(listing(*exported, exported->forward), listing(*other, other->forward));
    EXPECT_EQ(listing(*exported, exported->backward), listing(*other, other->backward));
  }
};

// Holds test_cache_symbolic_values_grad_matmul, test_cache_symbolic_values_grad_unsqueeze.
// Derived for other sizes, each op, shape and literal comes out as the same expression: nothing in a listing is tied to
// the hints.
TEST_P(GenericFile, listsTheSameForAllSizes) { expectSameListings({}); }
TEST_P(GenericFile, listsTheSameForAllSizesWithAllRecomputed) { expectSameListings(recomputingAll()); }

/// Expressions of all numbers in a literal, and the numbers.
void eachNumber(const Argument& argument, const std::function<void(const std::string&, double)>& visit) {
  if (argument.kind == Argument::Kind::integer || argument.kind == Argument::Kind::real)
    visit(argument.text,
          argument.kind == Argument::Kind::integer ? static_cast<double>(argument.integer) : argument.real);
  for (const auto& item : argument.items) eachNumber(item, visit);
}

TEST_P(GenericFile, everyExpressionComesToItsHint) {
  std::size_t literals = 0, sizes = 0;
  for (const auto& analysis : {openAsExported(GetParam()), openAsReference(GetParam())}) {
    const auto& document = *analysis->document;
    const auto hints = document.sizeHints();
    for (const auto* trace :
         {&analysis->computation().trace, &analysis->joint, &analysis->forward, &analysis->backward}) {
      for (auto op : trace->ops) {
        for (const auto& argument : document.pattern(document.boundSymbol(op).pattern).arguments)
          eachNumber(argument, [&](const std::string& text, double number) {
            if (text.empty() || text.find('/') != std::string::npos) return;
            EXPECT_EQ(static_cast<double>(evaluateSize(text, hints).value_or(-1)), number) << text;
            ++literals;
          });
        for (auto output : document.outputs(op)) {
          if (!output || !document.isTensor(output)) continue;
          const auto& meta = document.meta(output);
          const auto same = metaAt(meta, hints);
          EXPECT_EQ(same.sizes, meta.sizes);
          EXPECT_EQ(same.strides, meta.strides);
          EXPECT_EQ(same.offset, meta.offset);
          sizes += meta.symbols.size();
        }
      }
    }
  }
  EXPECT_GT(sizes, 0u);
  if (GetParam() == std::string("attention/model.pt2") || GetParam() == std::string("shapes/model.pt2"))
    EXPECT_GT(literals, 20u);
}

INSTANTIATE_TEST_SUITE_P(OnDisk, GenericFile, testing::ValuesIn(generic), testName);

std::string printed(const Analysis& analysis, const Trace& trace) {
  return printTrace(*analysis.document, trace, {false, false});
}

TEST(DynamicShapes, literalsAndTypesNameTheSymbols) {
  const auto analysis = openAsExported("attention/model.pt2");
  expectContains(printed(*analysis, analysis->forward),
                 {"    # s77: 3, symbolic size in [2, 64]\n    # s27: 5, symbolic size in [2, 128]\n",
                  "(x, [s27*s77, 8])", "\"cpu f32[s27*s77=15, 8]\"", "[s77, s27, 2, 4])", "[2*s77, s27, 4])"});
  expectContains(printed(*analysis, analysis->backward),
                 {"    # s77: 3, symbolic size in [2, 64]\n", "[s77, s27, 8])", "\"cpu f32[2*s77=6, s27=5, s27=5]\"",
                  ".div.Scalar(", ", 8*s27*s77)"});
}

TEST(DynamicShapes, theListedHintsAreThoseOfTheInputs) {
  const auto analysis = openAsReference("attention/model.pt2");
  for (const auto* trace :
       {&analysis->computation().trace, &analysis->joint, &analysis->forward, &analysis->backward}) {
    const auto text = printed(*analysis, *trace);
    expectContains(text, {"# s77: 4, symbolic size in [2, 64]", "# s27: 7, symbolic size in [2, 128]", "s77=4, s27=7"});
    EXPECT_EQ(text.find("s77=3"), std::string::npos);
    EXPECT_EQ(text.find("s27=5"), std::string::npos);
  }
}

TEST(DynamicShapes, aNumberAmongTheInputsIsASizeToo) {
  const auto analysis = openAsReference("halves/model.pt2");
  const auto text = printed(*analysis, analysis->forward);
  expectContains(text, {"# n: \"s86=7\"", "# s39: 11, symbolic size in [3, 40]", "# s86: 7, symbolic size in [0, 40]",
                        "x: \"cpu f32[2*s39=22, 4]\"", "0, 0, s86)"});
}

// Holds B7, test_grad_transform_saved_for_backward_proxy, test_update_forward_with_new_saved_for_backward_numberproxy.
// A number that forward and backward both need is a literal with its expression on both sides: nothing but tensors is
// saved, and the number is not baked in.
TEST(DynamicShapes, B7_NumbersAreLiteralsOnBothSidesAndNotSaved) {
  for (const auto& analysis : {openAsExported("halves/model.pt2"), openAsReference("halves/model.pt2")}) {
    const auto& saved = analysis->backward.inputs;
    ASSERT_GT(analysis->backward.savedCount, 0u);
    for (std::size_t i = 0; i < analysis->backward.savedCount; ++i) EXPECT_TRUE(analysis->document->isTensor(saved[i]));
    expectContains(printed(*analysis, analysis->forward), {"aten.mul.Tensor(narrow, s86)"});
    expectContains(
        printed(*analysis, analysis->backward),
        {"aten.mul.Tensor(cotangent_1, s86)", "# s86: " + std::to_string(analysis->document->sizeHints().at("s86"))});
  }
}

TEST(DynamicShapes, varianceDividesByAnExpression) {
  const auto analysis = openAsExported("statistics/model.pt2");
  expectContains(printed(*analysis, analysis->backward), {"2/(s77 - 1)", "2/(4*s77 - 1)"});
}

TEST(DynamicShapes, whereDataDecideNumbersStayAndANoteShows) {
  const auto analysis = openAsExported("selection/model.pt2");
  ASSERT_EQ(analysis->problems.size(), 1u);
  EXPECT_EQ(analysis->problems[0].severity, Problem::Severity::note);
  EXPECT_NE(analysis->problems[0].message.find("data decide"), std::string::npos);
  EXPECT_TRUE(analysis->derived());
}

TEST(DynamicShapes, whatHasNoExpressionIsReportedAndTheRestIsSymbolic) {
  const auto analysis = openAsExported("recurrence/model.pt2");
  ASSERT_EQ(analysis->problems.size(), 1u);
  expectContains(analysis->problems[0].message, {"size ", "no expression"});
  EXPECT_EQ(analysis->problems[0].place, "node lstm");
  expectContains(printed(*analysis, analysis->backward), {"s77=3, 5, 3]"});
}

TEST(DynamicShapes, aSizeOutOfRangeIsRefusedByName) {
  expectContains(failureWith("attention/model.pt2", {{"x", tensorOf({65, 5, 8})}}),
                 {"input x: ", "dimension 0 is 65", "s77 is in [2, 64]"});
  expectContains(failureWith("attention/model.pt2", {{"x", tensorOf({4, 1, 8})}}),
                 {"input x: ", "dimension 1 is 1", "s27 is in [2, 128]"});
  expectContains(failureWith("halves/model.pt2", {{"x", tensorOf({4, 4})}}),
                 {"input x: ", "dimension 0 is 4", "s39 is in [3, 40]", "2*s39 = 4 asks for s39 = 2"});
  expectContains(failureWith("attention/model.pt2", {{"x", tensorOf({4, 5, 9})}}),
                 {"input x: ", "[4, 5, 9]", "[s77, s27, 8]"});
  expectContains(failureWith("attention/model.pt2", {{"x", tensorOf({4, 8})}}),
                 {"input x: ", "[4, 8]", "[s77, s27, 8]"});
}

TEST(DynamicShapes, aSizeThatNoSymbolGivesIsRefused) {
  expectContains(failureWith("halves/model.pt2", {{"x", tensorOf({13, 4})}}),
                 {"input x: ", "dimension 0 is 13", "no s39", "2*s39", "in [3, 40]"});
}

TEST(DynamicShapes, inputsThatContradictOneAnotherAreRefusedByName) {
  expectContains(failureWith("loss/model.pt2", {{"x", tensorOf({9, 8})}, {"target", tensorOf({8}, DType::i64)}}),
                 {"input target: ", "dimension 0 is 8", "s48 is 9", "dimension 0 of input x", "in [2, 512]"});
  expectContains(failureWith("loss/model.pt2", {{"x", tensorOf({9, 8})}}),
                 {"input target", "the file's sample: give this input too", "[6]", "[s48]", "[9]"});
}

TEST(DynamicShapes, aConditionOfTheExportIsKept) {
  expectContains(failureWith("statistics/model.pt2", {{"x", tensorOf({2, 4})}}),
                 {"input x: ", "dimension 0 is 2", "!= 1", "s77 = 2"});
}

/// x [n, 4] times [4, 50] times [50, 40]: which product comes first depends on n, and LibTorch decides as it traces.
TEST(DynamicShapes, whatIsTracedDifferentlyForOtherSizesIsReportedAndTheRestIsSymbolic) {
  ModelBuilder m;
  const auto x = m.input("x", {3, 4}), w = m.parameter("w", {4, 50}), v = m.parameter("v", {50, 40});
  auto& document = m.document();
  auto meta = document.meta(x);
  meta.symbols = {"n", ""};
  document.value(x).meta = document.internMeta(meta);
  document.setSizeSymbols({{"n", 3, 2, {}}});
  const auto product = m.op("aten.linalg_multi_dot.default", {std::vector{m.op("aten.sin.default", {x}), w, v}});
  m.output(m.op("aten.exp.default", {product}));
  const auto analysis = m.analyse();
  ASSERT_TRUE(analysis->derived());
  ASSERT_EQ(analysis->problems.size(), 2u);
  for (const auto& problem : analysis->problems) {
    EXPECT_EQ(problem.severity, Problem::Severity::note);
    expectContains(problem.place, {"aten.linalg_multi_dot.default"});
    expectContains(problem.message, {"for other sizes (n = ", "takes other ops"});
  }
  expectContains(printed(*analysis, analysis->forward),
                 {"aten.sin.default(x)  # t3: \"cpu f32[n=3, 4]\"", "# t6: \"cpu f32[3, 50]\"",
                  "view.default(t7, [3, 40])  # t4: \"cpu f32[n=3, 40]\"", "# t5: \"cpu f32[n=3, 40]\""});
}

TEST(DynamicShapes, fixedShapesHaveNoSymbols) {
  const auto analysis = openModel(sourcePath("tests/data/models/mlp/model.pt2"));
  EXPECT_TRUE(analysis->document->sizeSymbols().empty());
  EXPECT_EQ(printed(*analysis, analysis->joint).find("symbolic"), std::string::npos);
  for (const auto& pass : analysis->joint.history) EXPECT_NE(pass.pass, "Symbolic sizes");
}

}  // namespace
}  // namespace retrograd::test
