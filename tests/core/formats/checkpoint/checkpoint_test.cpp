#include "core/formats/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/base/error.h"
#include "core/formats/safetensors/safetensors.h"
#include "tests/core/formats/cases.h"
#include "tests/core/formats/checkpoint/pickled.h"

namespace retrograd {
namespace {

using namespace test::pickled;
namespace fs = std::filesystem;

std::vector<float> values(const TensorData& tensor) {
  std::vector<float> result(static_cast<std::size_t>(tensor.meta.elements()));
  EXPECT_EQ(tensor.meta.strides, contiguousStrides(tensor.meta.sizes));
  std::memcpy(result.data(), tensor.data + tensor.meta.offset * 4, result.size() * 4);
  return result;
}

std::vector<float> valuesOf(const Checkpoint& checkpoint, const std::string& name) {
  for (const auto& tensor : checkpoint.tensors)
    if (tensor.name == name) return values(tensor.load());
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

std::string failure(const std::string& path) {
  try {
    for (const auto& tensor : readCheckpoint(path).tensors) tensor.load();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    return e.what();
  }
  return "nothing failed";
}

/// The folder of a distributed checkpoint.
std::string folder(const std::string& name, const std::vector<std::pair<std::string, std::string>>& files) {
  const auto path = fs::path(test::writeTemporary(name + ".none", "")).parent_path() / name;
  fs::remove_all(path);
  fs::create_directories(path);
  for (const auto& [file, content] : files) test::writeTemporary(name + "/" + file, content);
  return path.string();
}

const std::string top = saved(tensor("0", {1, 2}, {2, 1}, 2), {{"0", floats({1, 2})}});
const std::string bottom = saved(tensor("0", {1, 2}, {1, 1}, 2), {{"0", floats({3, 4})}});

std::string twoSlices(const std::string& storage) {
  return metadata(dict({{text("model.w"), storedTensor({2, 2}, {chunk({0, 0}, {1, 2}), chunk({1, 0}, {1, 2})})}}),
                  storage, dict({{text("model.w"), tuple({text("model"), text("w")})}}));
}

TEST(Checkpoint, J13_readsANestedStateDictOfTorchSave) {
  const auto state = dict({{text("a.weight"), tensor("0", {2}, {1}, 2)}});
  const auto path =
      test::writeTemporary("nested.pt", saved(dict({{text("model"), state},
                                                    {text("step"), whole(3)},
                                                    {text("args"), object(global("argparse", "Namespace"), dict({}))}}),
                                              {{"0", floats({1, 2})}}));
  const auto checkpoint = readCheckpoint(path);
  ASSERT_EQ(checkpoint.tensors.size(), 1u);
  EXPECT_EQ(checkpoint.tensors[0].name, "model.a.weight");
  EXPECT_EQ(checkpoint.tensors[0].borders, (std::vector<std::size_t>{0, 6}));
  EXPECT_EQ(valuesOf(checkpoint, "model.a.weight"), (std::vector<float>{1, 2}));
  EXPECT_EQ(checkpoint.others, std::vector<std::string>{"args: argparse Namespace"});  // named, never made
}

TEST(Checkpoint, J13_joinsShardsByTheirIndex) {
  const auto one = floats({1, 2}), two = floats({3});
  const auto tensorOf = [](const std::string& bytes, std::int64_t size) {
    TensorData tensor;
    tensor.meta.sizes = {size};
    tensor.meta.strides = {1};
    tensor.data = reinterpret_cast<const std::byte*>(bytes.data());
    tensor.bytes = bytes.size();
    return tensor;
  };
  const auto path = folder(
      "shards", {{"model.safetensors.index.json", R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})"}});
  writeSafetensors(path + "/1.safetensors", {{"a", tensorOf(one, 2)}});
  writeSafetensors(path + "/2.safetensors", {{"b", tensorOf(two, 1)}});
  for (const auto& given : {path, path + "/model.safetensors.index.json"}) {
    const auto checkpoint = readCheckpoint(given);
    EXPECT_EQ(checkpoint.form, "safetensors, 2 shards");
    EXPECT_EQ(valuesOf(checkpoint, "a"), (std::vector<float>{1, 2}));
    EXPECT_EQ(valuesOf(checkpoint, "b"), (std::vector<float>{3}));
  }
  fs::remove(path + "/2.safetensors");
  writeSafetensors(path + "/2.safetensors", {{"c", tensorOf(two, 1)}});
  EXPECT_NE(failure(path).find("lacks 'b'"), std::string::npos) << failure(path);
  test::writeTemporary("shards/model.safetensors.index.json", R"({"weight_map": {"a": "../1.safetensors"}})");
  EXPECT_NE(failure(path).find("outside of its folder"), std::string::npos) << failure(path);
}

TEST(Checkpoint, J13_putsSlicesOfADistributedCheckpointTogether) {
  const auto path = folder(
      "dcp", {{".metadata", twoSlices(dict({{index("model.w", {0, 0}), place("__0_0.distcp", 0, top.size())},
                                            {index("model.w", {1, 0}), place("__1_0.distcp", 3, bottom.size())}}))},
              {"__0_0.distcp", top},
              {"__1_0.distcp", "xyz" + bottom}});
  const auto checkpoint = readCheckpoint(path);
  ASSERT_EQ(checkpoint.tensors.size(), 1u);
  EXPECT_EQ(checkpoint.tensors[0].borders, (std::vector<std::size_t>{0, 6}));
  EXPECT_EQ(valuesOf(checkpoint, "model.w"), (std::vector<float>{1, 2, 3, 4}));
}

TEST(Checkpoint, J13_refusesADistributedCheckpointWithHolesByName) {
  const auto both = dict({{index("model.w", {0, 0}), place("__0_0.distcp", 0, top.size())},
                          {index("model.w", {1, 0}), place("__0_0.distcp", 0, top.size())}});
  auto path =
      folder("dcp-overlap",
             {{".metadata",
               metadata(dict({{text("model.w"), storedTensor({2, 2}, {chunk({0, 0}, {1, 2}), chunk({0, 0}, {1, 2})})}}),
                        both, dict({}))},
              {"__0_0.distcp", top}});
  EXPECT_NE(failure(path).find("overlap"), std::string::npos) << failure(path);
  path = folder("dcp-hole",
                {{".metadata",
                  metadata(dict({{text("model.w"), storedTensor({2, 2}, {chunk({0, 0}, {1, 2})})}}), both, dict({}))},
                 {"__0_0.distcp", top}});
  EXPECT_NE(failure(path).find("2 of its 4 elements"), std::string::npos) << failure(path);
  path = folder("dcp-place",
                {{".metadata", twoSlices(dict({{index("model.w", {0, 0}), place("__0_0.distcp", 0, top.size())}}))},
                 {"__0_0.distcp", top}});
  EXPECT_NE(failure(path).find("no file holds one of its chunks"), std::string::npos) << failure(path);
  path =
      folder("dcp-out", {{".metadata", twoSlices(dict({{index("model.w", {0, 0}), place("../x", 0, top.size())}}))}});
  EXPECT_NE(failure(path).find("outside of its folder"), std::string::npos) << failure(path);
}

TEST(Checkpoint, J13_readsSlicesThatAreSafetensorsAndRefusesTransforms) {
  const auto bytes = floats({5, 6});
  TensorData one;
  one.meta.sizes = {2};
  one.meta.strides = {1};
  one.data = reinterpret_cast<const std::byte*>(bytes.data());
  one.bytes = bytes.size();
  const auto tensors = dict({{text("w"), storedTensor({2}, {chunk({0}, {2})})}});
  const auto path = folder(
      "dcp-st", {{".metadata", metadata(tensors, dict({{index("w", {0}), place("a.safetensors", 0, 8)}}), dict({}))}});
  writeSafetensors(path + "/a.safetensors", {{"w", one}});
  EXPECT_EQ(valuesOf(readCheckpoint(path), "w"), (std::vector<float>{5, 6}));
  const auto transformed = folder(
      "dcp-zstd",
      {{".metadata",
        metadata(tensors, dict({{index("w", {0}), place("a.distcp", 0, 8, list({text("zstandard")}))}}), dict({}))},
       {"a.distcp", "12345678"}});
  EXPECT_NE(failure(transformed).find("zstandard"), std::string::npos) << failure(transformed);
}

TEST(Checkpoint, readsTheStepThatWentNaNInEachForm) {
  const auto job = test::cases() / "jobs/nan_step";
  if (!fs::exists(job)) GTEST_SKIP() << "the cases are not beside the checkout";
  const auto shards = readCheckpoint((job / "model.safetensors.index.json").string()),
             dcp = readCheckpoint((job / "dcp").string()), pt = readCheckpoint((job / "step.pt").string());
  ASSERT_FALSE(shards.tensors.empty());
  for (const auto& tensor : shards.tensors) {
    const auto expected = values(tensor.load());
    const auto same = [&](const std::vector<float>& found) {
      return found.size() == expected.size() && std::memcmp(found.data(), expected.data(), 4 * found.size()) == 0;
    };
    EXPECT_TRUE(same(valuesOf(dcp, "model." + tensor.name))) << tensor.name;
    EXPECT_TRUE(same(valuesOf(pt, "model._orig_mod." + tensor.name))) << tensor.name;
  }
}

}  // namespace
}  // namespace retrograd
