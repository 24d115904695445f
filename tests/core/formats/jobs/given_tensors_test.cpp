#include "core/formats/jobs/given_tensors.h"

#include <gtest/gtest.h>

namespace retrograd::jobs {
namespace {

TensorData tensor(std::vector<std::int64_t> sizes, DType dtype = DType::f32) {
  TensorData data;
  data.meta.dtype = dtype;
  data.meta.sizes = std::move(sizes);
  return data;
}

InputSource source(const std::string& text) { return readInputSource(text); }

// A partial, keyword inputs, a list of modules, a module compiled by itself.
TEST(GivenTensors, AreFoundWhateverHeldThem) {
  const TensorMap weights{{"e.weight", tensor({1})}, {"blocks.0.w", tensor({2})}, {"blocks.1.w", tensor({3})}},
      batch{{"ids", tensor({4}, DType::i64)}, {"x", tensor({5})}};
  GivenTensors files(weights, batch);
  const auto find = [&](const std::string& text) { return files.find(source(text)); };
  EXPECT_EQ(find("L['args'][0]._modules['e']._parameters['weight']"), &weights.at("e.weight"));
  EXPECT_EQ(find("L['kwargs']['ids']"), &batch.at("ids"));
  EXPECT_EQ(find("L['batch'].x"), &batch.at("x"));
  EXPECT_EQ(find("L['self'].blocks[1]._parameters['w']"), &weights.at("blocks.1.w"));
  EXPECT_EQ(find("L['self']._modules['blocks']._modules['0']._parameters['w']"), &weights.at("blocks.0.w"));
  EXPECT_EQ(find("L['other']"), nullptr);
}

// A block that was compiled by itself has the names of each of the checkpoint's blocks.
TEST(GivenTensors, HoldersOfNamesThatSeveralBlocksHave) {
  const TensorMap weights{{"blocks.0.w", tensor({2})},
                          {"blocks.0.b", tensor({2})},
                          {"blocks.1.w", tensor({2})},
                          {"blocks.1.b", tensor({2})},
                          {"head.w", tensor({2})}};
  GivenTensors files(weights, {});
  EXPECT_EQ(files.find(source("L['self']._parameters['w']")), nullptr);
  EXPECT_EQ(files.holdersOf({"w", "b"}), (std::vector<std::string>{"blocks.0", "blocks.1"}));
  EXPECT_TRUE(files.holdersOf({"w", "c"}).empty());
}

// A place in a list has no name: the only tensor of its type is meant, and of two none.
TEST(GivenTensors, PlacesInAListAreFoundByTheirType) {
  const TensorMap batch{{"a", tensor({2})}, {"b", tensor({2})}, {"y", tensor({2}, DType::i64)}};
  GivenTensors files({}, batch);
  std::string name;
  EXPECT_EQ(files.findByType(source("L['a'][1]"), tensor({2}, DType::i64).meta, name), &batch.at("y"));
  EXPECT_EQ(name, "y");
  EXPECT_EQ(files.findByType(source("L['a'][0]"), tensor({2}).meta, name), nullptr);
  EXPECT_EQ(files.findByType(source("L['x']"), tensor({2}, DType::i64).meta, name), nullptr);
}

}  // namespace
}  // namespace retrograd::jobs
