#include "core/formats/text/text_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include "core/formats/model/model_file.h"
#include "core/trace/implied.h"
#include "core/trace/print/printer.h"
#include "tests/core/formats/cases.h"
#include "tests/core/formats/stub_symbols.h"

namespace retrograd {
namespace {

using test::stubLookup;

TextTraces read(const std::string& text) { return readTextTraces(text, "model.txt", stubLookup); }

/// All traces, as `retrograd trace` prints them.
std::string print(const TextTraces& traces) {
  PrintOptions options;
  if (traces.computation) options.computation = &*traces.computation;
  options.numbers = &traces.numbers;
  std::string text;
  if (traces.computation) text = printTrace(*traces.document, traces.computation->trace, options);
  for (const auto& trace : traces.derived)
    text += (text.empty() ? "" : "\n") + printTrace(*traces.document, trace, options);
  return text;
}

std::string printed(const std::string& text) { return print(read(text)); }

std::string failure(const std::string& text) {
  try {
    read(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput) << e.what();
    return e.what();
  }
  return "nothing failed";
}

std::string computation(const std::string& body, const std::string& result = "y") {
  return "def computation(x):\n    # x: \"f32[2, 3]\"\n" + body + "    return " + result + "\n";
}

const Document& documentOf(const TextTraces& traces) { return *traces.document; }
BoundSymbolId op(const TextTraces& traces, std::size_t i) { return traces.computation->trace.ops.at(i); }
const CallPattern& patternOf(const TextTraces& traces, std::size_t i) {
  return documentOf(traces).pattern(documentOf(traces).boundSymbol(op(traces, i)).pattern);
}

TEST(TextTrace, FiveLinesByHandAreAComputation) {
  const auto traces = read(test::contentOf(test::data() / "../texts/linear.txt"));
  ASSERT_TRUE(traces.computation);
  const auto& document = documentOf(traces);
  const auto& inputs = traces.computation->inputs;
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].kind, InputKind::user);
  EXPECT_TRUE(inputs[0].requiresGrad);
  EXPECT_EQ(inputs[1].kind, InputKind::parameter);
  EXPECT_EQ(inputs[1].target, "w");
  EXPECT_FALSE(inputs[1].storageKey.empty());
  EXPECT_TRUE(document.storage(inputs[1].value).external);
  EXPECT_EQ(document.opName(op(traces, 0)), "torch.ops.aten.linear.default");
  EXPECT_FALSE(document.isTensor(document.outputs(op(traces, 0))[0])) << "its type is left to the grad transform";
  EXPECT_EQ(traces.computation->outputs.size(), 1u);
  EXPECT_TRUE(traces.problems.empty());
}

TEST(TextTrace, IsPrintedInItsOwnForm) {
  EXPECT_EQ(printed(test::contentOf(test::data() / "../texts/linear.txt")), R"(import torch

def computation(x, w, b):
    # x: "cpu f32[4, 8]"
    # w: "cpu f32[2, 8]", parameter
    # b: "cpu f32[2]", parameter

    h = torch.ops.aten.linear.default(x, w, b)
    y = torch.ops.aten.tanh.default(h)
    del h
    loss = torch.ops.aten.sum.default(y)
    del y
    return (loss,)
)");
}

TEST(TextTrace, PythonsFreedomsAreTaken) {
  const auto traces = read(
      "# made by hand\r\nimport torch\r\nfrom math import inf\r\n\r\ndef computation(x,):\r\n"
      "\t# x: \"float32[2,3]\"\r\n\r\n"
      "\t# First things first: see note 3.\r\n"
      "\ta = torch.ops.aten.view.default(\r\n\t\tx,  # wrapped\r\n\t\t(3, 2,),\r\n\t)  # of a shape that suits\r\n"
      "\n\tdel x\n"
      "\tb, c = aten.max.dim(a, dim=-1, keepdim=False)  # b is what counts\n"
      "# a word in between\n"
      "\treturn b, None\n");
  const auto& document = documentOf(traces);
  EXPECT_EQ(patternOf(traces, 0).arguments[1], Argument::ofList({Argument::ofInt(3), Argument::ofInt(2)}));
  EXPECT_EQ(patternOf(traces, 1).arguments[1], Argument::ofInt(-1));
  EXPECT_EQ(document.outputs(op(traces, 1)).size(), 2u);
  EXPECT_EQ(traces.computation->trace.outputs.size(), 2u);
  EXPECT_FALSE(traces.computation->trace.outputs[1]);
}

