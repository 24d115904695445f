#include "core/cut/cuts.h"

#include "tests/core/cut/text_models.h"

namespace retrograd {
namespace {

using namespace test;

constexpr const char* marked = R"(
def computation(x):
    # x: "f32[4]"
    pippy._pipe_split.default()
    a = aten.sin(x)  # a: "f32[4]"
    pippy._pipe_split.default()
    pippy._pipe_split.default()
    b = aten.cos(a)  # b: "f32[4]"
    c = aten.tanh(b)  # c: "f32[4]"
    pippy._pipe_split.default()
    d = aten.exp(c)  # d: "f32[4]"
    pippy._pipe_split.default()
    return d
)";

constexpr const char* modules = R"(
def computation(x):
    # x: "f32[4]"
    # module: first
    a = aten.sin(x)  # a: "f32[4]"
    # module: layers.0
    b = aten.cos(a)  # b: "f32[4]"
    # module: layers.0.act
    c = aten.tanh(b)  # c: "f32[4]"
    # module: layers.1
    d = aten.exp(c)  # d: "f32[4]"
    # module: layers.0
    e = aten.cos(d)  # e: "f32[4]"
    f = aten.tanh(e)  # f: "f32[4]"
    return f
)";

Cuts at(const ModelFile& model, const Names& points, const ModuleCalls& calls = {}) {
  return cutsAt(*model.document, model.computation, points, calls);
}

/// The ops of each stage, by the names of their values.
std::vector<Names> stages(const ModelFile& model, const Cuts& cuts) {
  std::vector<Names> found;
  for (const auto& stage : splitOf(model, cuts).stages) found.push_back(opsOf(model, stage));
  return found;
}

TEST(Cuts, MarkersBeginStagesAndEmptyOnesCollapse) {
  const auto model = modelOf(marked);
  EXPECT_EQ(markers(model).size(), 5u);
  EXPECT_EQ(stages(model, markers(model)), (std::vector<Names>{{"a"}, {"b", "c"}, {"d"}}));
}

TEST(Cuts, NoMarkerIsOneStage) {
  const auto model =
      modelOf("def computation(x):\n    # x: \"f32[4]\"\n    a = aten.sin(x)  # a: \"f32[4]\"\n    return a\n");
  EXPECT_TRUE(markers(model).empty());
  EXPECT_EQ(stages(model, {}), (std::vector<Names>{{"a"}}));
}

TEST(Cuts, BeforeAndBehindAModule) {
  const auto model = modelOf(modules);
  EXPECT_EQ(stages(model, at(model, {"layers.1"})), (std::vector<Names>{{"a", "b", "c"}, {"d", "e", "f"}}));
  EXPECT_EQ(stages(model, at(model, {"layers.1:before"})), (std::vector<Names>{{"a", "b", "c"}, {"d", "e", "f"}}));
  EXPECT_EQ(stages(model, at(model, {"layers.1:after"})), (std::vector<Names>{{"a", "b", "c", "d"}, {"e", "f"}}));
}

TEST(Cuts, AModuleCalledTwiceIsCutTwice) {
  const auto model = modelOf(modules);
  EXPECT_EQ(stages(model, at(model, {"layers.0"})), (std::vector<Names>{{"a"}, {"b", "c", "d"}, {"e", "f"}}));
  EXPECT_EQ(stages(model, at(model, {"layers.0:after"})), (std::vector<Names>{{"a", "b", "c"}, {"d", "e", "f"}}))
      << "the last cut leaves nothing behind it";
}

// Holds P19: two calls with nothing between them are distinguished where the file numbers them.
TEST(Cuts, CallsInARowAreDistinguishedByTheirNumbers) {
  const auto model = modelOf(modules);
  const ModuleCalls calls{
      {"e", {{"layers.0", 1}}}, {"f", {{"layers.0", 2}}}, {"b", {{"layers.0", 0}}}, {"c", {{"layers.0", 0}}}};
  EXPECT_EQ(stages(model, at(model, {"layers.0"}, calls)), (std::vector<Names>{{"a"}, {"b", "c", "d"}, {"e"}, {"f"}}));
}

TEST(Cuts, AtAnOp) {
  const auto model = modelOf(modules);
  EXPECT_EQ(stages(model, at(model, {"#d", "#b:after"})), (std::vector<Names>{{"a", "b"}, {"c"}, {"d", "e", "f"}}));
  EXPECT_NE(errorOf([&] { at(model, {"#nothing"}); }).find("no op of this name"), std::string::npos);
}

TEST(Cuts, WhatIsNotThereIsNamed) {
  const auto model = modelOf(modules);
  EXPECT_NE(errorOf([&] {
              at(model, {"stem.conv.0"});
            }).find("Specified target stem.conv.0 referenced nonexistent module stem;"),
            std::string::npos);
  EXPECT_NE(
      errorOf([&] {
        at(model, {"layers.7.act"});
      }).find("Specified target layers.7.act referenced nonexistent module layers.7; there are layers.0, layers.1"),
      std::string::npos);
  EXPECT_NE(errorOf([&] {
              at(model, {"layers.2"});
            }).find("Specified target layers.2 referenced nonexistent module layers.2;"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { at(model, {"layers.1:middle"}); }).find("Unknown split point type 'middle'"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { at(model, {":before"}); }).find("names neither a module nor an op"), std::string::npos);
}

constexpr const char* region = R"(
def computation(x):
    # x: "f32[4]"
    # module: first
    a = aten.sin(x)  # a: "f32[4]"
    def body(y):
        # module: inner.0
        b = aten.cos(y)  # b: "f32[4]"
        # module: inner.1
        c = aten.tanh(b)  # c: "f32[4]"
        return (c,)
    # module: inner
    d = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body, a)  # d: "f32[4]"
    # module: last
    e = aten.exp(d)  # e: "f32[4]"
    return e
)";

TEST(Cuts, RegionsStayWhole) {
  const auto model = modelOf(region);
  EXPECT_EQ(stages(model, at(model, {"inner"})), (std::vector<Names>{{"a"}, {"d", "e"}}));
  EXPECT_EQ(stages(model, at(model, {"inner:after"})), (std::vector<Names>{{"a", "d"}, {"e"}}));
  for (const auto* point : {"#c", "inner.1"})
    EXPECT_NE(errorOf([&] { at(model, {point}); }).find("which runs whole in one stage; cut before or behind #d"),
              std::string::npos)
        << errorOf([&] { at(model, {point}); });
  std::string text = region;
  text.replace(text.find("        # module: inner.1"), 0, "        pippy._pipe_split.default()\n");
  EXPECT_NE(errorOf([&] { markers(modelOf(text)); }).find("lies inside this region"), std::string::npos);
}

}  // namespace
}  // namespace retrograd
