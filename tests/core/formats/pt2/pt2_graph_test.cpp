// Graphs written by hand: kinds of arguments and ops that the kept models do not have.
#include <gtest/gtest.h>

#include "core/formats/pt2/pt2.h"
#include "core/formats/zip/archive.h"
#include "tests/core/formats/stub_symbols.h"
#include "tests/core/formats/zip/zip_writer.h"

namespace retrograd {
namespace {

std::string tensor(const std::string& name) { return R"({"as_tensor": {"name": ")" + name + "\"}}"; }

/// name: f32[2, 4] unless given otherwise
std::string meta(const std::string& name, const std::string& sizes = R"([{"as_int": 2}, {"as_int": 4}])",
                 const std::string& strides = R"([{"as_int": 4}, {"as_int": 1}])", int dtype = 7) {
  return "\"" + name + R"(": {"dtype": )" + std::to_string(dtype) + R"(, "sizes": )" + sizes + R"(, "strides": )" +
         strides +
         R"(, "requires_grad": false, "device": {"type": "cpu", "index": null}, "storage_offset": {"as_int": 0}, "layout": 7})";
}

std::string argument(const std::string& name, const std::string& value) {
  return R"({"name": ")" + name + R"(", "arg": )" + value + R"(, "kind": 1})";
}

std::string node(const std::string& target, const std::string& inputs, const std::string& outputs,
                 const std::string& metadata = "") {
  return R"({"target": ")" + target + R"(", "inputs": [)" + inputs + R"(], "outputs": [)" + outputs +
         R"(], "metadata": {)" + metadata + "}}";
}

struct Graph {
  std::string inputs = tensor("x"), outputs = tensor("x"), nodes, metas = meta("x");
  std::string inputSpecs = R"({"user_input": {"arg": )" + tensor("x") + "}}";
  std::string outputSpecs = R"({"user_output": {"arg": )" + tensor("x") + "}}";

