#include "core/questions/parameter_tree.h"

#include <gtest/gtest.h>

namespace retrograd {
namespace {

Computation computationWith(const std::vector<std::string>& parameters) {
  Computation computation;
  for (const auto& name : parameters) {
    InputSpec input;
    input.kind = InputKind::parameter;
    input.target = name;
    input.value = ValueId(static_cast<std::int32_t>(computation.inputs.size()));
    computation.inputs.push_back(input);
  }
  return computation;
}

/// "h.0[a b.weight]": labels with their parts; a star after members of lists.
std::string printed(const ParameterTree& tree) {
  std::string text = tree.label + (tree.isMember ? "*" : "");
  if (tree.parts.empty()) return text;
  text += '[';
  for (std::size_t i = 0; i < tree.parts.size(); ++i) text += (i ? " " : "") + printed(tree.parts[i]);
  return text + ']';
}

std::string treeOf(const std::vector<std::string>& parameters) {
  return printed(parameterTree(computationWith(parameters)));
}

TEST(ParameterTree, MembersOfAListAreLayers) {
  EXPECT_EQ(treeOf({"wte.weight", "h.0.ln.weight", "h.0.ln.bias", "h.0.fc.weight", "h.1.ln.weight", "h.1.ln.bias",
                    "h.1.fc.weight", "ln_f.weight", "ln_f.bias"}),
            "[wte.weight h.0*[ln[weight bias] fc.weight] h.1*[ln[weight bias] fc.weight] ln_f[weight bias]]");
}

TEST(ParameterTree, WhatAllShareIsLeftOut) {
  const auto tree = parameterTree(
      computationWith({"model.layers.0.a.weight", "model.layers.0.b", "model.layers.1.a.weight", "model.norm"}));
  EXPECT_EQ(printed(tree), "model[layers.0*[a.weight b] layers.1.a.weight* norm]");
  ASSERT_EQ(tree.parts.size(), 3u);
  EXPECT_EQ(tree.parts[0].path, "model.layers.0");
  ASSERT_EQ(tree.parts[0].parts.size(), 2u);
  EXPECT_EQ(tree.parts[0].parts[0].path, "model.layers.0.a.weight");
  EXPECT_EQ(tree.parts[0].parts[1].input, 1u);
  EXPECT_EQ(tree.parts[1].input, 2u);
  EXPECT_EQ(tree.parts[1].path, "model.layers.1.a.weight");
}

TEST(ParameterTree, ListsInListsAndParametersOfTheirOwn) {
  EXPECT_EQ(treeOf({"a", "layers.0.blocks.0.w", "layers.0.blocks.0.b", "layers.0.blocks.1.w", "layers.0.down",
                    "layers.1.blocks.0.w", "0.weight"}),
            "[a layers.0*[blocks.0*[w b] blocks.1.w* down] layers.1.blocks.0.w* 0.weight*]");
  EXPECT_EQ(treeOf({}), "");
  EXPECT_EQ(treeOf({"w"}), "[w]");
}

TEST(ParameterTree, KnowsWhereLayersAre) {
  const auto tree = parameterTree(computationWith({"bert.emb.word.weight", "bert.emb.ln.weight", "bert.layer.0.w",
                                                   "bert.layer.0.b", "bert.layer.1.w", "head.weight"}));
  EXPECT_TRUE(tree.holdsMembers());
  ASSERT_EQ(tree.parts.size(), 2u);
  EXPECT_TRUE(tree.parts[0].holdsMembers());
  EXPECT_FALSE(tree.parts[0].parts[0].holdsMembers());
  EXPECT_EQ(tree.parts[1].input, 5u);
}

}  // namespace
}  // namespace retrograd
