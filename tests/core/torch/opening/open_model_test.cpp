// One request, whoever asks.
#include "core/torch/opening/open_model.h"

#include <gtest/gtest.h>

#include "core/formats/safetensors/safetensors.h"
#include "core/torch/experiments/counterpart.h"
#include "core/torch/judging/compare.h"
#include "tests/core/formats/cases.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

// Command line and window take the same from a file with inputs, gradients of outputs included.
TEST(OpenModel, AnInputsFileHasCotangents) {
  OpenRequest request;
  request.path = sourcePath("tests/data/models/mlp/model.pt2");
  const auto plain = openModel(request);
  ASSERT_TRUE(plain->derived());
  const auto drawn = [&] {
    auto seeded = request;
    seeded.seed = 7;
    return openModel(seeded)->request.cotangents.at("0");
  }();
  EXPECT_FALSE(identical(plain->request.cotangents.at("0"), drawn));
  request.inputs = test::writeTemporary("inputs.safetensors", "");
  writeSafetensors(request.inputs, {{"cot.0", drawn}});
  const auto analysis = openModel(request);
  EXPECT_TRUE(identical(analysis->request.cotangents.at("0"), drawn));
  EXPECT_FALSE(request.asksForNothing());
}

// A captured folder is what runs are compared with, also where the first model is the folder itself.
TEST(OpenModel, ACapturedFolderIsComparedWith) {
  OpenRequest request;
  request.path = sourcePath("tests/data/reports/captured");
  std::size_t read = 0;
  const auto analysis = openModel(request, {}, [&](const ModelFile&) { ++read; });
  EXPECT_EQ(read, 1u);
  ASSERT_TRUE(analysis->derived());
  Counterpart again;
  again.path = request.path;
  EXPECT_TRUE(openCounterpart(*analysis, again)->derived());
}

TEST(OpenModel, ACapturedFolderSaysWhyItWasKept) {
  FolderChoice choice;
  choice.failure = "the loss is nan";
  choice.cannotReplay = {"the weights (2 GiB)"};
  const auto notes = notesOf(choice, "step");
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].message, "recorded because the loss is nan");
  EXPECT_EQ(notes[1].severity, Problem::Severity::warning);
  EXPECT_TRUE(notesOf({}, "step").empty());
}

}  // namespace
}  // namespace retrograd
