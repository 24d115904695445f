// TorchScript files against what PyTorch computed from them, and against LibTorch's own autograd.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/derivation/analysis.h"
#include "core/torch/checking/check.h"
#include "core/torch/reading/read_model.h"
#include "core/trace/verifier.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

const fs::path folder = fs::path(sourcePath("tests/data/torchscript"));

class ScriptModels : public testing::TestWithParam<const char*> {
 protected:
  std::string file() const { return (folder / GetParam()).string() + ".pt"; }
  std::string reference() const { return (folder / GetParam()).string() + ".safetensors"; }
};

TEST_P(ScriptModels, agreesWithPyTorch) {
  CheckOptions options;
  options.reference = reference();
  const auto report = checkModel(file(), options);
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << test::textOf(report);
  if (const auto* worst = furthest(report)) EXPECT_LE(worst->measure->deviation, 1e-5) << worst->subject;
}

INSTANTIATE_TEST_SUITE_P(All, ScriptModels,
                         testing::Values("control", "traced", "dropout", "inplace", "batchnorm", "containers", "nested",
                                         "tied", "nograd"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ScriptModels, areOpenedLikeAnyModel) {
  DerivationRequest options;
  options.shapes["x"] = {{2, 3}, std::nullopt};
  options.seed = 5;
  const auto analysis = openModel((folder / "control.pt").string(), options);
  ASSERT_TRUE(analysis->derived());
  EXPECT_EQ(analysis->inputSource, std::vector<std::string>{"x: drawn from seed 5"});
  ASSERT_FALSE(analysis->dataDependent.empty());
  EXPECT_NE(analysis->dataDependent[0].find("aten.item.default, make.py:"), std::string::npos);
  for (const auto* trace : {&analysis->joint, &analysis->forward, &analysis->backward})
    for (const auto& problem : verify(*analysis->document, *trace))
      ADD_FAILURE() << problem.place << ": " << problem.message;
}

TEST(ScriptModels, withoutInputsTheErrorSaysWhatToGive) {
  try {
    openModel((folder / "control.pt").string());
    FAIL() << "it was opened";
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_EQ(e.code(), ErrorCode::badUse);
    for (const char* part : {"control.pt", "x: Tensor", "control.inputs.safetensors", "--inputs", "--shape x=2x3"})
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

TEST(ScriptModels, inputsNextToTheFileAreUsed) {
  const auto place = fs::temp_directory_path() / ("retrograd-beside-" + std::to_string(::getpid()));
  fs::create_directories(place);
  fs::copy_file(folder / "control.pt", place / "m.pt", fs::copy_options::overwrite_existing);
  fs::copy_file(folder / "control.safetensors", place / "m.inputs.safetensors", fs::copy_options::overwrite_existing);
  const auto file = readModel((place / "m.pt").string());
  EXPECT_EQ(file.inputSource.at("x"), "from m.inputs.safetensors");
  EXPECT_EQ(file.sampleNumbers.at("rounds"), Argument::ofInt(3));
  fs::remove_all(place);
}

}  // namespace
}  // namespace retrograd
