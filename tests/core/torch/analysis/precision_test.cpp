// A model moved to another precision: what goes along and what stays.
#include "core/derivation/precision.h"
#include "core/torch/analysis/analyse.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <limits>

#include "core/torch/analysis/cast_model.h"
#include "core/torch/experiments/compare_runs.h"
#include "core/torch/experiments/counterpart.h"
#include "core/torch/reading/session_file.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

const std::string root = sourcePath("");

std::shared_ptr<const Analysis> counterpart(const std::shared_ptr<const Analysis>& a, DType precision) {
  Counterpart other;
  other.precision = precision;
  return openCounterpart(*a, other);
}

std::shared_ptr<const Analysis> moved(ModelBuilder& m, DType precision) {
  DerivationRequest options;
  options.precision = precision;
  return m.analyse(options);
}

std::string messageOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

TEST(Precision, MovesParametersInputsAndLiterals) {
  for (const auto precision : precisions()) {
    SCOPED_TRACE(torchName(precision));
    ModelBuilder m;
    const auto x = m.input("x", {3, 4}), w = m.parameter("w", {4});
    const auto n = m.input("n", {3, 4}, DType::i64);
    const auto whole = m.op("aten._to_copy.default", {m.op("aten.mul.Tensor", {x, w}), Argument::ofDType(DType::f32)});
    m.output(m.op("aten.add.Tensor", {whole, m.op("aten._to_copy.default", {n, Argument::ofDType(DType::f32)})}));
    const auto analysis = moved(m, precision);
    ASSERT_TRUE(analysis->derived());
    const auto& document = *analysis->document;
    EXPECT_EQ(analysis->request.inputs.at("x").meta.dtype, precision);
    EXPECT_EQ(analysis->request.inputs.at("n").meta.dtype, DType::i64);
    EXPECT_EQ(analysis->file.weights.at("w").meta.dtype, precision);
    for (auto op : analysis->joint.ops)
      for (auto output : document.outputs(op))
        if (output && document.isTensor(output))
          EXPECT_EQ(document.meta(output).dtype, precision) << document.opName(op);
    EXPECT_EQ(analysis->request.precision, precision);
    EXPECT_EQ(ownPrecision(analysis->file), precision);
  }
}

TEST(Precision, LeavesWhatTheModelHasInAnother) {
  ModelBuilder m;
  const auto x = m.input("x", {4}), w = m.parameter("w", {4});
  const auto half = m.op("aten._to_copy.default", {m.op("aten.mul.Tensor", {x, w}), Argument::ofDType(DType::bf16)});
  m.output(m.op("aten._to_copy.default", {m.op("aten.sin.default", {half}), Argument::ofDType(DType::f32)}));
  const auto analysis = moved(m, DType::f64);
  const auto& document = *analysis->document;
  std::vector<DType> made;
  for (auto op : analysis->forward.ops) made.push_back(document.meta(document.outputs(op)[0]).dtype);
  EXPECT_EQ(made, (std::vector{DType::f64, DType::bf16, DType::bf16, DType::f64}));
}

TEST(Precision, NamesWhatAnOpMakesOfNothing) {
  const auto path = testing::TempDir() + "ones.txt";
  std::ofstream(path) << R"(import torch

def computation(x):
    # x: "cpu f32[3]"
    a = torch.ops.aten.ones.default([3])  # a: "cpu f32[3]"
    b = torch.ops.aten.mul.Tensor(x, a)  # b: "cpu f32[3]"
    return (b,)
)";
  DerivationRequest options;
  options.precision = DType::f64;
  const auto analysis = openModel(path, options);
  ASSERT_EQ(analysis->forward.ops.size(), 2u);
  for (auto op : analysis->forward.ops)
    EXPECT_EQ(analysis->document->meta(analysis->document->outputs(op)[0]).dtype, DType::f64)
        << analysis->document->opName(op);
}

TEST(Precision, ALimitBecomesTheNewLimit) {
  const double least = -double(std::numeric_limits<float>::max());
  for (const auto& [precision, expected] :
       {std::pair(DType::f16, -65504.0), {DType::bf16, -0x1.fep127}, {DType::f64, least}}) {
    ModelBuilder m;
    const auto x = m.input("x", {3}), w = m.parameter("w", {3});
    m.output(
        m.op("aten.masked_fill.Scalar", {m.op("aten.mul.Tensor", {x, w}), m.op("aten.gt.Scalar", {x, 0.0}), least}));
    const auto analysis = moved(m, precision);
    ASSERT_TRUE(analysis->derived());
    const auto& document = *analysis->document;
    bool found = false;
    for (auto op : analysis->forward.ops)
      for (const auto& argument : document.pattern(document.boundSymbol(op).pattern).arguments)
        if (argument.kind == Argument::Kind::real && argument.real < -1) {
          EXPECT_EQ(argument.real, expected) << torchName(precision);
          found = true;
        }
    EXPECT_TRUE(found);
  }
}

TEST(Precision, ComplexNumbersGoWithTheirParts) {
  EXPECT_EQ(castDType(DType::c64, DType::f32, DType::f64), DType::c128);
  EXPECT_EQ(castDType(DType::c64, DType::f32, DType::bf16), DType::c64);
  EXPECT_EQ(castDType(DType::c128, DType::f64, DType::f32), DType::c64);
  EXPECT_EQ(castDType(DType::c64, DType::f64, DType::f32), DType::c64);
  EXPECT_EQ(castDType(DType::i64, DType::f32, DType::f64), DType::i64);
  EXPECT_EQ(castDType(DType::f16, DType::f32, DType::f64), DType::f16);
}

