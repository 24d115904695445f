#include "core/formats/fx/fx_reader.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/core/formats/cases.h"

namespace retrograd::fx {
namespace {

using Kind = Expression::Kind;

Graph graphOf(const std::string& body,
              const std::string& head = "self, x: \"f32[2, 3][3, 1]cpu\", y: \"f32[2, 3][3, 1]cpu\"") {
  return readGraph("class GraphModule(torch.nn.Module):\n    def forward(" + head + "):\n" + body, "test");
}

std::vector<std::string> namesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < graph.valueCount(); ++i) names.push_back(graph.valueName(i));
  return names;
}

std::string callText(const Graph& graph, std::size_t node) { return toText(graph.nodes.at(node).call, namesOf(graph)); }

std::string refusal(const std::string& text) {
  try {
    readGraph(text, "test");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    return e.what();
  }
  return "read";
}

// J5: lines of ops, items, methods and operators, with their types.
TEST(FxReader, J5_LinesWithTypesBecomeNodes) {
  const auto graph = graphOf(
      R"py(        mm: "bf16[2, 8*s0][Sym(8*s0), 1]cuda:1" = torch.ops.aten.mm.default(x, y, k = [1, -2], out = None);  x = y = None
        split = torch.ops.aten.split.Tensor(mm, 32, -1)
        item: "f32[2][1]cpu" = split[1];  split = None
        n: "Sym(8*s13)" = item.item()
        sum_1: "f32[2]" = item + n;  item = n = None
        iadd = sum_1;  iadd = None
        return (sum_1, None, 3)
)py");
  ASSERT_EQ(graph.nodes.size(), 6U);
  EXPECT_EQ(callText(graph, 0), "torch.ops.aten.mm.default(x, y, k = [1, -2], out = None)");
  const auto& type = graph.types.at(graph.nodes[0].type);
  EXPECT_EQ(type.kind, Type::Kind::tensor);
  EXPECT_EQ(type.dtype, DType::bf16);
  EXPECT_EQ(type.sizes, (std::vector<std::string>{"2", "8*s0"}));
  EXPECT_EQ(type.strides, (std::vector<std::string>{"8*s0", "1"}));
  EXPECT_EQ(type.device, "cuda:1");
  EXPECT_EQ(graph.nodes[1].type, noIndex);
  EXPECT_EQ(callText(graph, 2), "split[1]");
  EXPECT_EQ(graph.types.at(graph.nodes[3].type).expression, "8*s13");
  EXPECT_EQ(callText(graph, 3), "item.item()");
  EXPECT_EQ(callText(graph, 4), "item + n");
  EXPECT_FALSE(graph.types.at(graph.nodes[4].type).hasStrides);
  EXPECT_EQ(graph.nodes[5].call.kind, Kind::value);
  EXPECT_EQ(graph.outputs.size(), 3U);
  EXPECT_EQ(graph.outputs[1].value.kind, Kind::none);
}

