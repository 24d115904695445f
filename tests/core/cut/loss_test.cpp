#include "core/cut/loss.h"

#include "tests/core/cut/text_models.h"

namespace retrograd {
namespace {

using namespace test;

/// A model that returns a, b, c, None, its outputs at these paths of what forward returned.
ModelFile returning(const Names& paths) {
  auto model = modelOf(R"(
def computation(x):
    # x: "f32[4]"
    a = aten.sum(x)  # a: "f32[]"
    b = aten.sin(x)  # b: "f32[4]"
    c = aten.cos(x)  # c: "f32[4]"
    return a, b, c, None
)");
  auto& computation = model.computation;
  computation.outputs.resize(paths.size());
  computation.trace.outputs.resize(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) computation.outputs[i].target = paths[i];
  return model;
}

std::optional<std::size_t> find(const ModelFile& model, const std::string& spec) {
  return findLoss(*model.document, model.computation, parseLossSpec(spec));
}
std::string refusal(const ModelFile& model, const std::string& spec) {
  return errorOf([&] { find(model, spec); });
}

const Names triple{"0", "1", "2"};

TEST(Loss, FlagsPickValuesOnly) {
  EXPECT_EQ(find(returning({"0"}), "False"), std::nullopt);
  EXPECT_EQ(find(returning({"0", "1", "2", "3"}), "(False, True, False, False)"), 1u);
  EXPECT_EQ(refusal(returning({"0", "1", "2", "3"}), "(False, False, False, True)"),
            "loss: Loss spec must specify a dynamic value but got None");
}

TEST(Loss, TheFirstTrueOfASequenceWins) {
  EXPECT_EQ(find(returning(triple), "(False, True, True)"), 1u);
  EXPECT_EQ(find(returning(triple), "[True, False, False]"), 0u) << "a list fits a tuple";
  EXPECT_EQ(refusal(returning(triple), "(False, True)"),
            "loss: Output value (a, b, c) must match length of loss specification (False, True)");
}

// Holds P3, P9: dictionaries are resolved along the paths of what forward returned, not in the graph's flat tuple.
TEST(Loss, DictionariesMatchByKey) {
  const auto model = returning({"loss", "logits.0", "logits.1"});
  EXPECT_EQ(find(model, "{'loss': True, 'logits': (False, False)}"), 0u);
  EXPECT_EQ(find(model, "{'logits': (False, True), 'loss': True}"), 2u) << "in the specification's order";
  EXPECT_EQ(refusal(model, "{'loss': True}"),
            "loss: Output value {'loss': a, 'logits': (b, c)} must match keys of loss specification {'loss': True}");
  EXPECT_EQ(refusal(returning(triple), "{'loss': True}"),
            "loss: Output value (a, b, c) must match type of loss specification {'loss': True}");
  EXPECT_EQ(refusal(model, "(True,)"),
            "loss: Output value {'loss': a, 'logits': (b, c)} must match type of loss specification (True,)");
}

TEST(Loss, WithoutATrueThereIsNoLoss) {
  EXPECT_EQ(refusal(returning(triple), "(False, False, False)"),
            "loss: Did not find loss value in specification (False, False, False)");
  const auto model = returning({"0"});
  EXPECT_EQ(errorOf([&] { lossOutput(*model.document, model.computation, "False"); }),
            "loss: Did not find any loss value according to output_loss_value_spec=False");
}

TEST(Loss, OtherTypesAreNotASpecification) {
  EXPECT_EQ(refusal(returning(triple), "(1, False, False)"),
            "loss: Unsupported type <class 'int'> in loss specification");
  EXPECT_EQ(refusal(returning({"0"}), "(None,)"), "loss: Unsupported type <class 'NoneType'> in loss specification");
}

TEST(Loss, NestingMustMatch) {
  EXPECT_EQ(refusal(returning(triple), "((True,), False, False)"),
            "loss: Output value a must match type of loss specification (True,)");
  EXPECT_EQ(find(returning({"0.0", "0.1", "1"}), "((False, True), False)"), 1u);
}

// Holds P8: a model that returns one tensor may be given either way.
TEST(Loss, ASingleOutputNeedsNoTuple) {
  EXPECT_EQ(find(returning({"0"}), "True"), 0u);
  EXPECT_EQ(find(returning({"0"}), "(True,)"), 0u);
  EXPECT_EQ(find(returning({"0"}), "[True]"), 0u);
}

TEST(Loss, NamesAndPathsAreUnderstood) {
  const auto model = returning({"loss", "logits.0", "logits.1"});
  const auto named = [&](const std::string& name) { return lossOutput(*model.document, model.computation, name); };
  EXPECT_EQ(named("loss"), 0u);
  EXPECT_EQ(named("logits.1"), 2u);
  EXPECT_EQ(named("b"), 1u);
  EXPECT_EQ(errorOf([&] { named("lost"); }),
            "loss: the model has no output of the name lost; it returns loss (a), logits.0 (b), logits.1 (c)");
}

TEST(Loss, OutputsAreNamedByTheirPaths) {
  auto model = returning({"", "", "", ""});
  nameOutputs(model.computation, {"loss", "logits", "rest.0", "rest.1"});
  EXPECT_EQ(lossOutput(*model.document, model.computation, "rest.0"), 2u);
  nameOutputs(model.computation, {"one", "two"});
  EXPECT_EQ(model.computation.outputs[0].target, "loss") << "they are not those of this model";
}

// Holds P1, P48: what cannot be a loss is among the choices, with the reason.
TEST(Loss, ChoicesSayWhatCannotBeTheLoss) {
  const auto model = returning({"loss", "logits.0", "", ""});
  const auto choices = lossChoices(*model.document, model.computation);
  ASSERT_EQ(choices.size(), 4u);
  EXPECT_EQ(choices[0].place, "loss");
  EXPECT_EQ(choices[0].value, "a");
  EXPECT_EQ(choices[0].type, "cpu f32[]");
  EXPECT_EQ(choices[0].refusal, "");
  EXPECT_EQ(choices[1].refusal, "grad can be implicitly created only for scalar outputs; b is cpu f32[4]");
  EXPECT_EQ(choices[2].place, "2");
  EXPECT_EQ(choices[3].refusal, "Loss spec must specify a dynamic value but got None");
  for (const auto& choice : choices)
    if (choice.refusal.empty()) EXPECT_EQ(lossOutput(*model.document, model.computation, choice.place), 0u);
  EXPECT_EQ(errorOf([&] { requireScalarLoss(*model.document, model.computation, 1); }),
            "loss: grad can be implicitly created only for scalar outputs; b is cpu f32[4]");
}

TEST(Loss, ALossIsOfARealNumber) {
  const auto model = modelOf(R"(
def computation(x):
    # x: "f32[4]"
    a = aten.sum(x)  # a: "f32[]"
    n = aten.argmax(x)  # n: "i64[]"
    return a, n, 3
)");
  const auto choices = lossChoices(*model.document, model.computation);
  EXPECT_EQ(choices.at(0).refusal, "");
  EXPECT_EQ(choices.at(1).refusal, "grad can be implicitly created only for scalar outputs; n is cpu i64[]");
  EXPECT_EQ(choices.at(2).refusal, "Loss spec must specify a dynamic value but got 3");
}

TEST(Loss, MistakesInASpecificationHaveAPlace) {
  for (const auto* text : {"(True", "(True,,)", "{'a' True}", "{a: True}", "maybe", "", "(True) x", "{'a: True}"})
    EXPECT_NE(errorOf([&] { parseLossSpec(text); }).find("at character"), std::string::npos) << text;
  EXPECT_NE(errorOf([&] { parseLossSpec(std::string(1000, '(')); }).find("too deep"), std::string::npos);
}

}  // namespace
}  // namespace retrograd
