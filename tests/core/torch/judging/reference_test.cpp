#include "core/torch/judging/reference.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "core/formats/safetensors/safetensors.h"
#include "tests/core/trace/build.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

TensorData doubles(std::vector<double> elements) {
  auto memory = std::make_shared<std::vector<double>>(std::move(elements));
  TensorData t;
  t.meta.dtype = DType::f64;
  t.meta.sizes = {static_cast<std::int64_t>(memory->size())};
  t.meta.strides = {1};
  t.data = reinterpret_cast<const std::byte*>(memory->data());
  t.bytes = memory->size() * sizeof(double);
  t.owner = memory;
  return t;
}

struct ReferenceFile : testing::Test {
  std::string path =
      (fs::temp_directory_path() / ("retrograd-reference-" + std::to_string(getpid()) + ".safetensors")).string();
  void TearDown() override { fs::remove(path); }

  Reference write(const std::vector<std::string>& keys, const std::map<std::string, std::string>& metadata = {}) const {
    TensorMap tensors;
    for (const auto& key : keys) tensors.emplace(key, doubles({1, 2}));
    writeSafetensors(path, tensors, metadata);
    return readReference(path);
  }
};

/// x and w go in, one user output behind a buffer mutation comes out.
ModelFile model() {
  test::Builder b;
  ModelFile file;
  const auto x = b.input("x", {2});
  file.computation.inputs.push_back({InputKind::user, "x", "", {}, true, false, x, ""});
  file.computation.outputs.push_back({OutputKind::bufferMutation, x, {}, "count"});
  file.computation.outputs.push_back({OutputKind::user, x, {}, ""});
  file.computation.trace = b.trace;
  file.document = std::make_shared<Document>(std::move(b.document));
  return file;
}

/// A model with these parameters and a user input x.
ModelFile modelWith(const std::vector<std::string>& parameters) {
  test::Builder b;
  ModelFile file;
  const auto add = [&](InputKind kind, const std::string& name) {
    const auto value = b.input(name, {2});
    file.computation.inputs.push_back({kind, name, name, {}, true, false, value, ""});
  };
  add(InputKind::user, "x");
  for (const auto& name : parameters) add(InputKind::parameter, name);
  file.computation.trace = b.trace;
  file.document = std::make_shared<Document>(std::move(b.document));
  return file;
}

std::set<std::string> namesOf(const TensorMap& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) names.insert(name);
  return names;
}

// A submodule called p or in: grad.p.w is the gradient of p.w, where the model has that and no w.
TEST_F(ReferenceFile, SubmodulesMayBeCalledAsPrefixesAre) {
  {
    auto r = write({"grad.p.w", "grad.in.b", "grad.out.w", "grad.grad.w"});
    settleNames(r, modelWith({"p.w", "in.b", "out.w", "grad.w"}));
    EXPECT_EQ(namesOf(r.expected.parameterGradients), (std::set<std::string>{"p.w", "in.b", "out.w", "grad.w"}));
    EXPECT_TRUE(r.expected.inputGradients.empty());
  }
  {
    auto r = write({"grad.p.w", "grad.in.x"});
    settleNames(r, modelWith({"w", "p.w"}));  // both would do: the prefixes are meant
    EXPECT_EQ(namesOf(r.expected.parameterGradients), std::set<std::string>{"w"});
    EXPECT_EQ(namesOf(r.expected.inputGradients), std::set<std::string>{"x"});
  }
  auto r = write({"grad.p.w", "grad.w"});  // the file's other names have no prefix
  settleNames(r, modelWith({"w", "p.w"}));
  EXPECT_EQ(namesOf(r.expected.parameterGradients), (std::set<std::string>{"w", "p.w"}));
}

TEST_F(ReferenceFile, keysAreSortedIntoTheirPlaces) {
  const auto r =
      write({"in.x", "y", "cot.0", "out.0", "grad.in.x", "grad.p.l.weight", "mut.b.count", "mut.in.x", "f64/out.0"},
            {{"seed", "1234"}, {"requires_grad", "x,y"}});
  EXPECT_TRUE(r.inputs.contains("x") && r.inputs.contains("y"));
  EXPECT_TRUE(r.cotangents.contains("0"));
  EXPECT_TRUE(r.expected.outputs.contains("0"));
  EXPECT_TRUE(r.expected.inputGradients.contains("x"));
  EXPECT_TRUE(r.expected.parameterGradients.contains("l.weight"));
  EXPECT_TRUE(r.expected.bufferMutations.contains("count"));
  EXPECT_TRUE(r.expected.inputMutations.contains("x"));
  ASSERT_TRUE(r.inDouble);
  EXPECT_TRUE(r.inDouble->outputs.contains("0"));
  EXPECT_EQ(r.seed, 1234u);
  EXPECT_EQ(r.requiresGrad, (std::vector<std::string>{"x", "y"}));
}

TEST_F(ReferenceFile, metadataMayBeAbsentButNotWrong) {
  const auto r = write({"in.x"});
  EXPECT_FALSE(r.seed || r.requiresGrad || r.inDouble);
  EXPECT_THROW(write({"in.x"}, {{"seed", "twelve"}}), Error);
}

TEST_F(ReferenceFile, absentFileIsBadUse) {
  try {
    readReference(path + ".absent");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::badUse);
  }
}

TEST_F(ReferenceFile, optionsTakeWhatTheModelHas) {
  const auto file = model();
  EXPECT_EQ(userOutputs(file.computation), std::vector<std::size_t>{1});
  const auto options = requestFor(write({"in.x", "in.unknown", "cot.0"}, {{"seed", "5"}}), file);
  EXPECT_EQ(options.inputs.size(), 1u);
  EXPECT_TRUE(options.cotangents.contains("0"));
  EXPECT_TRUE(options.exactCotangents);
  EXPECT_EQ(options.seed, 5u);
  EXPECT_THROW(requestFor(write({"cot.1"}), file), Error);
}

}  // namespace
}  // namespace retrograd