  std::string body() const {
    return R"({"inputs": [)" + inputs + R"(], "outputs": [)" + outputs + R"(], "nodes": [)" + nodes +
           R"(], "tensor_values": {)" + metas + "}}";
  }
  ModelFile read() const {
    const auto json = R"({"torch_version": "2.15", "graph_module": {"graph": )" + body() +
                      R"(, "signature": {"input_specs": [)" + inputSpecs + R"(], "output_specs": [)" + outputSpecs +
                      "]}}}";
    auto kept = std::make_shared<std::string>(test::makeZip({{"models/model.json", json}}));
    const auto archive =
        Archive::open(ByteRegion{reinterpret_cast<const std::byte*>(kept->data()), kept->size(), kept}, "hand.pt2");
    return readPt2(archive, test::stubLookup, {});
  }
};

const CallPattern& patternOf(const ModelFile& file, std::size_t op) {
  return file.document->pattern(file.document->boundSymbol(file.computation.trace.ops.at(op)).pattern);
}
const BoundSymbol& boundOf(const ModelFile& file, std::size_t op) {
  return file.document->boundSymbol(file.computation.trace.ops.at(op));
}

TEST(Pt2Graph, symbolicSizes) {
  Graph graph;
  graph.metas =
      meta("x",
           R"j([{"as_expr": {"expr_str": "Symbol('s0', integer=True)", "hint": {"as_int": 6}}}, {"as_int": 4}])j") +
      ", " + meta("full");
  graph.nodes =
      node("_operator.mul", argument("a", R"({"as_int": 2})") + "," + argument("b", R"({"as_int": 3})"),
           R"({"as_sym_int": {"as_name": "n"}})") +
      "," +
      node("torch.ops.aten.full.default",
           argument("size", R"({"as_sym_ints": [{"as_name": "n"}, {"as_int": 4}]})") + "," +
               argument("fill_value", R"({"as_int": 1})") + "," + argument("dtype", R"({"as_scalar_type": 7})") + "," +
               argument("device", R"({"as_device": {"type": "cuda", "index": 1}})"),
           tensor("full"));
  const auto file = graph.read();
  const auto& document = *file.document;
  const auto& x = document.meta(file.computation.inputs[0].value);
  EXPECT_EQ(x.sizes[0], 6);
  EXPECT_EQ(x.symbols[0], "s0");
  EXPECT_EQ(document.symbol(boundOf(file, 0).symbol).name, "_operator.mul");
  EXPECT_EQ(patternOf(file, 0).names, (std::vector<std::string>{"a", "b"}));
  const auto number = document.outputs(file.computation.trace.ops[0])[0];
  EXPECT_FALSE(document.isTensor(number));
  const auto& full = patternOf(file, 1);
  EXPECT_EQ(full.arguments[0], Argument::ofList({Argument::ofOperand(0), Argument::ofInt(4)}));
  EXPECT_EQ(full.arguments[2], Argument::ofDType(DType::f32));
  EXPECT_EQ(full.arguments[3].kind, Argument::Kind::missing);
  EXPECT_EQ(full.arguments[4], Argument::ofDevice("cuda:1"));
  EXPECT_EQ(document.operands(file.computation.trace.ops[1])[0], number);
}

TEST(Pt2Graph, listsFollowTheSchema) {
  Graph graph;
  graph.metas = meta("x") + "," + meta("a") + "," + meta("b") + "," + meta("cat") + "," + meta("i") + "," + meta("v");
  graph.nodes =
      node("torch.ops.aten.chunk.default", argument("self", tensor("x")) + "," + argument("chunks", R"({"as_int": 2})"),
           R"({"as_tensors": [{"name": "a"}, {"name": "b"}]})") +
      "," + node("torch.ops.aten.cat.default", argument("tensors", R"({"as_ints": []})"), tensor("cat")) + "," +
      node("torch.ops.aten.index.Tensor",
           argument("self", tensor("x")) + "," + argument("indices", R"({"as_tensors": [{"name": "a"}]})"),
           tensor("i")) +
      "," +
      node("torch.ops.aten.var.correction", argument("self", tensor("x")) + "," + argument("dim", R"({"as_int": 1})"),
           tensor("v"));
  const auto file = graph.read();
  const auto& document = *file.document;
  EXPECT_EQ(patternOf(file, 0).returns, (std::vector<std::int32_t>{2}));
  const auto parts = document.outputs(file.computation.trace.ops[0]);
  EXPECT_EQ(document.value(parts[1]).storage, document.value(file.computation.inputs[0].value).storage);
  EXPECT_EQ(patternOf(file, 1).arguments[0], Argument::ofList({}));
  EXPECT_TRUE(patternOf(file, 2).arguments[1].optionalList);
  EXPECT_EQ(patternOf(file, 3).arguments[1], Argument::ofList({Argument::ofInt(1)}));
}

TEST(Pt2Graph, anUnknownKindOfOptionalTensorIsRefusedNotLeftOut) {
  const auto indices = [](const std::string& entry) {
    Graph graph;
    graph.metas = meta("x") + "," + meta("i");
    graph.nodes =
        node("torch.ops.aten.index.Tensor",
             argument("self", tensor("x")) + "," + argument("indices", R"({"as_optional_tensors": [)" + entry + "]}"),
             tensor("i"));
    return graph.read();
  };
  EXPECT_EQ(patternOf(indices(R"({"as_none": true})"), 0).arguments[1].kind, Argument::Kind::list);
  EXPECT_THROW(indices(R"({"as_sparse_tensor": {"name": "x"}})"), Error);
}

TEST(Pt2Graph, numbersForTensorsStayNumbersAndIntegersForFloatsBecomeReal) {
  Graph graph;
  graph.metas = meta("x") + "," + meta("y") + "," + meta("z");
  graph.nodes = node("torch.ops.aten.add.Tensor",
                     argument("self", tensor("x")) + "," + argument("other", R"({"as_int": 2})"), tensor("y"));
  EXPECT_EQ(patternOf(graph.read(), 0).arguments[1], Argument::ofInt(2));
  graph.nodes =
      node("torch.ops.aten.batch_norm.default",
           argument("input", tensor("x")) + "," + argument("weight", R"({"as_none": true})") + "," +
               argument("bias", R"({"as_none": true})") + "," + argument("running_mean", R"({"as_none": true})") + "," +
               argument("running_var", R"({"as_none": true})") + "," + argument("training", R"({"as_bool": true})") +
               "," + argument("momentum", R"({"as_float": "Infinity"})") + "," + argument("eps", R"({"as_int": 1})") +
               "," + argument("cudnn_enabled", R"({"as_bool": false})"),
           tensor("z"));
  const auto file = graph.read();
  EXPECT_EQ(patternOf(file, 0).arguments[7], Argument::ofReal(1));
  EXPECT_EQ(boundOf(file, 0).effects, 0);  // no statistics to write
}

TEST(Pt2Graph, noGradRegions) {
  Graph inner;
  inner.metas = meta("x") + "," + meta("y");
  inner.outputs = tensor("y");
  inner.nodes = node("torch.ops.aten.sin.default", argument("self", tensor("x")), tensor("y"));
  Graph graph;
  graph.metas = meta("x") + "," + meta("z");
  graph.nodes = node("torch.ops.higher_order.wrap_with_set_grad_enabled",
                     argument("", R"({"as_bool": false})") + "," +
                         argument("", R"({"as_graph": {"name": "body", "graph": )" + inner.body() + "}}") + "," +
                         argument("", tensor("x")),
                     tensor("z"));
  const auto file = graph.read();
  EXPECT_TRUE(boundOf(file, 0).gradMode);
  const auto& body = file.document->subgraph(SubgraphId(patternOf(file, 0).arguments[1].integer));
  ASSERT_EQ(body.ops.size(), 1u);
  EXPECT_FALSE(file.document->boundSymbol(body.ops[0]).gradMode);
  EXPECT_EQ(file.document->value(body.inputs[0]).storage,
            file.document->value(file.computation.inputs[0].value).storage);
}

TEST(Pt2Graph, tokensOrderAndAreNotTensors) {
  Graph graph;
  graph.inputs = tensor("token") + "," + tensor("x");
  graph.inputSpecs = R"({"token": {"arg": {"name": "token"}}}, )" + graph.inputSpecs;
  graph.metas = meta("token", "[]", "[]") + "," + meta("x") + "," + meta("y");
  graph.nodes =
      node("torch.ops.higher_order.with_effects",
           argument("", tensor("token")) + "," + argument("", R"({"as_operator": "torch.ops.aten.sin.default"})") +
               "," + argument("", tensor("x")),
           tensor("token_1") + "," + tensor("y"));
  graph.outputs = tensor("token_1") + "," + tensor("y");
  graph.outputSpecs = R"({"token": {"arg": {"name": "token_1"}}}, {"user_output": {"arg": )" + tensor("y") + "}}";
  const auto file = graph.read();
  EXPECT_EQ(file.computation.inputs[0].kind, InputKind::token);
  EXPECT_FALSE(file.document->isTensor(file.computation.inputs[0].value));
  EXPECT_EQ(patternOf(file, 0).arguments[1], Argument::ofOp("torch.ops.aten.sin.default"));
  EXPECT_TRUE(boundOf(file, 0).effects & effect::opaque);
  EXPECT_EQ(file.computation.outputs[0].kind, OutputKind::token);
}

TEST(Pt2Graph, fixedNumbersAreInputs) {
  Graph graph;
  graph.inputs += R"(, {"as_int": 3}, {"as_none": true})";
  graph.inputSpecs +=
      R"(, {"constant_input": {"name": "n", "value": {"as_int": 3}}}, {"constant_input": {"name": "mask", "value": {"as_none": true}}})";
  const auto file = graph.read();
  EXPECT_EQ(file.sampleNumbers.at("n"), Argument::ofInt(3));
  EXPECT_FALSE(file.computation.trace.inputs[2]);
}

TEST(Pt2Graph, detachesOfDecomposedGraphsStopTheGradient) {
  Graph graph;
  graph.metas = meta("x") + "," + meta("y");
  graph.nodes = node("torch.ops.aten.alias.default", argument("self", tensor("x")), tensor("y"),
                     R"("torch_fn": "detach_1;method_descriptor.detach")");
  const auto file = graph.read();  // the test's symbols lack alias: unknown ops keep their gradMode too
  EXPECT_FALSE(boundOf(file, 0).gradMode);
  EXPECT_EQ(file.problems.back().severity, Problem::Severity::note);
}

TEST(Pt2Graph, namesThatPythonDoesNotTakeAreReplaced) {
  Graph graph;
  graph.nodes = node("torch.ops.aten.sin.default", argument("self", tensor("x")), tensor("a b")) + "," +
                node("torch.ops.aten.sin.default", argument("self", tensor("a b")), tensor("lambda")) + "," +
                node("torch.ops.aten.sin.default", argument("self", tensor("lambda")), tensor("a_b"));
  graph.metas = meta("x") + "," + meta("a b") + "," + meta("lambda") + "," + meta("a_b");
  graph.outputs = tensor("a b");
  graph.outputSpecs = R"({"user_output": {"arg": )" + tensor("a b") + "}}";
  const auto file = graph.read();
  const auto& ops = file.computation.trace.ops;
  const auto nameOf = [&](std::size_t i) {
    return file.document->displayName(std::as_const(*file.document).outputs(ops[i])[0]);
  };
  EXPECT_EQ(nameOf(0), "a_b_1");
  EXPECT_EQ(nameOf(1), "v_lambda");
  EXPECT_EQ(nameOf(2), "a_b") << "the name a value has in the file is kept for it";
  EXPECT_EQ(file.computation.trace.outputs[0], std::as_const(*file.document).outputs(ops[0])[0]);
}

TEST(Pt2Graph, unknownKindsOfOpsAreNamed) {
  for (const auto* target :
       {"torch._functorch.predispatch._vmap_increment_nesting", "torch.ops.mylib.op.default", "_operator.nonsense"}) {
    Graph graph;
    graph.metas = meta("x") + "," + meta("y");
    graph.nodes = node(target, argument("", tensor("x")), tensor("y"));
    const auto file = graph.read();
    ASSERT_EQ(file.problems.size(), 1u) << target;
    EXPECT_EQ(file.problems[0].severity, Problem::Severity::warning);
  }
}

TEST(Pt2Graph, refusesTooManyOperands) {
  Graph graph;
  graph.metas = meta("x") + "," + meta("y");
  std::string list;
  for (int i = 0; i < 65536; ++i) list += i ? R"(,{"name":"x"})" : R"({"name":"x"})";
  graph.nodes =
      node("torch.ops.aten.cat.default", argument("tensors", R"({"as_tensors": [)" + list + "]}"), tensor("y"));
  EXPECT_THROW(graph.read(), Error);
}

}  // namespace
}  // namespace retrograd
