#include "core/formats/checkpoint/name_binding.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace retrograd {
namespace {

TensorMeta shaped(std::vector<std::int64_t> sizes) {
  TensorMeta meta;
  meta.sizes = std::move(sizes);
  meta.strides = contiguousStrides(meta.sizes);
  return meta;
}

CheckpointTensor held(const std::vector<std::string>& keys, std::vector<std::int64_t> sizes = {2}) {
  auto tensor = namedTensor(keys);
  tensor.meta = shaped(std::move(sizes));
  return tensor;
}

const std::map<std::string, TensorMeta> wanted{{"a.weight", shaped({2})}, {"b.weight", shaped({2})}};

std::vector<std::string> namesOf(const std::vector<Mismatch>& all) {
  std::vector<std::string> names;
  for (const auto& one : all) names.push_back(one.name);
  return names;
}

TEST(NameBinding, J10_takesTheWrappersOut) {
  EXPECT_EQ(withoutWrappers("_orig_mod.module.layers.0._fsdp_wrapped_module.weight"), "layers.0.weight");
  EXPECT_EQ(withoutWrappers("module"), "module");  // a name of its own is none
  const Checkpoint checkpoint{"c", "f", {held({"_orig_mod.a.weight"}), held({"module.b.weight"})}, {}};
  EXPECT_EQ(bindNames(checkpoint, wanted).bound.size(), 2u);
}

TEST(NameBinding, J13_choosesTheDictionaryThatFitsBest) {
  const Checkpoint checkpoint{"c",
                              "f",
                              {held({"ema", "a.weight"}), held({"model", "a.weight"}), held({"model", "b.weight"}),
                               held({"optimizer", "a.weight", "exp_avg"})},
                              {}};
  const auto binding = bindNames(checkpoint, wanted);
  EXPECT_EQ(binding.under, "model");
  EXPECT_TRUE(describeMismatches(binding).empty())
      << describeMismatches(binding);  // other dictionaries are not in the way
  EXPECT_EQ(bindNames(checkpoint, wanted, "ema").bound.size(), 1u);
  // More of the wanted names count for more than a usual key.
  const Checkpoint averaged{
      "c", "f", {held({"averaged", "a.weight"}), held({"averaged", "b.weight"}), held({"model", "a.weight"})}, {}};
  EXPECT_EQ(bindNames(averaged, wanted).under, "averaged");
}

TEST(NameBinding, J13_asksWhereSeveralFit) {
  const Checkpoint usual{"c", "f", {held({"old", "a.weight"}), held({"model", "a.weight"})}, {}};
  EXPECT_EQ(bindNames(usual, wanted).under, "model");
  const Checkpoint checkpoint{"c", "f", {held({"first", "a.weight"}), held({"second", "a.weight"})}, {}};
  EXPECT_THROW(bindNames(checkpoint, wanted), Error);
}

TEST(NameBinding, bindsAModelThatWasExportedWithinAWrapper) {
  const std::map<std::string, TensorMeta> inner{{"model.a.weight", shaped({2})}, {"model.b.weight", shaped({2})}};
  const Checkpoint checkpoint{"c", "f", {held({"a.weight"}), held({"b.weight"})}, {}};
  EXPECT_TRUE(bindNames(checkpoint, inner).bound.contains("model.b.weight"));
}

TEST(NameBinding, J14_listsWhatIsMissingSuperfluousOrOfAnotherShape) {
  const Checkpoint checkpoint{"c", "f", {held({"a.weight"}, {3}), held({"c.weight"})}, {}};
  const auto binding = bindNames(checkpoint, wanted);
  EXPECT_EQ(namesOf(binding.missing), std::vector<std::string>{"b.weight"});
  EXPECT_EQ(namesOf(binding.different), std::vector<std::string>{"a.weight"});
  EXPECT_EQ(namesOf(binding.superfluous), std::vector<std::string>{"c.weight"});
  EXPECT_EQ(
      describeMismatches(binding),
      "\n  missing: b.weight f32[2]\n  different: a.weight f32[3], wanted f32[2]\n  superfluous: c.weight f32[2]");
}

}  // namespace
}  // namespace retrograd