// J5: every literal that PyTorch prints.
TEST(FxReader, J5_Literals) {
  const auto graph = graphOf(
      "        a = f(device(type='cpu', index=0), torch.float32, torch.strided, inf, -inf, nan, complex(1.5, -2), "
      "1e-05, True, ..., 1j)\n"
      "        b = a[(slice(None, None, None), Ellipsis, None)]\n"
      "        c = x[0:2, :, ::3]\n"
      "        d = f(18446744073709551615, -9223372036854775808, \"it's\", 'a\\'\\n\\u00e9', (1,), {'k': [x]})\n"
      "        return c\n");
  const auto& items = graph.nodes[0].call.items;
  EXPECT_TRUE(items[1].isCallOf("device"));
  EXPECT_EQ(items[1].keyword("type")->text, "cpu");
  EXPECT_TRUE(items[2].isPath("torch.float32"));
  EXPECT_TRUE(std::isinf(items[4].real) && items[5].real < 0);
  EXPECT_TRUE(std::isnan(items[6].real));
  EXPECT_EQ(items[7].kind, Kind::complex);
  EXPECT_EQ(items[7].imaginary, -2);
  EXPECT_EQ(items[8].real, 1e-05);
  EXPECT_EQ(items[10].kind, Kind::ellipsis);
  EXPECT_EQ(items[11].imaginary, 1);
  EXPECT_EQ(callText(graph, 1), "a[(slice(None, None, None), ..., None)]");
  EXPECT_EQ(callText(graph, 2), "x[(0:2, :, ::3)]");
  const auto& d = graph.nodes[3].call.items;
  EXPECT_EQ(d[1].kind, Kind::bigInteger);
  EXPECT_EQ(d[2].integer, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(d[3].text, "it's");
  EXPECT_EQ(d[4].text, "a'\n\xc3\xa9");
  EXPECT_EQ(graph.returns, Graph::Return::single);
}

// J5: constants of the module, bodies of higher-order ops, ops in place.
TEST(FxReader, J5_ConstantsBodiesAndWrites) {
  const auto graph = graphOf(R"py(        wrap_body_0 = self.wrap_body_0
        out = torch.ops.higher_order.tag_activation_checkpoint(wrap_body_0, x, use_reentrant = False);  wrap_body_0 = x = None
        _tensor_constant0: "i64[3][1]cpu" = self._tensor_constant0;  _tensor_constant0 = None
        deep = getattr(self.layers, "0").weight
        out += y;  iadd: "f32[2]" = out;  y = None
        out[0] = iadd;  setitem = out;  setitem = None
        return [out]

    class wrap_body_0(torch.nn.Module):
        def forward(self, x: "f32[2, 3][3, 1]cpu"):
            gelu = torch._C._nn.gelu(x);  x = None
            return (gelu,)
)py");
  EXPECT_EQ(ownAttribute(graph.nodes[0].call), "wrap_body_0");
  EXPECT_EQ(ownAttribute(graph.nodes[3].call), "layers.0.weight");
  EXPECT_EQ(callText(graph, 4), "out += y");
  EXPECT_EQ(callText(graph, 5), "out[0] = iadd");
  ASSERT_NE(graph.body("wrap_body_0"), nullptr);
  EXPECT_EQ(graph.body("wrap_body_0")->nodes.size(), 1U);
  EXPECT_EQ(graph.returns, Graph::Return::list);
}

// J6: a comment holds for the nodes after it.
TEST(FxReader, J6_CommentsGiveSources) {
  const auto graph = graphOf(R"py(        # File: /job/train.py:19 in <genexpr>, code: q, k = (y for y in x)
        a = f(x)
        # graph id: 7
        b = f(a)

        # ac_graph_id: 5 - PREFER_RECOMPUTE Backward of forward node: File: /job/a:b.py:3 in step, code: # not a note, code: x
        c = f(b)
        # recompute: MUST_SAVE No stacktrace found for following nodes
        d = f(c)
        # Annotation: {'stage': "a}b", 'n': {'k': 1}} File: t.py:1 in f, code: x
        e = f(d)
        return e
)py");
  const auto& source = [&](std::size_t node) -> const Source& { return graph.sources.at(graph.nodes.at(node).source); };
  EXPECT_EQ(source(0).file, "/job/train.py");
  EXPECT_EQ(source(0).line, 19);
  EXPECT_EQ(source(0).function, "<genexpr>");
  EXPECT_EQ(source(0).code, "q, k = (y for y in x)");
  EXPECT_EQ(graph.nodes[0].source, graph.nodes[1].source);
  EXPECT_EQ(source(2).checkpoint, 5);
  EXPECT_EQ(source(2).policy, "PREFER_RECOMPUTE");
  EXPECT_TRUE(source(2).backward);
  EXPECT_EQ(source(2).file, "/job/a:b.py");
  EXPECT_EQ(source(2).line, 3);
  EXPECT_EQ(source(3).policy, "MUST_SAVE");
  EXPECT_TRUE(source(3).file.empty());
  EXPECT_EQ(source(4).annotation, "{'stage': \"a}b\", 'n': {'k': 1}}");
  EXPECT_EQ(source(4).file, "t.py");
  EXPECT_TRUE(graph.hasBackwardMarks);
  EXPECT_TRUE(graph.hasCheckpointTags);
}

// J7, J8: descriptors of 2.9 and later, inputs in lines of their own.
TEST(FxReader, J7_DescriptorsOfInputsAndOutputs) {
  const auto graph = readGraph(R"py(class inner_f(torch.nn.Module):
    def forward(
        self,
        primals,
        tangents,
    ):
        primals_1: "f32[8, 16][16, 1]cpu"  # PlainAOTInput(idx=0)
        primals_3: "f32[32, 16][16, 1]cpu"  # SubclassGetAttrAOTInput(base=PlainAOTInput(idx=2), attr='_local_tensor')
        tangents_1: "f32[][]cpu"  # TangentAOTInput(output=PlainAOTOutput(idx=0))
        primals_1, primals_2  , primals_3, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        # File: t.py:1 in f, code: x
        mm: "f32[8, 16][16, 1]cpu" = torch.ops.aten.mm.default(primals_1, primals_3);  primals_1 = primals_3 = None
        return pytree.tree_unflatten([
            mm,  # PlainAOTOutput(idx=0)
            None,  # None
            primals_2,  # SubclassGetAttrAOTOutput(base=GradAOTOutput(grad_of=PlainAOTInput(idx=2)), attr='device_mesh')
        ], self._out_spec)
)py",
                               "test");
  EXPECT_EQ(graph.groups, (std::vector<std::string>{"primals", "tangents"}));
  ASSERT_EQ(graph.inputs.size(), 4U);
  EXPECT_EQ(graph.inputs[0].descriptor.plainIndex(), 0);
  EXPECT_TRUE(graph.inputs[1].dropped);  // J9
  EXPECT_FALSE(graph.inputs[2].dropped);
  EXPECT_EQ(graph.inputs[2].descriptor.kind(), "SubclassGetAttrAOTInput");
  EXPECT_EQ(graph.inputs[2].descriptor.plainIndex(), 2);
  EXPECT_EQ(graph.inputs[3].descriptor.kind(), "TangentAOTInput");
  EXPECT_EQ(graph.returns, Graph::Return::pytree);
  EXPECT_EQ(graph.outputs[0].descriptor.kind(), "PlainAOTOutput");
  EXPECT_EQ(graph.outputs[2].descriptor.plainIndex(), 2);
  EXPECT_EQ(writtenBy(graph), "PyTorch 2.9 or later");
}

