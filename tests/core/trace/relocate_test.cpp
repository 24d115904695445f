// Moving a document from device to device.
#include "core/trace/relocate.h"

#include <gtest/gtest.h>

#include "tests/core/trace/build.h"

namespace retrograd::test {
namespace {

const Device cuda{Device::Type::cuda, 0};

/// A factory: no tensor among its arguments, but a device.
SymbolId factory(Builder& b) {
  Symbol symbol;
  symbol.name = "aten.zeros.default";
  symbol.known = true;
  symbol.arguments = {Builder::entry("size", "SymInt[]"), Builder::entry("device", "Device?"),
                      Builder::entry("pin_memory", "bool?")};
  symbol.returns = {Builder::entry("")};
  return b.document.internSymbol(symbol);
}

CallPattern factoryCall(std::optional<std::string> device, bool pinned = false) {
  CallPattern pattern;
  pattern.arguments = {Argument::ofList({Argument::ofInt(2)}),
                       device ? Argument::ofDevice(*device) : Argument::ofMissing(), Argument::ofBool(pinned)};
  return pattern;
}

const Argument& argument(const Builder& b, BoundSymbolId op, std::size_t i) {
  return b.document.pattern(b.document.boundSymbol(op).pattern).arguments.at(i);
}

TEST(Relocate, tensorsAndDeviceLiteralsMove) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto y = b.call("aten.sin.default", {x});
  const auto named = b.bind(factory(b), factoryCall("cpu"), {}, {b.value({2})});
  relocate(b.document, cuda);
  EXPECT_EQ(typeComment(b.document.meta(x)), "cuda:0 f32[2]");
  EXPECT_EQ(typeComment(b.document.meta(y)), "cuda:0 f32[2]");
  EXPECT_EQ(argument(b, named, 1), Argument::ofDevice("cuda:0"));
  EXPECT_EQ(deviceOf(b.document, {x}), cuda);
  relocate(b.document, Device());
  EXPECT_EQ(typeComment(b.document.meta(x)), "cpu f32[2]");
  EXPECT_EQ(argument(b, named, 1), Argument::ofDevice("cpu"));
  EXPECT_EQ(deviceOf(b.document, {x}), Device());
}

TEST(Relocate, aFactoryWithoutADeviceGetsOneOffTheCpuOnly) {
  Builder b;
  const auto op = b.bind(factory(b), factoryCall({}, true), {}, {b.value({2})});
  relocate(b.document, Device());
  EXPECT_EQ(argument(b, op, 1).kind, Argument::Kind::missing);
  EXPECT_EQ(argument(b, op, 2), Argument::ofBool(true));
  relocate(b.document, cuda);
  EXPECT_EQ(argument(b, op, 1), Argument::ofDevice("cuda:0"));
  EXPECT_EQ(argument(b, op, 2), Argument::ofBool(false));  // memory of a GPU cannot be pinned
}

TEST(Relocate, anOpOnTensorsStaysWhereTheyAre) {
  Builder b;
  Symbol symbol;
  symbol.name = "aten._to_copy.default";
  symbol.arguments = {Builder::entry("self"), Builder::entry("device", "Device?")};
  CallPattern pattern;
  pattern.arguments = {Argument::ofOperand(0), Argument::ofNone()};
  pattern.operandCount = 1;
  const auto op = b.bind(b.document.internSymbol(symbol), pattern, {b.input("x", {2})}, {b.value({2})});
  relocate(b.document, cuda);
  EXPECT_EQ(argument(b, op, 1).kind, Argument::Kind::none);
}

TEST(Relocate, autocastIsForTheDevice) {
  Builder b;
  Symbol symbol;
  symbol.name = "higher_order.wrap_with_autocast";
  symbol.isHigherOrder = true;
  CallPattern pattern;
  pattern.arguments = {Argument::ofString("cpu"), Argument::ofDType(DType::bf16)};
  const auto op = b.bind(b.document.internSymbol(symbol), pattern, {}, {});
  relocate(b.document, Device{Device::Type::cuda, 1});
  EXPECT_EQ(argument(b, op, 0), Argument::ofString("cuda"));
}

TEST(Relocate, otherDevicesStay) {
  Builder b;
  const auto op = b.bind(factory(b), factoryCall("meta"), {}, {b.value({2})});
  relocate(b.document, cuda);
  EXPECT_EQ(argument(b, op, 1), Argument::ofDevice("meta"));
}

TEST(Relocate, cudaWithoutANumberIsTheFirst) {
  EXPECT_EQ(withIndex(Device{Device::Type::cuda, -1}), cuda);
  EXPECT_EQ(withIndex(Device{Device::Type::cuda, 3}).index, 3);
  EXPECT_EQ(withIndex(Device()), Device());
}

}  // namespace
}  // namespace retrograd::test
