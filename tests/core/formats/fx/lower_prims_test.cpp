#include "core/formats/fx/lower_prims.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/formats/fx/fx_reader.h"

namespace retrograd::fx {
namespace {

Graph lowered(const std::string& body, const std::string& head = "self, x, y, z") {
  return withoutPrims(readGraph("class GraphModule(torch.nn.Module):\n    def forward(" + head + "):\n" + body, "test"))
      .graph;
}

std::vector<std::string> linesOf(const Graph& graph) {
  std::vector<std::string> names, lines;
  for (std::size_t i = 0; i < graph.valueCount(); ++i) names.push_back(graph.valueName(i));
  for (const auto& node : graph.nodes) lines.push_back(node.name + " = " + toText(node.call, names));
  return lines;
}

std::vector<std::string> linesOf(const std::string& right, const std::string& head = "self, x, y, z") {
  return linesOf(lowered("        out = " + right + "\n        return (out,)\n", head));
}

std::string refusal(const std::string& right) {
  try {
    linesOf(right);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    return e.what();
  }
  return "lowered";
}

using Lines = std::vector<std::string>;

TEST(LowerPrims, OneOpSaysTheSame) {
  EXPECT_EQ(linesOf("torch.ops.prims.convert_element_type.default(x, torch.float32)"),
            Lines{"out = torch.ops.aten._to_copy.default(x, dtype = torch.float32)"});
  EXPECT_EQ(linesOf("torch.ops.prims.inductor_seeds.default(2, device(type='cpu'))"),
            Lines{"out = torch.ops.aten.zeros.default([2], dtype = torch.int64, device = device(type = 'cpu'))"});
  EXPECT_EQ(linesOf("torch.ops.prims.inductor_random.default([2, 3], x, 'randn')"),
            Lines{"out = torch.ops.aten.randn.default([2, 3])"});
  EXPECT_EQ(linesOf("torch.ops.prims.rev.default(x, [0])"), Lines{"out = torch.ops.aten.flip.default(x, [0])"});
}

// Inductor multiplies and adds a number as well as a tensor: the scale of a running average.
TEST(LowerPrims, AProductAndASumOfTensorsOrNumbers) {
  EXPECT_EQ(linesOf("torch.ops.prims.fma.default(x, y, z)"), Lines{"out = torch.ops.aten.addcmul.default(z, x, y)"});
  EXPECT_EQ(linesOf("torch.ops.prims.fma.default(x, 0.5, z)"),
            Lines{"out = torch.ops.aten.add.Tensor(z, x, alpha = 0.5)"});
  EXPECT_EQ(linesOf("torch.ops.prims.fma.default(0.5, y, z)"),
            Lines{"out = torch.ops.aten.add.Tensor(z, y, alpha = 0.5)"});
  EXPECT_EQ(linesOf("torch.ops.prims.fma.default(x, y, 1)"),
            (Lines{"out_step_1 = torch.ops.aten.mul.Tensor(x, y)", "out = torch.ops.aten.add.Tensor(out_step_1, 1)"}));
}

TEST(LowerPrims, ARangeIsFromStartToEndBySteps) {
  EXPECT_EQ(
      linesOf("torch.ops.prims.iota.default(4, start = 3, step = -2, dtype = torch.int64, requires_grad = False)"),
      Lines{"out = torch.ops.aten.arange.start_step(3, -5, -2, dtype = torch.int64)"});
  EXPECT_EQ(refusal("torch.ops.prims.iota.default(4, start = None)"),
            "out (line 3 of the graph): a start or step that is not a number");
  EXPECT_EQ(refusal("torch.ops.prims.iota.default(4, start = 0, step = 4611686018427387904)"),
            "out (line 3 of the graph): a range beyond 64 bits");
  EXPECT_EQ(refusal("torch.ops.prims.iota.default('n')"), "out (line 3 of the graph): a length that is not a number");
}

// The length of a dynamic graph is a value of it, whose number is known where it runs.
TEST(LowerPrims, ARangeOfADynamicLengthIsWorkedOutWhereItRuns) {
  const auto graph =
      lowered("        out = torch.ops.prims.iota.default(n, start = 1, step = 2)\n        return (out,)\n",
              "self, n: \"Sym(s0)\"");
  ASSERT_EQ(linesOf(graph),
            (Lines{"out_step_1 = (n * 2) + 1", "out = torch.ops.aten.arange.start_step(1, out_step_1, 2)"}));
  EXPECT_EQ(graph.types.at(graph.nodes[0].type).expression, "(s0)*2 + 1");
}

// Pooling keeps where each maximum lies in its window as one byte. What reads it makes places of the input of it.
TEST(LowerPrims, PoolingHasOffsetsAsInductorHasThem) {
  const auto graph = lowered(
      R"py(        pool = torch.ops.prims._low_memory_max_pool_with_offsets.default(x, [2, 2], [2, 2], [0, 0], [1, 1], False)
        values = pool[0]
        offsets = pool[1]
        places = torch.ops.prims._low_memory_max_pool_offsets_to_indices.default(offsets, [2, 2], [6, 6], [2, 2], [0, 0], [1, 1])
        return (values, places)
)py",
      "self, x: \"f32[1, 1, 6, 6][36, 36, 6, 1]cpu\"");
  const auto lines = linesOf(graph);
  EXPECT_EQ(lines.front(),
            "pool = torch.ops.aten.max_pool2d_with_indices.default(x, [2, 2], [2, 2], [0, 0], [1, 1], False)");
  EXPECT_EQ(lines[1], "values = pool[0]");
  EXPECT_EQ(lines[2], "offsets_step_1 = pool[1]");
  EXPECT_NE(std::find_if(lines.begin(), lines.end(),
                         [](const auto& line) {
                           return line.starts_with("offsets = torch.ops.aten._to_copy.default(") &&
                                  line.ends_with("dtype = torch.int8)");
                         }),
            lines.end());
  EXPECT_TRUE(lines.back().starts_with("places = torch.ops.aten.alias.default("));
  ASSERT_EQ(graph.outputs.size(), 2U);
  EXPECT_EQ(graph.valueName(graph.outputs[1].value.valueIndex()), "places");
}

TEST(LowerPrims, OtherCallsStayAsTheyAre) {
  EXPECT_EQ(linesOf("torch.ops.aten.mm.default(x, y)"), Lines{"out = torch.ops.aten.mm.default(x, y)"});
  EXPECT_TRUE(isLoweredPrim("prims.iota.default"));
  EXPECT_TRUE(isLoweredPrim("prims.view_of.default"));
  EXPECT_FALSE(isLoweredPrim("prims.fft_c2c.default"));
  EXPECT_FALSE(isLoweredPrim("aten.iota.default"));
}

}  // namespace
}  // namespace retrograd::fx