// J7: the forward's outputs say what is saved.
TEST(FxReader, J7_DescriptorsInParametersAndReturn) {
  const auto graph = readGraph(R"py(class GraphModule(torch.nn.Module):
    def forward(
        self,
        primals_1: "bf16[4, 64][64, 1]cpu",  # PlainAOTInput(idx=0)
        _to_copy: "f32[4, 64][64, 1]cpu",
        tangents_1: "f32[][]cpu"  # TangentAOTInput(output=PlainAOTOutput(idx=0))
    ):
        return (
            primals_1,  # PlainAOTOutput(idx=0)
            _to_copy,  # SavedForBackwardsAOTOutput(idx=0)
        )
)py",
                               "test");
  EXPECT_EQ(graph.inputs[0].descriptor.kind(), "PlainAOTInput");
  EXPECT_TRUE(graph.inputs[1].descriptor.text.empty());
  EXPECT_EQ(graph.inputs[2].descriptor.kind(), "TangentAOTInput");
  EXPECT_EQ(graph.outputs[1].descriptor.kind(), "SavedForBackwardsAOTOutput");
}

// J8: 2.6 writes placeholders on one line.
TEST(FxReader, J8_OneLineOfInputs) {
  const auto graph = readGraph(
      "class joint_helper(torch.nn.Module):\n    def forward(self, primals, tangents):\n"
      "        primals_1: \"f32[2][1]cpu\"; tangents_1: \"f32[2][1]cpu\"; \n    \n"
      "        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)\n"
      "         # File: /job/train.py:33 in forward, code: x\n"
      "        mul: \"f32[2][1]cpu\" = torch.ops.aten.mul.Tensor(primals_1, tangents_1)\n"
      "        return pytree.tree_unflatten([mul, None], self._out_spec)\n        ",
      "test");
  EXPECT_EQ(graph.inputs.size(), 2U);
  EXPECT_EQ(graph.types.at(graph.inputs[1].type).text, "f32[2][1]cpu");
  EXPECT_EQ(graph.sources.at(graph.nodes[0].source).line, 33);
  EXPECT_EQ(writtenBy(graph), "PyTorch 2.6 to 2.8");
}

