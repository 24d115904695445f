#include "core/formats/debug_mode/debug_mode_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace retrograd {
namespace {

std::string recording(const std::string& entries, const std::string& version = "1") {
  return R"({"format": "torch.utils._debug_mode.DebugMode.logs", "version": )" + version + R"(, "logs": [)" + entries +
         "]}";
}

std::string scalar(const std::string& number) { return R"({"type": "scalar", "value": )" + number + "}"; }

std::string op(const std::string& name, const std::string& arguments, const std::string& output,
               const std::string& hash, const std::string& inputHash = "null", const std::string& forward = "null") {
  return R"({"type": "op", "op_name": ")" + name + R"(", "args_str": ")" + arguments +
         R"(", "kwargs_str": "", "output_str": ")" + output +
         R"(", "call_depth": 3, "stack_trace": "  File \"/job/a.py\", line 7, in step\n    x\n  File \"/lib/site-packages/torch/x.py\", line 9, in y\n", "fwd_stack_trace": )" +
         forward + R"(, "log": {"type": "dict", "items": [["hash", )" + hash + R"(], ["input_hash", )" + inputHash +
         "]]}}";
}

std::string failure(const std::string& text) {
  try {
    readDebugMode(std::string_view(text), "r.json");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    return e.what();
  }
  return "nothing failed";
}

TEST(RecordedNumbers, J12_readsCallsWithTheNormsOfTheirTensors) {
  const auto inputs = R"({"type": "tuple", "items": [{"type": "tuple", "items": [)" + scalar("2.5") + ", " +
                      scalar("null") + R"(]}, {"type": "dict", "items": []}]})";
  const auto run = readDebugMode(
      std::string_view(
          recording(R"({"type": "annotate", "tag": "Gpt.norm", "call_depth": 2}, )" +
                    op("aten::mul.Tensor", "t$4: f32[2, 3], 1.5", "  ->  t$5: f32[2, 3]", scalar("7.0"), inputs))),
      "r");
  ASSERT_EQ(run.calls.size(), 1u);
  const auto& call = run.calls[0];
  EXPECT_EQ(call.op, "aten::mul.Tensor");
  EXPECT_EQ(call.module, "Gpt.norm");
  EXPECT_EQ(call.line, "a.py:7 in step");
  ASSERT_EQ(call.inputs.size(), 1u);
  EXPECT_EQ(call.inputs[0].type, "f32[2, 3]");
  EXPECT_EQ(call.inputs[0].id, 4);
  EXPECT_EQ(call.inputs[0].norm, 2.5);
  ASSERT_EQ(call.outputs.size(), 1u);
  EXPECT_EQ(call.outputs[0].id, 5);
  EXPECT_EQ(call.outputs[0].norm, 7.0);
  EXPECT_EQ(run.others.at("annotate"), 1u);
  EXPECT_FALSE(run.hashes);
}

TEST(RecordedNumbers, J12_readsSeveralOutputsWithoutIdsAndWhatIsNotFinite) {
  const auto hash = R"({"type": "tuple", "items": [)" + scalar("1.0") +
                    R"(, {"type": "nonfinite_float", "value": "nan"}, {"type": "nonfinite_float", "value": "-inf"}]})";
  const auto run = readDebugMode(
      std::string_view(recording(op("aten::x", "", "  ->  ('t: f32[2]', 't: f32[]', 't: i64[3]')", hash))), "r");
  const auto& outputs = run.calls[0].outputs;
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0].id, -1);
  EXPECT_EQ(outputs[0].norm, 1.0);
  EXPECT_TRUE(std::isnan(outputs[1].norm));
  EXPECT_EQ(outputs[2].norm, -std::numeric_limits<double>::infinity());
}

TEST(RecordedNumbers, J12_knowsHashesFromNorms) {
  EXPECT_TRUE(
      readDebugMode(std::string_view(recording(op("aten::x", "", "  ->  t: f32[2]", scalar("12345")))), "r").hashes);
  EXPECT_FALSE(
      readDebugMode(std::string_view(recording(op("aten::x", "", "  ->  t: f32[2]", scalar("1.0")))), "r").hashes);
}

TEST(RecordedNumbers, J12_refusesOtherVersionsByNumber) {
  EXPECT_NE(failure(recording("", "2")).find("version 2"), std::string::npos);
  EXPECT_NE(failure(R"({"format": "x"})").find("not a recording"), std::string::npos);
  EXPECT_NE(
      failure(
          recording(
              R"({"type": "op", "op_name": "aten::x", "args_str": "", "kwargs_str": "", "output_str": null, "log": null})"))
          .find("log_tensor_hashes"),
      std::string::npos);
}

}  // namespace
}  // namespace retrograd
