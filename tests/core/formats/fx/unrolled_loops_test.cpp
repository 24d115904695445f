#include "core/formats/fx/unrolled_loops.h"

#include <gtest/gtest.h>

#include "core/formats/fx/fx_reader.h"

namespace retrograd::fx {
namespace {

Graph graphOf(const std::string& call) {
  return readGraph(R"py(class G(torch.nn.Module):
    def forward(self, start: "f32[3]", xs: "f32[s0, 3]", w: "f32[3]"):
        # File: /job/train.py:4 in f, code: scan(step, start, xs)
        step = self.step
        scan = )py" + call +
                       R"py(;  step = None
        last: "f32[3]" = scan[0]
        each: "f32[s0, 3]" = scan[1];  scan = None
        return (last, each)

    class step(torch.nn.Module):
        def forward(self, carry: "f32[3]", x: "f32[3]", w: "f32[3]"):
            # File: /job/train.py:9 in step, code: return carry * w + x
            mul: "f32[3]" = torch.ops.aten.mul.Tensor(carry, w)
            add: "f32[3]" = torch.ops.aten.add.Tensor(mul, x);  mul = x = None
            return (add, add)
)py",
                   "test");
}

std::vector<std::string> linesOf(const Graph& graph) {
  std::vector<std::string> names, lines;
  for (std::size_t i = 0; i < graph.valueCount(); ++i) names.push_back(graph.valueName(i));
  for (const auto& node : graph.nodes) lines.push_back(node.name + " = " + toText(node.call, names));
  return lines;
}

const auto two = [](const std::string&) { return std::optional<std::int64_t>(2); };

TEST(UnrolledLoops, StepsOfAScanFollowEachOther) {
  const auto graph = withUnrolledLoops(graphOf("torch.ops.higher_order.scan(step, (start,), (xs,), (w,))"), two);
  EXPECT_EQ(linesOf(graph),
            (std::vector<std::string>{"step = self.step", "scan_0_x0 = torch.ops.aten.select.int(xs, 0, 0)",
                                      "scan_0_mul = torch.ops.aten.mul.Tensor(start, w)",
                                      "scan_0_add = torch.ops.aten.add.Tensor(scan_0_mul, scan_0_x0)",
                                      "scan_1_x0 = torch.ops.aten.select.int(xs, 0, 1)",
                                      "scan_1_mul = torch.ops.aten.mul.Tensor(scan_0_add, w)",
                                      "scan_1_add = torch.ops.aten.add.Tensor(scan_1_mul, scan_1_x0)",
                                      "scan_stack_0 = torch.ops.aten.stack.default([scan_0_add, scan_1_add])",
                                      "scan = self.scan", "last = scan_1_add", "each = scan_stack_0"}));
  const auto& mul = graph.nodes[2];
  EXPECT_EQ(graph.sources[mul.source].line, 9);
  EXPECT_EQ(graph.types[mul.type].text, "f32[3]");
}

TEST(UnrolledLoops, WhatIsNotKnownStays) {
  const auto scan = graphOf("torch.ops.higher_order.scan(step, (start,), (xs,), (w,))");
  EXPECT_EQ(withUnrolledLoops(scan, [](const std::string&) { return std::optional<std::int64_t>(); }).nodes.size(),
            scan.nodes.size());
  const auto fewer = graphOf("torch.ops.higher_order.scan(step, (start,), (xs,), ())");
  EXPECT_EQ(withUnrolledLoops(fewer, two).nodes.size(), fewer.nodes.size());
  const auto loop = graphOf("torch.ops.higher_order.while_loop(step, step, (start,), (xs,))");
  EXPECT_EQ(withUnrolledLoops(loop, two).nodes.size(), loop.nodes.size());
}

}  // namespace
}  // namespace retrograd::fx