// J9: sizes of a DTensor that nobody uses are named and not declared; what is computed on is a local shard; collectives
// are ops like others.
TEST(FxReader, J9_LocalShardsAndDroppedSizesOfADTensor) {
  const auto graph = readGraph(
      "class inner_f(torch.nn.Module):\n    def forward(\n        self,\n        primals,\n        tangents,\n    ):\n"
      "        primals_1: \"f32[8, 16][16, 1]cpu\"  # PlainAOTInput(idx=0)\n"
      "        primals_3: \"f32[16, 16][16, 1]cpu\"  # SubclassGetAttrAOTInput(base=PlainAOTInput(idx=2), "
      "attr='_local_tensor')\n"
      "        primals_1, primals_2  , primals_3, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)\n"
      "        whole: \"DTensor(f32[16, 16], mesh=DeviceMesh('cpu', [0, 1]), placements=(Shard(dim=0),))\" = "
      "torch.ops.aten.alias.default(primals_3)\n"
      "        mm: \"f32[8, 16][16, 1]cpu\" = torch.ops.aten.mm.default(primals_1, primals_3)\n"
      "        all_reduce: \"f32[8, 16][16, 1]cpu\" = torch.ops._c10d_functional.all_reduce.default(mm, 'sum', '0');  "
      "mm = None\n"
      "        wait_tensor: \"f32[8, 16][16, 1]cpu\" = torch.ops._c10d_functional.wait_tensor.default(all_reduce);  "
      "all_reduce = None\n"
      "        return pytree.tree_unflatten([\n            wait_tensor,  # PlainAOTOutput(idx=0)\n"
      "            primals_2,  # SubclassGetAttrAOTOutput(base=GradAOTOutput(grad_of=PlainAOTInput(idx=2)), "
      "attr='device_mesh')\n"
      "        ], self._out_spec)\n",
      "test");
  ASSERT_EQ(graph.inputs.size(), 3U);
  EXPECT_FALSE(graph.inputs[0].dropped);
  EXPECT_TRUE(graph.inputs[1].dropped);
  EXPECT_EQ(graph.inputs[1].type, noIndex);
  EXPECT_FALSE(graph.inputs[2].dropped);
  EXPECT_EQ(graph.inputs[2].descriptor.kind(), "SubclassGetAttrAOTInput");
  EXPECT_EQ(graph.inputs[2].descriptor.plainIndex(), 2);
  EXPECT_EQ(graph.types.at(graph.nodes[0].type).kind, Type::Kind::dtensor);
  EXPECT_EQ(graph.nodes[2].call.items[0].text, "torch.ops._c10d_functional.all_reduce.default");
  ASSERT_EQ(graph.outputs.size(), 2U);
  EXPECT_EQ(graph.outputs[1].value.integer, 1);
}

// Dynamo's graphs rename their parameters first.
TEST(FxReader, J3_ParametersOfDynamoGraphsKeepBothNames) {
  const auto graph = graphOf("        l_x_ = x\n        y_1 = y\n        return (l_x_, y_1)\n");
  EXPECT_TRUE(graph.nodes.empty());
  EXPECT_EQ(graph.inputs[0].name, "l_x_");
  EXPECT_EQ(graph.inputs[0].target, "x");
  EXPECT_EQ(graph.outputs[1].value.integer, 1);
}