TEST(Precision, TiedWeightsStayTied) {
  const auto analysis = openModel(root + "tests/data/models/mlp/model.pt2");
  auto file = analysis->file;
  const auto first = file.weights.begin()->second;
  file.weights["again"] = first;
  file.document = std::make_shared<Document>(*file.document);
  castModel(file, DType::bf16);
  EXPECT_EQ(file.weights.at("again").data, file.weights.begin()->second.data);
  EXPECT_NE(file.weights.at("again").data, first.data);
}

TEST(Precision, OnlyFourAreForModels) {
  ModelBuilder m;
  m.output(m.op("aten.mul.Tensor", {m.input("x", {3}), m.parameter("w", {3})}));
  EXPECT_NE(messageOf([&] { (void)moved(m, DType::i64); }).find("int64 is not a precision for a model"),
            std::string::npos);
}

/// Each narrower one is further from float32, by about its rounding, and all ops match.
TEST(Precision, RunsDivergeByTheRoundingOfThePrecision) {
  for (const char* file : {"tests/data/models/mlp/model.pt2", "resources/samples/tiny_gpt.pt2"}) {
    SCOPED_TRACE(file);
    const auto a = openModel(root + file);
    double before = 0;
    for (const auto& [precision, rounding] :
         {std::pair(DType::f64, 0x1p-24), {DType::f16, 0x1p-11}, {DType::bf16, 0x1p-8}}) {
      const auto b = counterpart(a, precision);
      ASSERT_TRUE(b->derived()) << torchName(precision);
      const auto comparison = compareRuns(*a, *b, usualTolerance(precision));
      EXPECT_EQ(comparison.rows.size(), compareRuns(*a, *a, 0).rows.size());
      EXPECT_TRUE(comparison.onlyInA.empty() && comparison.onlyInB.empty());
      EXPECT_GT(comparison.largest, before);
      EXPECT_GT(comparison.largest, rounding / 8);
      EXPECT_LT(comparison.largest, rounding * 64);
      before = comparison.largest;
      const auto own = compareRuns(*a, *b, CompareOptions{.tolerance = usualTolerance(precision), .own = true});
      for (const auto& claim : own.report.claims) EXPECT_NE(claim.severity, Severity::fault) << textOf(claim);
      EXPECT_TRUE(own.report.notJudged.empty());
      EXPECT_GE(own.report.judged, a->joint.ops.size());
    }
  }
}

/// In half precision attention converts first and takes its products in another order: ops are paired with their like,
/// what is more is alone.
TEST(Precision, OtherDecompositionsAreAlignedByKindAndShape) {
  ModelBuilder m;
  const auto x = m.input("x", {2, 1, 5, 8}), w = m.parameter("w", {8});
  const auto q = m.op("aten.mul.Tensor", {x, w}), k = m.op("aten.sin.default", {q}), v = m.op("aten.cos.default", {q});
  m.output(
      m.op("aten.scaled_dot_product_attention.default", {q, k, v, Argument::ofNone(), 0.5, Argument::ofBool(false)}));
  auto file = m.take();
  auto narrow = file;
  narrow.document = std::make_shared<Document>(*file.document);
  const auto a = analyse(std::move(file));
  DerivationRequest options;
  options.precision = DType::bf16;
  options.inputs = a->request.inputs;
  const auto b = analyse(std::move(narrow), options);
  const auto comparison = compareRuns(*a, *b, 1);
  EXPECT_FALSE(comparison.onlyInB.empty());
  for (auto op : comparison.onlyInB) EXPECT_EQ(b->document->opName(op), "torch.ops.aten._to_copy.default");
  EXPECT_TRUE(comparison.onlyInA.empty());
  for (const auto& row : comparison.rows) EXPECT_TRUE(row.note.empty()) << row.note;
}

TEST(Precision, AnOpThatHasNoSuchKernelIsNamed) {
  ModelBuilder m;
  const auto x = m.input("x", {3, 3}), w = m.parameter("w", {3, 3});
  m.output(m.op("aten._linalg_det.default", {m.op("aten.mul.Tensor", {x, w})}));
  const auto message = messageOf([&] {
    const auto analysis = moved(m, DType::bf16);
    if (!analysis->derived())
      throw Error(ErrorCode::execution, analysis->problems.back().message, analysis->problems.back().place);
    (void)compareRuns(*analysis, *analysis, 0);
  });
  EXPECT_NE(message.find("_linalg_det"), std::string::npos) << message;
}

TEST(Precision, ASessionKeepsIt) {
  DerivationRequest options;
  options.precision = DType::bf16;
  const auto analysis = openModel(root + "tests/data/models/mlp/model.pt2", options);
  const auto path = testing::TempDir() + "bf16.retrograd";
  saveSession(*analysis, path);
  const auto again = loadSession(path);
  EXPECT_EQ(again->request.precision, DType::bf16);
  EXPECT_EQ(ownPrecision(again->file), DType::bf16);
  EXPECT_EQ(compareRuns(*analysis, *again, 0).largest, 0);
}

}  // namespace
}  // namespace retrograd::test