TEST(TextTrace, LiteralsReadBackAsTheyWereWritten) {
  const auto text = computation(
      "    y = torch.ops.mylib.op.default(x, None, True, -9223372036854775808, 0.1, -0.0, 5e-324, 1e+22, float('nan'), "
      "-float('inf'), "
      "complex(1.0, -float('inf')), \"a\\\"\\\\\\n\\x01\\xff\", torch.bfloat16, torch.strided, torch.channels_last, "
      "torch.device(\"cuda:1\"), torch.ops.aten.mm.default, [[1, -2], []], named=[x, None])\n");
  const auto traces = read(text);
  const auto& arguments = patternOf(traces, 0).arguments;
  using K = Argument::Kind;
  const std::vector<K> kinds{K::operand,      K::none,   K::boolean, K::integer, K::real,   K::real,  K::real,
                             K::real,         K::real,   K::real,    K::complex, K::string, K::dtype, K::layout,
                             K::memoryFormat, K::device, K::op,      K::list,    K::list};
  ASSERT_EQ(arguments.size(), kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(arguments[i].kind, kinds[i]) << i;
  EXPECT_EQ(arguments[3].integer, std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(std::signbit(arguments[5].real));
  EXPECT_EQ(arguments[11].text, "a\"\\\n\x01\xff");
  EXPECT_EQ(patternOf(traces, 0).names.back(), "named");
  EXPECT_NE(print(traces).find(text.substr(text.find("y = "), text.find(")\n    return") - text.find("y = "))),
            std::string::npos)
      << print(traces);
}

TEST(TextTrace, ArgumentsFollowTheSchema) {
  const auto traces =
      read(computation("    a = aten.dropout(x, 1, train=0)\n    y = torch.ops.aten.sum.dim_IntList(a, 1)\n"));
  EXPECT_EQ(patternOf(traces, 0).arguments[1], Argument::ofReal(1));
  EXPECT_EQ(patternOf(traces, 0).arguments[2], Argument::ofBool(false));
  EXPECT_EQ(patternOf(traces, 1).arguments[1], Argument::ofList({Argument::ofInt(1)}));
  EXPECT_EQ(patternOf(traces, 1).arguments[2].kind, Argument::Kind::missing);
}

TEST(TextTrace, InputsAndResultsKeepTheirMeaning) {
  const std::string text = R"(import torch

def computation(w, tied, count, c, n, _5, x, tok):
    # w: "cpu f32[2]", parameter layer.weight, also other.weight
    # tied: "cpu f32[2]", parameter tied.weight, shares w
    # count: "cpu i64[]", buffer "a b", not persistent, storage of 64 bytes
    # c: "cpu f32[]", constant lifted
    # n: "number", value 3
    # x: "cuda:1 c64[s0=2, (s0 + 1)//2=1] strides [4, 1] offset 2 conj neg", no grad
    # tok: "token"

    y = torch.ops.aten.neg.default(x)  # y: "cuda:1 c64[s0=2, 1]"
    return (y, count, 7, None)  # output 1: mutation of buffer "a b", output 3: loss
)";
  const auto traces = read(text);
  EXPECT_EQ(print(traces), text);
  const auto& inputs = traces.computation->inputs;
  EXPECT_EQ(inputs[0].aliases, std::vector<std::string>{"other.weight"});
  EXPECT_EQ(inputs[1].storageKey, inputs[0].storageKey);
  EXPECT_FALSE(inputs[2].persistent);
  EXPECT_EQ(inputs[2].target, "a b");
  EXPECT_EQ(inputs[3].kind, InputKind::constant);
  EXPECT_EQ(traces.numbers.at("n"), Argument::ofInt(3));
  EXPECT_FALSE(inputs[5].value);
  EXPECT_FALSE(inputs[6].requiresGrad);
  EXPECT_EQ(inputs[7].kind, InputKind::token);
  const auto& outputs = traces.computation->outputs;
  EXPECT_EQ(outputs[1].kind, OutputKind::bufferMutation);
  EXPECT_EQ(outputs[1].target, "a b");
  EXPECT_EQ(outputs[2].literal, Argument::ofInt(7));
  EXPECT_EQ(outputs[3].kind, OutputKind::loss);
}

TEST(TextTrace, SharedMemoryWritesAndVersions) {
  const auto traces =
      read(computation("    a = aten.sin(x)  # a: \"f32[2, 3]\"\n    v = aten.view(a, [6])  # v: \"f32[6]\"\n"
                       "    w = aten.neg_(v)  # w: \"f32[6]\"\n    y = aten.exp(a)  # y: \"f32[2, 3]\"\n"));
  const auto& document = documentOf(traces);
  const auto value = [&](std::size_t i) { return document.value(document.outputs(op(traces, i))[0]); };
  EXPECT_EQ(value(1).storage, value(0).storage);
  EXPECT_EQ(value(2).storage, value(0).storage);
  EXPECT_EQ(value(2).version, 1);
  EXPECT_NE(value(3).storage, value(0).storage);
  EXPECT_EQ(document.boundSymbol(op(traces, 2)).effects, effect::writes);
  EXPECT_EQ(document.boundSymbol(op(traces, 1)).effects, effect::view);
}

TEST(TextTrace, BodiesHaveNamesOfTheirOwn) {
  const auto traces = read(
      "def computation(p, x):\n    # p: \"b8[]\"\n    # x: \"f32[3]\"\n"
      "    h = aten.neg(x)\n"
      "    def yes(x):\n        y = aten.sin(x)\n        return (y,)\n"
      "    def no(z):\n        y = aten.cos(z)\n        return y\n"
      "    y = torch.ops.higher_order.cond(p, yes, no, [h])\n    return y\n");
  const auto& document = documentOf(traces);
  const auto& cond = patternOf(traces, 1);
  const auto& yes = document.subgraph(SubgraphId(cond.arguments[1].integer));
  const auto& no = document.subgraph(SubgraphId(cond.arguments[2].integer));
  EXPECT_EQ(document.displayName(document.outputs(op(traces, 1))[0]), "y");
  EXPECT_EQ(document.displayName(document.outputs(yes.ops[0])[0]), "y_1");
  EXPECT_EQ(document.displayName(document.outputs(no.ops[0])[0]), "y_2");
  EXPECT_EQ(document.displayName(yes.inputs[0]), "x_1") << "h is handed to it, so it is not the x around it";
  EXPECT_EQ(document.boundSymbol(yes.ops[0]).parent, op(traces, 1));
  EXPECT_TRUE(document.boundSymbol(op(traces, 1)).effects & effect::needsData);
  const auto text = print(traces);
  EXPECT_EQ(printed(text), text);
}

TEST(TextTrace, SeveralResults) {
  const auto text = computation(
      "    (_, i) = torch.ops.aten.max.dim(x, 0)  # i: \"cpu i64[3]\", node max_1\n"
      "    [a, b] = torch.ops.aten.split.Tensor(x, 1)  # a: \"cpu f32[1, 3]\", b: \"cpu f32[1, 3] offset 3\", node "
      "split\n"
      "    [] = torch.ops.aten.split.Tensor(x, 9)  # node none\n"
      "    torch.ops.aten._assert_async.default(a)  # effects opaque, node check\n"
      "    (c, [d]) = torch.ops.mylib.two.default(b)  # c: \"number\", d: \"cpu f32[2]\", node two\n",
      "(c, d, i)");
  const auto traces = read(text);
  EXPECT_EQ(documentOf(traces).outputs(op(traces, 1)).size(), 2u);
  EXPECT_EQ(patternOf(traces, 1).returns, std::vector<std::int32_t>{2});
  EXPECT_EQ(patternOf(traces, 4).returns, (std::vector<std::int32_t>{-1, 1}));
  EXPECT_EQ(traces.problems.size(), 1u) << "mylib.two";
  EXPECT_EQ(traces.problems[0].place, "line 7");
  const auto again = print(traces);
  EXPECT_EQ(printed(again), again);
  EXPECT_NE(again.find("[] = torch.ops.aten.split.Tensor(x, 9)  # node none\n"), std::string::npos) << again;
}

TEST(TextTrace, WhereOpsAreInTheModel) {
  const std::string text = R"(# Constructed by Read (took 12 milliseconds)
import torch

def computation(x):
    # x: "cpu f32[3]"

    # module: h.0.attn
    # model.py:31: h = x.sin()  # twice
    a = torch.ops.aten.sin.default(x)  # a: "cpu f32[3]", no_grad
    # no module
    b = torch.ops.aten.sin.default(a)  # b: "cpu f32[3]"
    del a
    # module: "a b"
    # no source
    c = torch.ops.aten.sin.default(b)  # c: "cpu f32[3]"
    del b
    return (c,)
)";
  const auto traces = read(text);
  EXPECT_EQ(print(traces), text);
  const auto& document = documentOf(traces);
  const auto& a = document.boundSymbol(op(traces, 0));
  EXPECT_EQ(document.text(a.module), "h.0.attn");
  EXPECT_EQ(document.source(a.source).front().line, 31);
  EXPECT_EQ(document.source(a.source).front().code, "h = x.sin()  # twice");
  EXPECT_FALSE(a.gradMode);
  EXPECT_FALSE(document.boundSymbol(op(traces, 1)).module);
  EXPECT_TRUE(document.boundSymbol(op(traces, 1)).source);
  EXPECT_FALSE(document.boundSymbol(op(traces, 2)).source);
  ASSERT_EQ(traces.computation->trace.history.size(), 1u);
  EXPECT_EQ(traces.computation->trace.history[0].pass, "Read");
  EXPECT_DOUBLE_EQ(traces.computation->trace.history[0].seconds, 0.012);
}

