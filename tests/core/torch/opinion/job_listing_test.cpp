#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/input_sources.h"
#include "core/formats/jobs/job_log.h"
#include "core/formats/jobs/line_links.h"
#include "core/formats/listing/listing.h"
#include "core/formats/text/text_trace.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/print/printer.h"
#include "tests/core/formats/cases.h"

namespace retrograd::jobs {
namespace {

std::string printed(const Listing& listing) { return printTrace(*listing.document, listing.trace); }

/// A trace that was printed, read and printed again.
std::string readAgain(const std::string& text) {
  const auto traces = readTextTraces(text, "again", lookupSymbol);
  std::string again;
  for (const auto& trace : traces.derived) again += printTrace(*traces.document, trace);
  return again;
}

std::int64_t callsOf(const fx::Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [](const auto& node) { return node.call.is(fx::Expression::Kind::call); });
}

// Issue 18, 1: the listing of a graph has its calls, and its printed form reads back.
TEST(JobListing, ListingsOfTheSamplesReadBack) {
  const auto folder = test::cases() / "jobs";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the samples are not beside this checkout";
  int listed = 0;
  for (const auto* job : {"gpt", "gpt_torch260", "gpt_checkpoint", "convolution_torch2100", "tp", "ranks"}) {
    const auto log = openJobLog((folder / job / "trace").string());
    const auto& attempt = *chooseCompile(log, "").attempt;
    for (const auto kind : {GraphKind::joint, GraphKind::forward, GraphKind::backward}) {
      const auto* record = attempt.find(kind);
      ASSERT_NE(record, nullptr);
      const auto graph = fx::readGraph(payloadText(log, record->payload), job);
      ListingOptions options;
      options.kind = kind == GraphKind::joint     ? TraceKind::joint
                     : kind == GraphKind::forward ? TraceKind::forward
                                                  : TraceKind::backward;
      if (kind == GraphKind::joint) options.backwardFrom = backwardBorder(graph);
      if (kind != GraphKind::forward) options.origins = linksByLine(graph, options.backwardFrom, graph);
      const auto listing = listingOf(graph, lookupSymbol, options);
      EXPECT_EQ(std::ssize(listing.trace.ops), callsOf(graph)) << job << " " << name(kind);
      const auto text = printed(listing);
      EXPECT_EQ(readAgain(text), text) << job << " " << name(kind);
      ++listed;
    }
  }
  EXPECT_EQ(listed, 18);
}

// J8: the border of a joint graph is found by marks, and by dependence on tangents.
TEST(JobListing, J8_BorderOfAJointGraph) {
  const std::string head =
      "class joint_helper(torch.nn.Module):\n    def forward(self, primals, tangents):\n        primals_1: "
      "\"f32[2][1]cpu\"; tangents_1: "
      "\"f32[2][1]cpu\"; \n"
      "        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)\n"
      "        exp: \"f32[2][1]cpu\" = torch.ops.aten.exp.default(primals_1)\n";
  const std::string tail =
      "        neg: \"f32[2][1]cpu\" = torch.ops.aten.neg.default(exp)\n        mul: \"f32[2][1]cpu\" = "
      "torch.ops.aten.mul.Tensor(tangents_1, exp)\n"
      "        return pytree.tree_unflatten([exp, mul], self._out_spec)\n";
  EXPECT_EQ(backwardBorder(fx::readGraph(head + tail, "test")), 2U);
  EXPECT_EQ(backwardBorder(fx::readGraph(
                head + "        # Backward of forward node: File: t.py:1 in f, code: x\n" + tail, "test")),
            1U);
}

// Sizes that are symbols become the numbers of the job; numbers of the graph are worked out.
TEST(JobListing, J5_SizesAreThoseOfTheJob) {
  const auto graph = fx::readGraph(
      "class G(torch.nn.Module):\n    def forward(self, s: \"Sym(s23)\", x: \"f32[s23, 4][4, 1]cpu\"):\n        mul: "
      "\"Sym(4*s23)\" = s * "
      "4\n"
      "        view: \"f32[4*s23][1]cpu\" = torch.ops.aten.view.default(x, [mul]);  mul = None\n        return "
      "(view,)\n",
      "test");
  ListingOptions options;
  options.sizes["s23"] = 3;
  auto listing = listingOf(graph, lookupSymbol, options);
  EXPECT_NE(printed(listing).find("view = torch.ops.aten.view.default(x, [12])  # view: \"cpu f32[12]\""),
            std::string::npos)
      << printed(listing);
  EXPECT_TRUE(listing.notes.empty());
  options.sizes.clear();
  listing = listingOf(graph, lookupSymbol, options);
  ASSERT_EQ(listing.notes.size(), 1U);
  EXPECT_NE(listing.notes[0].find("the log does not say what s23 was"), std::string::npos);
}

// Numbers made of sizes may be fractions and truths; what cannot be worked out is taken for a number, and its text is
// named.
TEST(JobListing, J5_NumbersOfSizesAreFractionsTooAndUnknownOnesAreNamed) {
  const auto list = [](const std::string& number, const std::string& dimension = "s23") {
    ListingOptions options;
    options.sizes["s23"] = 5;
    return listingOf(
        fx::readGraph(
            fmt::format(
                "class G(torch.nn.Module):\n    def forward(self, s: \"Sym(s23)\", x: \"f32[{0}][1]cpu\"):\n"
                "        n: \"Sym({1})\" = s / 4\n"
                "        y: \"f32[{0}][1]cpu\" = torch.ops.aten.mul.Tensor(x, n);  n = None\n        return (y,)\n",
                dimension, number),
            "test"),
        lookupSymbol, options);
  };
  const std::pair<const char*, const char*> known[] = {
      {"FloatTrueDiv(IntTrueDiv(16*s23, 16), (IntTrueDiv(16*s23, 16)) - 1.0)", "1.25"},
      {"TrueDiv(s23, 2)", "2.5"},
      {"-1.00000000000000 + IntTrueDiv(s23, 2)", "1.5"},
      {"ToFloat(s23)", "5.0"},
      {"FloatPow(ToFloat(s23), 0.5)**2 > 6.0", "False"},
      {"PowByNatural(s23, 2)", "25"},
      {"Pow(s23, 2)", "25"},
      {"s23**(-1)", "0.2"},
      {"1/s23", "0.2"},
      {"CleanDiv(16*s23, 16)", "5"},
      {"FloorDiv(s23, 2)", "2"},
      {"PythonMod(-s23, 3)", "1"},
      {"Mod(s23, 3)", "2"},
      {"ModularIndexing(16*s23, 8, 4)", "2"},
      {"Max(1, s23, 3)", "5"},
      {"Min(s23, 3)", "3"},
      {"CeilToInt(IntTrueDiv(s23, 2))", "3"},
      {"FloorToInt(IntTrueDiv(s23, 2))", "2"},
      {"TruncToInt(IntTrueDiv(s23, 2))", "2"},
      {"RoundToInt(IntTrueDiv(s23, 2))", "2"},
      {"RoundDecimal(FloatTrueDiv(1.0, 3.0), 2)", "0.33"},
      {"TruncToFloat(IntTrueDiv(s23, 2))", "2.0"},
      {"Where(s23 > 3, 7, 8)", "7"},
      {"Identity(s23)", "5"},
      {"ceiling(s23/2)", "3"},
      {"floor(s23/2)", "2"},
      {"OpaqueUnaryFn_sqrt(4*s23 - 4)", "4.0"},
  };
  for (const auto& [number, text] : known) {
    const auto listing = list(number);
    EXPECT_NE(printed(listing).find(fmt::format("mul.Tensor(x, {})", text)), std::string::npos) << number << "\n"
                                                                                                << printed(listing);
    EXPECT_TRUE(listing.notes.empty()) << number;
    EXPECT_FALSE(listing.assumedSizes) << number;
  }
  // What is in no list of functions, and what Python would raise at: the graph is listed, the text is in a note.
  for (const auto* number :
       {"SomeNewFunction(s23, 2)", "FloatTrueDiv(1.0, s23 - 5)", "Piecewise((7, s23 > 9), (8, True))", "zoo"}) {
    const auto listing = list(number);
    EXPECT_NE(printed(listing).find("mul.Tensor(x, 2)"), std::string::npos) << printed(listing);
    ASSERT_EQ(listing.notes.size(), 1U) << number;
    EXPECT_EQ(listing.notes[0], fmt::format("the log does not say what {} was; 2 is taken for it", number));
    EXPECT_TRUE(listing.assumedSizes);
  }
  // A dimension is a whole number.
  EXPECT_NE(printed(list("s23", "IntTrueDiv(2*s23, 2)")).find("# x: \"cpu f32[5]\""), std::string::npos);
  const auto fraction = list("s23", "IntTrueDiv(s23, 2)");
  EXPECT_EQ(fraction.notes,
            (std::vector<std::string>{"the log does not say what IntTrueDiv(s23, 2) was; 2 is taken for it"}));
}

TEST(JobListing, J3_GraphsThatAreNotAtenGraphsAreRefused) {
  const auto refuse = [](const std::string& body) -> std::string {
    try {
      listingOf(fx::readGraph("class G(torch.nn.Module):\n    def forward(self, x: \"f32[4]\"):\n" + body, "test"),
                lookupSymbol, {});
    } catch (const Error& e) {
      return e.what();
    }
    return "listed";
  };
  EXPECT_NE(refuse("        y: \"f32[4]\" = x.float()\n        return y\n")
                .find("y (line 3 of the graph): is not a call of an op"),
            std::string::npos);
  EXPECT_NE(refuse("        y: \"f32[4]\" = torch.ops.aten.neg.default(z)\n        return y\n")
                .find("reads 'z', which is defined nowhere above"),
            std::string::npos);
}

Listing listed(const std::string& body, const ListingOptions& options = {}) {
  return listingOf(fx::readGraph("class G(torch.nn.Module):\n    def forward(self, x: \"f32[4][1]cpu\", y: "
                                 "\"f32[4][1]cpu\"):\n" +
                                     body + "        return (out,)\n",
                                 "test"),
                   lookupSymbol, options);
}

// An op that LibTorch lacks has any argument: dicts as their pairs, whose values it reads, the rest as texts.
TEST(JobListing, AnOpaqueOpHasAnyArgument) {
  const auto listing = listed(
      "        mask = self.mask_graph\n"
      "        two = torch.ops.higher_order.flex_attention(x, mask, {'BLOCK_M': 64, 'PRESCALE_QK': False}, "
      "{'in_ptr0': y}, 99999999999999999999, made.somewhere)\n"
      "        out: \"f32[4][1]cpu\" = two[0];  two = None\n");
  EXPECT_NE(printed(listing).find("[out] = torch.ops.higher_order.flex_attention(x, \"self.mask_graph\", "
                                  "[[\"BLOCK_M\", 64], [\"PRESCALE_QK\", False]], [[\"in_ptr0\", y]], "
                                  "\"99999999999999999999\", \"made.somewhere\")"),
            std::string::npos)
      << printed(listing);
  ASSERT_EQ(listing.trace.ops.size(), 1U);
  EXPECT_EQ(listing.document->operands(listing.trace.ops[0]).size(), 2U);
  ASSERT_EQ(listing.problems.size(), 1U);
  EXPECT_EQ(listing.problems[0].place, "line 4");
}

// Results that a kernel gives by name are results like any others.
TEST(JobListing, ResultsAreTakenByName) {
  const auto listing = listed(
      "        kernel = torch.ops.higher_order.triton_kernel_wrapper_functional(kernel_idx = 0, kwargs = {'x': x})\n"
      "        low: \"f32[4][1]cpu\" = kernel['low']\n"
      "        high: \"f32[4][1]cpu\" = kernel['high'];  kernel = None\n"
      "        out: \"f32[4][1]cpu\" = torch.ops.aten.add.Tensor(low, high)\n");
  EXPECT_NE(printed(listing).find("[low, high] = torch.ops.higher_order.triton_kernel_wrapper_functional(kernel_idx=0, "
                                  "kwargs=[[\"x\", x]])"),
            std::string::npos)
      << printed(listing);
}

// Dtypes, devices and memory formats are arguments of their own kind, and arguments by name have their place.
TEST(JobListing, ArgumentsFitTheSchema) {
  const auto listing = listed(
      "        out: \"f64[4][1]cpu\" = torch.ops.aten._to_copy.default(x, memory_format = torch.channels_last, device "
      "= "
      "device(type='cpu'), dtype = torch.float64)\n");
  const auto& document = *listing.document;
  const auto& call = document.pattern(document.boundSymbol(listing.trace.ops.at(0)).pattern);
  const auto& symbol = document.symbol(listing.trace.ops[0]);
  EXPECT_EQ(call.arguments.at(symbol.argumentIndex("dtype")), Argument::ofDType(DType::f64));
  EXPECT_EQ(call.arguments.at(symbol.argumentIndex("device")), Argument::ofDevice("cpu"));
  EXPECT_EQ(call.arguments.at(symbol.argumentIndex("memory_format")), Argument::ofMemoryFormat(2));
  const auto refusal = [](const std::string& call) -> std::string {
    try {
      listed("        out: \"f32[4][1]cpu\" = " + call + "\n");
    } catch (const Error& e) {
      return e.what();
    }
    return "listed";
  };
  EXPECT_EQ(refusal("torch.ops.aten.sum.dim_IntList(x, [y])"),
            "out (line 3 of the graph): expected int[]? for argument 'dim', found a tensor");
  EXPECT_EQ(refusal("torch.ops.aten.neg.default(x, y)").find("out (line 3 of the graph): expected fewer unnamed "), 0U);
  EXPECT_EQ(refusal("torch.ops.aten.neg.default(other = x)").find("out (line 3 of the graph): expected an argument "),
            0U);
  EXPECT_EQ(refusal("torch.ops.aten.neg.default()").find("out (line 3 of the graph): expected argument 'self' of "),
            0U);
  EXPECT_EQ(refusal("torch.ops.aten.neg.default({'a': x})"),
            "out (line 3 of the graph): has an argument that an op of LibTorch does not take: {'a': x}");
}

}  // namespace
}  // namespace retrograd::jobs
