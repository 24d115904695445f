#include "core/trace/print/json.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/core/trace/build.h"

namespace retrograd {
namespace {

using test::Builder;
using Json = nlohmann::ordered_json;

TEST(TraceJson, opsCarryArgumentsOriginAndEffects) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto y = b.call("aten.sin.default", {x});
  const auto op = b.trace.ops.back();
  Origin from;
  from.op = op;
  from.role = Role::accumulation;
  from.operand = 0;
  from.value = x;
  b.document.setTerms(from, std::vector{x, y});
  b.trace.ops.clear();
  b.trace.kind = TraceKind::backward;
  const auto list = Argument::ofList(
      {Argument::ofOperand(1), Argument::ofInt(3), Argument::ofReal(std::numeric_limits<double>::infinity())});
  b.bind(b.symbol("aten.foo.default", 2), CallPattern{{Argument::ofOperand(0), list}, {}, 2, {}}, {x, y},
         {b.value({2})}, from, effect::writes);
  const Trace* traces[] = {&b.trace};
  const auto json = traceDocument(b.document, traces);
  const auto& entry = json["traces"]["backward"]["ops"][0];
  EXPECT_EQ(entry["op"], "torch.ops.aten.foo.default");
  EXPECT_EQ(entry["args"], Json::parse(R"([{"value": 0}, [{"value": 1}, 3, "inf"]])"));
  EXPECT_EQ(entry["outputs"], Json::parse("[2]"));
  EXPECT_EQ(entry["effects"], Json::parse(R"(["writes"])"));
  EXPECT_EQ(entry["origin"],
            Json::parse(R"({"id": 0, "op": "torch.ops.aten.sin.default", "role": "accumulation", "operand": 0,
                                            "output": null, "value": 0, "terms": [0, 1]})"));
  EXPECT_EQ(json["values"].size(), 3u);
}

TEST(TraceJson, savedActivationsHaveTheirOwnKind) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto y = b.call("aten.sin.default", {x});
  b.trace.kind = TraceKind::forward;
  b.trace.outputs = {ValueId(), x, y};
  b.trace.resultCount = 1;
  const Trace* traces[] = {&b.trace};
  TraceDocumentInfo info;
  info.forward = &b.trace;
  info.notes = {"a note"};
  const auto json = traceDocument(b.document, traces, info);
  EXPECT_EQ(json["values"]["0"]["kind"], "input");
  EXPECT_EQ(json["values"]["1"]["kind"], "saved");
  EXPECT_EQ(json["values"]["1"]["shape"], Json::parse("[2]"));
  EXPECT_EQ(json["traces"]["forward"]["outputs"], Json::parse("[null, 0, 1]"));
  EXPECT_EQ(json["traces"]["forward"]["saved"], Json::parse("[0, 1]"));
  EXPECT_EQ(json["notes"][0], "a note");
}

TEST(TraceJson, symbolicSizesKeepTheirNumbers) {
  Builder b;
  const auto x = b.input("x", {8, 3});
  auto meta = b.document.meta(x);
  meta.symbols = {"2*s0", ""};
  meta.strideSymbols = {"", "s0"};
  b.document.value(x).meta = b.document.internMeta(meta);
  b.document.setSizeSymbols({{"s0", 4, 2, 512}, {"s1", 3, 0, {}}});
  auto size = Argument::ofInt(16);
  size.text = "4*s0";
  b.bind(b.symbol("aten.foo.default", 2),
         CallPattern{{Argument::ofOperand(0), Argument::ofList({size, Argument::ofInt(3)})}, {}, 1, {}}, {x}, {});
  const Trace* traces[] = {&b.trace};
  const auto json = traceDocument(b.document, traces);
  EXPECT_EQ(
      json["sizes"],
      Json::parse(
          R"([{"symbol": "s0", "hint": 4, "min": 2, "max": 512}, {"symbol": "s1", "hint": 3, "min": 0, "max": null}])"));
  EXPECT_EQ(json["values"]["0"]["shape"], Json::parse("[8, 3]"));
  EXPECT_EQ(json["values"]["0"]["symbols"], Json::parse(R"(["2*s0", ""])"));
  EXPECT_EQ(json["values"]["0"]["stride_symbols"], Json::parse(R"(["", "s0"])"));
  EXPECT_EQ(json["traces"]["computation"]["ops"][0]["args"],
            Json::parse(R"([{"value": 0}, [{"symbol": "4*s0", "hint": 16}, 3]])"));
}

TEST(TraceJson, textThatIsNotUtf8IsReplaced) { EXPECT_NO_THROW(EXPECT_FALSE(dumpJson(Json("\xff\xfe")).empty())); }

}  // namespace
}  // namespace retrograd