TEST(TextTrace, FourTracesAreOneDocument) {
  const auto text = test::contentOf(test::data() / "../texts/linear_all.txt");
  const auto traces = read(text);
  ASSERT_EQ(traces.derived.size(), 3u);
  const auto &document = documentOf(traces), &joint = document;
  const auto &all = *traces.find(TraceKind::joint), &forward = *traces.find(TraceKind::forward),
             &backward = *traces.find(TraceKind::backward);
  auto both = forward.ops;
  both.insert(both.end(), backward.ops.begin(), backward.ops.end());
  EXPECT_EQ(both, all.ops) << "an op that stands in several traces is one";
  EXPECT_EQ(all.forwardCount, forward.ops.size());
  EXPECT_EQ(backward.savedCount, 3u);
  EXPECT_EQ(
      std::vector(backward.inputs.begin(), backward.inputs.begin() + 3),
      std::vector(forward.outputs.begin() + static_cast<std::ptrdiff_t>(forward.resultCount), forward.outputs.end()));
  const auto& origin = joint.boundSymbol(backward.ops[1]).origin;  // tanh_backward
  EXPECT_EQ(origin.role, Role::gradient);
  EXPECT_EQ(origin.op, op(traces, 1));
  EXPECT_EQ(origin.operand, 0);
  EXPECT_EQ(origin.output, 0);
  EXPECT_EQ(document.displayName(origin.value), "h");
  EXPECT_EQ(joint.boundSymbol(forward.ops[0]).origin.role, Role::forward);
  EXPECT_EQ(joint.boundSymbol(forward.ops[0]).origin.op, op(traces, 0)) << "t is a part of linear";
  EXPECT_EQ(joint.boundSymbol(forward.ops[2]).origin.op, op(traces, 1)) << "tanh is itself";
}