// J11: the class without types, how its arguments are loaded, where the storages lie. Kernels before it are not read.
TEST(FxReader, J11_ReproScript) {
  const auto repro = readRepro(R"py(s23 = 2
import torch
# torch version: 2.15.0
@triton.jit
def kernel(x, BLOCK: tl.constexpr): x = $ not python
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer('_tensor_constant0', torch.tensor([1,
            2], dtype=torch.int64))
        self.sub = <lambda>()

    def forward(self, primals_1, primals_2):
        mm = torch.ops.aten.mm.default(primals_1, primals_2);  primals_1 = primals_2 = None
        return [mm]

def load_args(reader):
    buf0 = reader.storage('16a2', 256, dtype_hint=torch.int64)
    reader.tensor(buf0, (8, 8), (8, 1), dtype=torch.int64, is_leaf=True)  # primals_1
    reader.symint(12)  # primals_2
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, save_dir='/job/x')
        # mod, args = run_repro(mod, load_args, save_dir=None)
)py",
                               "test");
  EXPECT_EQ(repro.torchVersion, "2.15.0");
  EXPECT_EQ(repro.sizes.at("s23"), 2);
  ASSERT_EQ(repro.graph.constants.size(), 2U);
  EXPECT_EQ(repro.graph.constants[0].name, "_tensor_constant0");
  EXPECT_TRUE(readExpression(repro.graph.constants[0].text, "test").isCallOf("torch.tensor"));
  EXPECT_EQ(repro.graph.constants[1].text, "<lambda>()");
  ASSERT_EQ(repro.loadArgs.size(), 4U);
  EXPECT_EQ(repro.loadArgs[0].target, "buf0");
  EXPECT_EQ(repro.loadArgs[1].comment, "primals_1");
  EXPECT_EQ(repro.loadArgs[1].expression.keyword("dtype")->text, "torch.int64");
  EXPECT_EQ(repro.loadArgs[3].target, "load_args._version");
  ASSERT_EQ(repro.runs.size(), 1U);
  EXPECT_EQ(repro.runs[0].keyword("save_dir")->text, "/job/x");
}

TEST(FxReader, J5_TextThatIsNotAGraphIsRefusedWithItsPlace) {
  const std::string head = "class G(torch.nn.Module):\n    def forward(self, x):\n";
  EXPECT_NE(refusal("").find("expected 'class', found the end of the text"), std::string::npos);
  EXPECT_NE(refusal(head + "        y = f(x\n").find("test:4:1: expected ',' or ')'"), std::string::npos);
  EXPECT_NE(refusal(head + "        y = f(x)\n").find("has no 'return'"), std::string::npos);
  EXPECT_NE(refusal(head + "        y = f(x)\n        y = f(x)\n        return y\n").find("'y' is defined twice"),
            std::string::npos);
  EXPECT_NE(refusal(head + "        import os\n        return x\n").find("test:3:9"), std::string::npos);
  EXPECT_NE(refusal(head + "        x: \"f32[]\"\n        return x\n").find("declared and never unpacked"),
            std::string::npos);
  EXPECT_NE(refusal(head + "        return x\nprint(1)\n").find("expected the end of the graph"), std::string::npos);
  EXPECT_NE(refusal(head + "        y = " + std::string(5000, '(') + "\n").find("nests too deeply"), std::string::npos);
  EXPECT_NE(refusal(head + "        y = x" + std::string(5000, '.').replace(0, 0, "") + "\n").find("test:3"),
            std::string::npos);
  std::string chain = head + "        y = x";
  for (int i = 0; i < 5000; ++i) chain += " + x";
  EXPECT_NE(refusal(chain + "\n").find("nests too deeply"), std::string::npos);
}

// J5: all graphs of the samples read, and what is printed of an expression reads back as the same.
TEST(FxReader, J5_GraphsOfTheSamplesRead) {
  const auto folder = test::cases() / "jobs" / "tlparse";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the samples are not beside this checkout";
  int read = 0;
  for (const auto& path : test::filesBelow(folder, ".txt")) {
    if (path.find("_graph_") == std::string::npos || path.find("metadata") != std::string::npos ||
        path.find("runnable") != std::string::npos)
      continue;
    const auto graph = readGraph(test::contentOf(path), path);
    const auto names = namesOf(graph);
    for (const auto& node : graph.nodes) {
      const auto text = toText(node.call, names);
      EXPECT_EQ(toText(readExpression(text, path), names), text);
    }
    ++read;
  }
  EXPECT_GE(read, 10);
}

}  // namespace
}  // namespace retrograd::fx
