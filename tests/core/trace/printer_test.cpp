#include "core/trace/print/printer.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/trace/source.h"
#include "tests/core/trace/build.h"

namespace retrograd {
namespace {

using test::Builder;

/// x @ w.t() + its gradient, as linear's backward is.
struct LinearJoint : Builder {
  ValueId x = input("x", {4, 3});
  ValueId w = input("w", {2, 3}, ValueKind::parameter);
  BoundSymbolId linear =
      bind(symbol("aten.linear.default", 2), {x, w}, {value({4, 2}, ValueKind::activation, "linear")});

  Origin origin(Role role, int operand = -1) const {
    Origin from;
    from.op = linear;
    from.role = role;
    from.operand = static_cast<std::int16_t>(operand);
    if (operand >= 0) from.value = operand == 0 ? x : w;
    from.output = role == Role::gradient ? 0 : -1;
    return from;
  }
  /// An op as the backward has it: it runs without grad mode and makes a gradient.
  BoundSymbolId backward(const std::string& name, std::vector<ValueId> operands, std::vector<std::int64_t> sizes,
                         const Origin& from) {
    const auto op = bind(symbol(name, static_cast<int>(operands.size())), operands,
                         {value(std::move(sizes), ValueKind::gradient)}, from);
    document.boundSymbol(op).gradMode = false;
    return op;
  }
};

TEST(Printer, backwardLineNamesItsForwardOp) {
  LinearJoint b;
  const auto ct = b.value({4, 2}, ValueKind::cotangent);
  const auto op = b.backward("aten.mm.default", {ct, b.w}, {4, 3}, b.origin(Role::gradient, 0));
  EXPECT_EQ(printCall(b.document, op), "t4 = torch.ops.aten.mm.default(t3, w)");
  EXPECT_EQ(printComment(b.document, op),
            "t4: \"cpu f32[4, 3]\", forward: linear: \"torch.ops.aten.linear.default\", gradient of x");
}

TEST(Printer, backwardLineSaysWhichOperandOrOutputWhereTheNamesDoNot) {
  LinearJoint b;
  const auto ct = b.value({4, 2}, ValueKind::cotangent);
  const auto comment = [&](auto&& change) {
    auto from = b.origin(Role::gradient, 0);
    change(from);
    const auto text = printComment(b.document, b.backward("aten.mm.default", {ct, b.w}, {4, 3}, from));
    return text.substr(text.find("default\"") + 8);
  };
  EXPECT_EQ(comment([](Origin& o) { o.value = {}; }), ", operand 0");
  EXPECT_EQ(comment([](Origin& o) { o.operand = 1; }), ", gradient of x, operand 1");
  EXPECT_EQ(comment([](Origin& o) { o.output = -1; }), ", gradient of x, several outputs");
}

TEST(Printer, forwardOpOfTheJointNamesItsComputationOpWhereItDiffers) {
  LinearJoint b;
  const auto t = b.bind(b.symbol("aten.t.default"), {b.w}, {b.value({3, 2})}, b.origin(Role::forward));
  EXPECT_EQ(printComment(b.document, t),
            "t3: \"cpu f32[3, 2]\", computation: linear: \"torch.ops.aten.linear.default\"");
  const auto output = std::as_const(b.document).outputs(b.linear)[0];
  b.document.value(output).requiresGrad = true;
  const auto same = b.bind(b.symbol("aten.linear.default", 2), {b.x, b.w}, {output}, b.origin(Role::forward));
  EXPECT_EQ(printComment(b.document, same), "linear: \"cpu f32[4, 2]\"");
  const auto other = b.bind(b.symbol("aten.linear.default", 2), {b.x, b.w}, {b.value({4, 2})}, b.origin(Role::forward));
  EXPECT_EQ(printComment(b.document, other),
            "t4: \"cpu f32[4, 2]\", computation: linear: \"torch.ops.aten.linear.default\"");
}

TEST(Printer, accumulationNamesValueAndAllTerms) {
  LinearJoint b;
  const auto g1 = b.value({4, 3}, ValueKind::gradient), g2 = b.value({4, 3}, ValueKind::gradient);
  Origin from;
  from.role = Role::accumulation;
  from.value = b.x;
  b.document.setTerms(from, std::vector{g1, g2});
  const auto op = b.backward("aten.add.Tensor", {g1, g2}, {4, 3}, from);
  EXPECT_EQ(printComment(b.document, op),
            "t5: \"cpu f32[4, 3]\", accumulation: gradient of x = t3 + t4, forward: x: \"input\"");
}

TEST(Printer, longAccumulationNamesTheSumBeforeAndTheLastTerm) {
  LinearJoint b;
  std::vector<ValueId> terms;
  for (int i = 0; i < 10; ++i) terms.push_back(b.value({4, 3}, ValueKind::gradient));
  Origin list;
  b.document.setTerms(list, terms);
  auto sum = terms[0];
  BoundSymbolId last;
  std::vector<std::string> comments;
  for (std::uint32_t count = 2; count <= 10; ++count) {
    Origin from = list;
    from.role = Role::accumulation;
    from.value = b.x;
    from.termCount = count;
    last = b.backward("aten.add.Tensor", {sum, terms[count - 1]}, {4, 3}, from);
    sum = b.document.outputs(last)[0];
    b.document.value(sum).producer = last;
    comments.push_back(printComment(b.document, last));
  }
  EXPECT_NE(comments[6].find("= t3 + t4 + t5 + t6 + t7 + t8 + t9 + t10, "), std::string::npos)
      << comments[6];  // eight terms
  EXPECT_NE(comments[7].find("= t19 + t11, "), std::string::npos) << comments[7];
  EXPECT_NE(comments[8].find("= t20 + t12, "), std::string::npos) << comments[8];
}

TEST(Printer, whatIsNotAsUsualIsBehindTheType) {
  Builder b;
  const auto x = b.input("x", {2, 3});
  const auto base = b.value({2, 3});
  TensorMeta meta = b.document.meta(base);
  meta.strides = {1, 2};
  meta.offset = 4;
  meta.conjugate = true;
  const auto view = b.value({2, 3}, ValueKind::activation, {}, b.document.value(base).storage);
  b.document.value(view).meta = b.document.internMeta(meta);
  EXPECT_EQ(printComment(b.document, b.bind(b.symbol("aten.sin.default"), {x}, {base})), "t1: \"cpu f32[2, 3]\"");
  const auto t = b.bind(b.symbol("aten.t.default"), {base}, {view});
  EXPECT_EQ(printComment(b.document, t), "t2: \"cpu f32[2, 3] strides [1, 2] offset 4 conj\", storage of 24 bytes");
  b.document.value(view).version = 3;
  b.document.value(view).kind = ValueKind::gradient;
  b.document.boundSymbol(t).effects = effect::opaque | effect::random;
  b.document.boundSymbol(t).gradMode = false;
  b.document.boundSymbol(t).recomputed = true;
  b.document.boundSymbol(t).name = b.document.intern("a node");
  EXPECT_EQ(printComment(b.document, t),
            "t2: \"cpu f32[2, 3] strides [1, 2] offset 4 conj\", gradient, storage of 24 bytes, version 3, recomputed, "
            "effects random+opaque, no_grad, node \"a node\"");
}

TEST(Printer, sharedMemoryIsSaidWhereTheSchemaDoesNotSay) {
  Builder b;
  const auto x = b.input("x", {3});
  const auto y = b.value({3}, ValueKind::activation, {}, b.document.value(x).storage);
  b.trace.outputs = {y};
  b.bind(b.symbol("aten.foo.default"), {x}, {y});
  EXPECT_NE(printTrace(b.document, b.trace).find("# t1: \"cpu f32[3]\", shares x\n"), std::string::npos);
}

TEST(Printer, literalTensorsOfFormulasAreDeclared) {
  Builder b;
  const auto x = b.input("x", {3});
  b.trace.outputs = {b.call("aten.mul.Tensor", {x, b.value({}, ValueKind::constant)})};
  EXPECT_NE(printTrace(b.document, b.trace).find("    # x: \"cpu f32[3]\"\n    # t1: \"cpu f32[]\", constant\n\n"),
            std::string::npos);
}

TEST(Printer, theBordersOfAJointAndItsResults) {
  LinearJoint b;
  b.trace.kind = TraceKind::joint;
  b.trace.ops = {b.bind(b.symbol("aten.sin.default"), {b.x}, {b.value({4, 3}, ValueKind::activation, "y")},
                        b.origin(Role::forward)),
                 b.backward("aten.cos.default", {b.x}, {4, 3}, b.origin(Role::gradient, 0))};
  b.trace.forwardCount = 1;
  b.trace.outputs = {std::as_const(b.document).outputs(b.trace.ops[0])[0],
                     std::as_const(b.document).outputs(b.trace.ops[1])[0]};
  b.trace.resultCount = 1;
  const auto text = printTrace(b.document, b.trace, {.comments = false});
  EXPECT_NE(text.find("    y = torch.ops.aten.sin.default(x)\n    # backward\n    t4 = torch.ops.aten.cos.default(x)\n "
                      "   return (y,), (t4,)\n"),
            std::string::npos)
      << text;
}

TEST(Printer, theComputationSaysWhatItsInputsAndOutputsMean) {
  Builder b;
  Computation computation;
  const auto w = b.input("w", {3}, ValueKind::parameter), count = b.input("count", {1}, ValueKind::buffer);
  b.document.value(w).requiresGrad = false;
  Value n;
  n.name = b.document.intern("n");
  n.kind = ValueKind::input;
  b.trace.inputs.push_back(b.document.addValue(n));
  computation.inputs = {{InputKind::parameter, "w", "layer.weight", {"tied.weight"}, true, false, w, {}},
                        {InputKind::buffer, "count", "a b", {}, false, false, count, {}},
                        {InputKind::user, "n", {}, {}, true, false, b.trace.inputs[2], {}}};
  b.trace.outputs = {count, {}};
  computation.outputs = {{OutputKind::bufferMutation, count, {}, "a b"},
                         {OutputKind::user, {}, Argument::ofInt(7), {}}};
  const std::map<std::string, Argument> numbers{{"n", Argument::ofInt(3)}};
  const auto text = printTrace(b.document, b.trace, {.computation = &computation, .numbers = &numbers});
  for (auto line : {"# w: \"cpu f32[3]\", parameter layer.weight, also tied.weight, no grad\n",
                    "# n: \"number\", value 3\n", "# count: \"cpu f32[1]\", buffer \"a b\", not persistent\n",
                    "return (count, 7)  # output 0: mutation of buffer \"a b\"\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(Printer, argumentsOfHigherOrderOpsKeepTheirNames) {
  Builder b;
  const auto x = b.input("x", {3});
  Symbol wrap;
  wrap.name = "higher_order.hints_wrapper";
  wrap.known = wrap.isHigherOrder = true;
  CallPattern p{{Argument::ofOperand(0), Argument::ofInt(1)}, {"", "hints"}, 1, {}};
  EXPECT_EQ(printCall(b.document, b.bind(b.document.internSymbol(wrap), p, {x}, {})),
            "torch.ops.higher_order.hints_wrapper(x, hints=1)");
}

TEST(Printer, textThatIsNotPythonIsQuoted) {
  Builder b;
  EXPECT_EQ(printArgument(b.document, Argument::ofString("a\"\\\n\t\x01\xff\xc3\xa9"), {}),
            "\"a\\\"\\\\\\n\\t\\x01\\xff\xc3\xa9\"");
  EXPECT_EQ(printArgument(b.document, Argument::ofReal(0.1), {}), "0.1");
  EXPECT_EQ(printArgument(b.document, Argument::ofReal(-0.0), {}), "-0.0");
  EXPECT_EQ(printArgument(b.document, Argument::ofReal(1e22), {}), "1e+22");
  EXPECT_EQ(printArgument(b.document, Argument::ofReal(5e-324), {}), "5e-324");
  EXPECT_EQ(printArgument(b.document, Argument::ofComplex(1, -2), {}), "complex(1.0, -2.0)");
}

TEST(Printer, literalsAreWrittenAsPythonWritesThem) {
  Builder b;
  const auto print = [&](const Argument& a) { return printArgument(b.document, a, {}); };
  EXPECT_EQ(print(Argument::ofNone()), "None");
  EXPECT_EQ(print(Argument::ofBool(true)), "True");
  EXPECT_EQ(print(Argument::ofReal(1)), "1.0");
  EXPECT_EQ(print(Argument::ofReal(1e-5)), "1e-05");
  EXPECT_EQ(print(Argument::ofReal(-std::numeric_limits<double>::infinity())), "-float('inf')");
  EXPECT_EQ(print(Argument::ofDType(DType::bf16)), "torch.bfloat16");
  EXPECT_EQ(print(Argument::ofString("a\"b")), "\"a\\\"b\"");
  EXPECT_EQ(print(Argument::ofMemoryFormat(2)), "torch.channels_last");
  EXPECT_EQ(print(Argument::ofList({Argument::ofInt(1), Argument::ofInt(-1)})), "[1, -1]");
}

TEST(Printer, symbolicSizesAreWrittenAsTheirExpressions) {
  Builder b;
  auto meta = b.document.meta(b.meta({8, 3}));
  meta.symbols = {"2*s0", ""};
  Value x;
  x.name = b.document.intern("x");
  x.kind = ValueKind::input;
  x.meta = b.document.internMeta(meta);
  x.storage = b.document.addStorage(96, {}, true);
  b.trace.inputs = {b.document.addValue(x)};
  Value n;
  n.name = b.document.intern("n");
  n.kind = ValueKind::input;
  b.trace.inputs.push_back(b.document.addValue(n));
  b.document.setSizeExpression(b.trace.inputs[1], "s0 + 1");
  b.trace.inputs.push_back(b.document.addValue(n));
  b.document.value(b.trace.inputs[2]).name = b.document.intern("large");
  b.document.setSizeExpression(b.trace.inputs[2], "s0 > 5");
  b.document.setSizeSymbols({{"s9", 5, 0, {}}, {"s0", 4, 2, 512}, {"s1", 7, 2, {}}});
  auto size = Argument::ofInt(28), one = Argument::ofReal(0.25);
  size.text = "s0*s1";
  one.text = "1/s0";
  const CallPattern p{{Argument::ofOperand(0), Argument::ofList({size, Argument::ofInt(-1)}), one}, {}, 1, {}};
  b.bind(b.symbol("aten.foo.default", 3), p, {b.trace.inputs[0]}, {b.value({28})});
  EXPECT_EQ(printTrace(b.document, b.trace), R"(import torch

def computation(x, n, large):
    # x: "cpu f32[2*s0=8, 3]", no grad
    # n: "s0 + 1=5"
    # large: "s0 > 5 is False"
    # s0: 4, symbolic size in [2, 512]
    # s1: 7, symbolic size, at least 2

    t3 = torch.ops.aten.foo.default(x, [s0*s1, -1], 1/s0)  # t3: "cpu f32[28]"
    del t3
    return ()
)");
}

TEST(Printer, defaultsAreLeftOutAndKeywordsNamed) {
  Builder b;
  const auto x = b.input("x", {2});
  Symbol s;
  s.name = "aten.foo.default";
  s.arguments = {Builder::entry("self"), Builder::entry("dim", "int"), Builder::entry("keepdim", "bool"),
                 Builder::entry("dtype", "ScalarType?")};
  s.arguments[1].defaultValue = Argument::ofInt(0);
  s.arguments[2].defaultValue = Argument::ofBool(false);
  s.arguments[3].keywordOnly = true;
  s.arguments[3].defaultValue = Argument::ofNone();
  const auto id = b.document.internSymbol(s);
  const auto print = [&](Argument dim, Argument keep, Argument dtype) {
    CallPattern p{{Argument::ofOperand(0), dim, keep, dtype}, {}, 1, {}};
    return printCall(b.document, b.bind(id, p, {x}, {}));
  };
  EXPECT_EQ(print(Argument::ofMissing(), Argument::ofBool(false), Argument::ofNone()), "torch.ops.aten.foo.default(x)");
  EXPECT_EQ(print(Argument::ofMissing(), Argument::ofBool(true), Argument::ofMissing()),
            "torch.ops.aten.foo.default(x, 0, True)");
  EXPECT_EQ(print(Argument::ofInt(1), Argument::ofMissing(), Argument::ofDType(DType::f64)),
            "torch.ops.aten.foo.default(x, 1, dtype=torch.float64)");
}

TEST(Printer, severalOutputsAreATupleAndListsAreInBrackets) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto s = b.symbol("aten.foo.default", 1, 2);
  const auto plain = b.bind(s, {x}, {b.value({2}), ValueId()});
  EXPECT_EQ(printCall(b.document, plain), "(t1, _) = torch.ops.aten.foo.default(x)");
  CallPattern p{{Argument::ofOperand(0)}, {}, 1, {-1, 2}};
  const auto list = b.bind(s, p, {x}, {b.value({2}), b.value({2}), b.value({2})});
  EXPECT_EQ(printCall(b.document, list), "(t2, [t3, t4]) = torch.ops.aten.foo.default(x)");
}

TEST(Printer, wholeForwardTrace) {
  Builder b;
  const auto x = b.input("x", {3});
  const auto w = b.input("w", {3}, ValueKind::parameter);
  const auto line = b.document.internSource({{"/data/someone/model.py", 31, "forward", "h = (x * self.w).sin()"}});
  const auto h = b.call("aten.mul.Tensor", {x, w});
  b.document.boundSymbol(b.trace.ops.back()).source = line;
  const auto s = b.call("aten.sin.default", {h});
  b.document.boundSymbol(b.trace.ops.back()).source = line;
  const auto c = b.call("aten.cos.default", {s});
  b.document.boundSymbol(b.trace.ops.back()).module = b.document.intern("h.0");
  b.trace.kind = TraceKind::forward;
  b.trace.outputs = {c, ValueId(), h};
  b.trace.resultCount = 2;
  b.trace.history.push_back({"Split", {}, "joint", 0, {}});
  EXPECT_EQ(printTrace(b.document, b.trace), R"(# Constructed by Split (took 0 milliseconds)
import torch

def forward(x, w):
    # x: "cpu f32[3]"
    # w: "cpu f32[3]", parameter

    # model.py:31: h = (x * self.w).sin()
    t2 = torch.ops.aten.mul.Tensor(x, w)  # t2: "cpu f32[3]"
    t3 = torch.ops.aten.sin.default(t2)  # t3: "cpu f32[3]"
    # module: h.0
    # no source
    t4 = torch.ops.aten.cos.default(t3)  # t4: "cpu f32[3]"
    del t3
    return (t4, None), (t2,)
)");
}

TEST(Printer, theModelsLineIsShownNotPyTorchs) {
  const SourceStack stack{{"/data/someone/model.py", 31, "forward", "self.l(x)"},
                          {"/usr/lib/python3/site-packages/torch/nn/modules/linear.py", 134, "forward", ""}};
  EXPECT_EQ(shownFrame(stack)->line, 31);
  const SourceStack inside{stack[1]};
  EXPECT_EQ(shownFrame(inside)->line, 134);
  EXPECT_EQ(shownFrame({}), nullptr);
}

TEST(Printer, backwardDeletesItsInputsToo) {
  Builder b;
  const auto saved = b.value({3}), ct = b.value({3}, ValueKind::cotangent);
  b.trace.inputs = {saved, ct, ValueId()};
  b.trace.savedCount = 1;
  b.trace.kind = TraceKind::backward;
  const auto g = b.call("aten.mul.Tensor", {ct, saved});
  b.trace.outputs = {g, ValueId()};
  EXPECT_EQ(printTrace(b.document, b.trace), R"(import torch

def backward(t0, t1, _2):
    # t0: "cpu f32[3]", saved for backward
    # t1: "cpu f32[3]", cotangent

    t2 = torch.ops.aten.mul.Tensor(t1, t0)  # t2: "cpu f32[3]"
    del t1, t0
    return (t2, None)
)");
}

TEST(Printer, bodiesOfHigherOrderOpsAreNestedFunctions) {
  Builder b;
  const auto x = b.input("x", {3});
  Subgraph body{"true_graph_0", {}, {Argument::ofOperand(0)}, {}, {}};
  const auto y = b.document.addValue({});
  b.trace.outputs = {b.value({3})};
  body.inputs = {b.value({3})};
  b.document.value(y) = b.document.value(b.trace.outputs[0]);
  b.document.value(y).storage = b.document.addStorage(12);
  b.bind(b.symbol("aten.sin.default"), {body.inputs[0]}, {y});
  body.ops = std::move(b.trace.ops);
  body.outputValues = {y};
  b.trace.ops.clear();
  const auto id = b.document.addSubgraph(body);
  Symbol cond;
  cond.name = "higher_order.cond";
  cond.isHigherOrder = true;
  CallPattern p{{Argument::ofOperand(0), Argument::ofSubgraph(id)}, {"", ""}, 1, {}};
  cond.known = true;
  b.bind(b.document.internSymbol(cond), p, {x}, {b.trace.outputs[0]}, {}, effect::needsData);
  EXPECT_EQ(printTrace(b.document, b.trace), R"(import torch

def computation(x):
    # x: "cpu f32[3]"

    def true_graph_0(t3):
        # t3: "cpu f32[3]"
        t1 = torch.ops.aten.sin.default(t3)  # t1: "cpu f32[3]"
        return (t1,)
    t2 = torch.ops.higher_order.cond(x, true_graph_0)  # t2: "cpu f32[3]"
    return (t2,)
)");
}

}  // namespace
}  // namespace retrograd