TEST(TextTrace, TheComputationMayBeAnywhere) {
  const auto text = std::regex_replace(test::contentOf(test::data() / "../texts/linear_all.txt"),
                                       std::regex("# Constructed.*\n"), "");
  const auto begin = text.find("def computation"), end = text.find("def joint");
  ASSERT_LT(begin, end);
  const auto computation = text.substr(begin, end - begin), others = text.substr(end),
             forward = others.substr(others.find("def forward"));
  const auto first = printed(computation + others);
  EXPECT_EQ(printed(others + "\n" + computation), first);
  EXPECT_EQ(printed(others.substr(0, others.size() - forward.size()) + computation + forward), first);
}

TEST(TextTrace, RecomputedDrawsReplayTheirOriginals) {
  const auto traces = read(test::contentOf(test::data() / "../texts/dropout_recomputed.txt"));
  const auto& document = documentOf(traces);
  std::size_t replays = 0;
  for (auto id : traces.find(TraceKind::joint)->ops) {
    const auto& bound = document.boundSymbol(id);
    if (!bound.replays) continue;
    ++replays;
    EXPECT_TRUE(bound.recomputed);
    EXPECT_EQ(bound.symbol, document.boundSymbol(bound.replays).symbol);
    EXPECT_EQ(document.outputs(bound.replays)[0], bound.origin.value);
  }
  EXPECT_EQ(replays, 2u);
}

TEST(TextTrace, KeptTextsReadBack) {
  for (const auto& path : test::filesBelow(test::data() / "../texts", ".txt")) {
    if (path.ends_with("/linear.txt")) continue;  // by hand
    const auto text = test::contentOf(path);
    EXPECT_EQ(printed(text), text) << path;
  }
}

TEST(TextTrace, ADerivedTraceIsAlone) {
  const auto all = test::contentOf(test::data() / "../texts/linear_all.txt");
  const auto text = all.substr(all.rfind("# Constructed"));
  const auto traces = read(text);
  EXPECT_FALSE(traces.computation);
  ASSERT_EQ(traces.derived.size(), 1u);
  EXPECT_EQ(print(traces), text);
  const auto& document = documentOf(traces);
  const auto from = document.boundSymbol(traces.derived[0].ops[1]).origin.op;
  EXPECT_EQ(document.opName(from), "torch.ops.aten.tanh.default") << "stands in for the op of the computation";
}

TEST(TextTrace, EverythingThatIsNotAsUsual) {
  const std::string text = R"(import torch

def joint(x, w, ct):
    # x: "cpu f32[3]", version 2
    # w: "cpu f32[3]", parameter, no grad
    # ct: "cpu f32[3]", cotangent, internal
    # lit: "cpu f64[] number", constant, storage of 16 bytes

    a = torch.ops.aten.mul.Tensor(x, lit)  # a: "cpu f32[3]", gradient, shares w, version 4, requires grad, effects random+needs_data, no_grad
    b = torch.ops.aten.view.default(a, [3])  # b: "cpu f32[3]", own storage, storage of 64 bytes, external
    x = torch.ops.aten.contiguous.default(x)  # x: "cpu f32[3]", returned as it is, computation: "torch.ops.aten.contiguous.default"
    (c, d) = torch.ops.aten.max.dim(x, 0)  # c: "cpu f32[]", d: "cpu i64[]", requires grad
    # backward
    e = torch.ops.aten.neg.default(ct)  # e: "cpu f32[3]", forward: c: "torch.ops.aten.max.dim", gradient of x, operand 1, output 1
    f = torch.ops.aten.neg.default(e)  # f: "cpu f32[3]", activation, accumulation: gradient of x = e + ct, forward: x: "input"
    g = torch.ops.aten.rand_like.default(f)  # g: "cpu f32[3]", recompute of a, forward: a: "torch.ops.aten.mul.Tensor", draws again
    h = torch.ops.aten.rand_like.default(f)  # h: "cpu f32[3]", recompute of b, forward: a: "torch.ops.aten.mul.Tensor", replays a
    i = torch.ops.aten.neg.default(f)  # i: "cpu f32[3]", zeros for an unused output, forward: c: "torch.ops.aten.max.dim", recomputed
    j = torch.ops.aten.neg.default(f)  # j: "cpu f32[3]", cotangent of an output, forward: c: "torch.ops.aten.max.dim"
    return (a, b), (f, None)
)";
  PrintOptions plain;
  plain.del = false;
  const auto traces = read(text);
  EXPECT_EQ(printTrace(*traces.document, traces.derived[0], plain), text);
}

/// Sums of the gradients of `values`, which take turns, of `count` terms each. A sum of more than eight says the one
/// before.
std::string longSums(const std::vector<std::string>& values, int count) {
  std::string text = "import torch\n\ndef joint(" + fmt::format("{}", fmt::join(values, ", "));
  for (int i = 0; i < count; ++i) text += fmt::format(", c{}", i);
  text += "):\n";
  for (const auto& value : values) text += fmt::format("    # {}: \"cpu f32[3]\"\n", value);
  for (int i = 0; i < count; ++i) text += fmt::format("    # c{}: \"cpu f32[3]\", cotangent\n", i);
  text += "\n    # backward\n";
  const auto sumOf = [](const std::string& value, int terms) {
    return terms == 1 ? "c0" : fmt::format("{}_{}", value, terms);
  };
  for (int terms = 2; terms <= count; ++terms)
    for (const auto& value : values) {
      std::string all = terms > 8 ? sumOf(value, terms - 1) : "c0";
      for (int i = terms > 8 ? terms - 1 : 1; i < terms; ++i) all += fmt::format(" + c{}", i);
      text += fmt::format(
          "    {0} = torch.ops.aten.add.Tensor({1}, c{2})  # {0}: \"cpu f32[3]\", accumulation: gradient of {3} = {4}, "
          "forward: {3}: \"input\"\n",
          sumOf(value, terms), sumOf(value, terms - 1), terms - 1, value, all);
    }
  return text + fmt::format("    return ({}_{})\n", fmt::join(values, fmt::format("_{0}, ", count)), count);
}

TEST(TextTrace, LongSumsOfGradientsAreReadByTheSumBefore) {
  constexpr int count = 40;
  const auto text = longSums({"x", "y"}, count);
  const auto traces = read(text);
  const auto& document = *traces.document;
  std::set<std::uint32_t> lists;
  for (auto op : traces.derived[0].ops) {
    const auto& origin = document.boundSymbol(op).origin;
    const auto terms = document.terms(origin);
    for (std::size_t i = 0; i < terms.size(); ++i) EXPECT_EQ(document.displayName(terms[i]), fmt::format("c{}", i));
    if (terms.size() == count) lists.insert(origin.termsBegin);
    if (terms.size() > 8)
      EXPECT_TRUE(implied::sumBefore(document, op)) << "longer sums share the list of the one before";
  }
  EXPECT_EQ(lists.size(), 2u);
  PrintOptions plain;
  plain.del = false;
  EXPECT_EQ(printTrace(document, traces.derived[0], plain), text);
  auto branched = text;
  const std::string line =
      "    y_9 = torch.ops.aten.add.Tensor(y_8, c8)  # y_9: \"cpu f32[3]\", accumulation: gradient of y = y_8 + c8, "
      "forward: y: \"input\"\n";
  ASSERT_NE(branched.find(line), std::string::npos);
  branched.insert(branched.find(line),
                  "    other = torch.ops.aten.add.Tensor(y_8, c0)  # other: \"cpu f32[3]\", accumulation: gradient of "
                  "y = y_8 + c0, forward: y: \"input\"\n");
  EXPECT_NE(failure(branched).find("expected one sum that goes on from 'y_8', found another with 'c8'"),
            std::string::npos)
      << failure(branched);
}

TEST(TextTrace, SymbolicSizesAreEvaluatedAndKept) {
  const auto text = computation("    y = aten.view(x, [s7 * 4 + 1, (s7 - 1) // 2, -s7 % 3, s7, -(2 * 3)])\n");
  const auto with = [&](const std::string& head) { return std::string(text).insert(text.find("    y ="), head); };
  const auto traces = read(with("    # s7: 5, symbolic size\n"));
  const auto& sizes = patternOf(traces, 0).arguments[1].items;
  ASSERT_EQ(sizes.size(), 5u);
  EXPECT_EQ(sizes[0].integer, 21);
  EXPECT_EQ(sizes[0].text, "s7 * 4 + 1");
  EXPECT_EQ(sizes[1].integer, 2);
  EXPECT_EQ(sizes[2].integer, 1) << "Python's remainder has the divisor's sign";
  EXPECT_EQ(sizes[3].integer, 5);
  EXPECT_EQ(sizes[3].text, "s7");
  EXPECT_EQ(sizes[4], Argument::ofInt(-6)) << "no size in it";
  EXPECT_NE(failure(text).find("model.txt:3:23: expected a number or a symbolic size"), std::string::npos)
      << failure(text);
  EXPECT_NE(failure(with("    # s7: 9223372036854775807, symbolic size\n")).find("64 bits"), std::string::npos);
  EXPECT_NE(failure(computation("    # s7: 5, symbolic size\n    y = aten.view(x, [6 // (s7 - 5)])\n"))
                .find("a divisor other than 0"),
            std::string::npos);
  const auto met = read("def computation(x):\n    # x: \"f32[s0=4, 2]\"\n    y = aten.view(x, [s0*2])\n    return y\n");
  EXPECT_EQ(patternOf(met, 0).arguments[1].items[0].integer, 8) << "a size that a type names needs no declaration";
}

}  // namespace
}  // namespace retrograd
