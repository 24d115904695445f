#include "core/formats/jobs/lowered_prims.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "core/base/number_text.h"

namespace retrograd::jobs {
namespace {

constexpr std::string_view prefix = "torch.ops.prims.", suffix = ".default";

/// The value of a named argument; empty where it is not given.
std::string_view named(const PrintedCall& call, std::string_view name) {
  for (const std::string_view argument : call.arguments)
    if (argument.starts_with(name) && argument.substr(name.size()).starts_with('='))
      return argument.substr(name.size() + 1);
  return {};
}

using Problem = std::optional<std::string>;

Problem lowerIota(PrintedCall& call) {
  const auto number = [&](std::string_view name, std::int64_t otherwise) -> std::optional<std::int64_t> {
    const auto text = named(call, name);
    return text.empty() ? otherwise : numberIn<std::int64_t>(text);
  };
  const auto length = call.arguments.empty() ? std::nullopt : numberIn<std::int64_t>(call.arguments[0]);
  if (!length || *length < 0 || *length > (std::int64_t{1} << 40)) return "a length that is not a number";
  const auto start = number("start", 0), step = number("step", 1);
  if (!start || !step) return "a start or step that is not a number";
  std::int64_t end = 0;
  if (__builtin_mul_overflow(*length, *step, &end) || __builtin_add_overflow(end, *start, &end))
    return "a range beyond 64 bits";
  std::vector<std::string> lowered{std::to_string(*start), std::to_string(end), std::to_string(*step)};
  for (const std::string_view name : {"dtype", "device"})
    if (const auto text = named(call, name); !text.empty())
      lowered.push_back(std::string(name) + "=" + std::string(text));
  call = {"torch.ops.aten.arange.start_step", std::move(lowered)};
  return std::nullopt;
}

Problem lowerCast(PrintedCall& call) {
  if (call.arguments.size() == 2)
    call = {"torch.ops.aten._to_copy.default", {call.arguments[0], "dtype=" + call.arguments[1]}};
  return std::nullopt;
}

Problem lowerDevicePut(PrintedCall& call) {
  if (call.arguments.size() >= 2)
    call = {"torch.ops.aten._to_copy.default", {call.arguments[0], "device=" + call.arguments[1]}};
  return std::nullopt;
}

Problem lowerViewOf(PrintedCall& call) {
  if (call.arguments.size() == 1) call.target = "torch.ops.aten.alias.default";
  return std::nullopt;
}

Problem lowerSeeds(PrintedCall& call) {
  if (call.arguments.size() == 2)
    call = {"torch.ops.aten.zeros.default",
            {"[" + call.arguments[0] + "]", "dtype=torch.int64", "device=" + call.arguments[1]}};
  return std::nullopt;
}

Problem lowerLookupSeed(PrintedCall& call) {
  if (call.arguments.size() == 2) call = {"torch.ops.aten.select.int", {call.arguments[0], "0", call.arguments[1]}};
  return std::nullopt;
}

Problem lowerRandom(PrintedCall& call) {
  if (call.arguments.size() < 3) return std::nullopt;
  const bool isNormal = call.arguments[2] == "\"randn\"" || call.arguments[2] == "'randn'";
  call = {isNormal ? "torch.ops.aten.randn.default" : "torch.ops.aten.rand.default", {call.arguments[0]}};
  return std::nullopt;
}

Problem lowerRandint(PrintedCall& call) {
  if (call.arguments.size() < 4) return std::nullopt;
  call.target = "torch.ops.aten.randint.low";
  call.arguments.resize(3);
  return std::nullopt;
}

/// fma(a, b, c) is a * b + c, addcmul(c, a, b) the same.
Problem lowerFma(PrintedCall& call) {
  if (call.arguments.size() != 3) return std::nullopt;
  call.target = "torch.ops.aten.addcmul.default";
  std::rotate(call.arguments.begin(), call.arguments.begin() + 2, call.arguments.end());
  return std::nullopt;
}

Problem lowerRev(PrintedCall& call) {
  call.target = "torch.ops.aten.flip.default";
  return std::nullopt;
}

Problem lowerPooling(PrintedCall& call) {
  if (call.arguments.size() < 2) return std::nullopt;
  const bool isOf3 = std::count(call.arguments[1].begin(), call.arguments[1].end(), ',') == 2;
  call.target =
      isOf3 ? "torch.ops.aten.max_pool3d_with_indices.default" : "torch.ops.aten.max_pool2d_with_indices.default";
  return std::nullopt;
}

/// The pooling above gives indices already.
Problem lowerPoolingOffsets(PrintedCall& call) {
  if (call.arguments.empty()) return std::nullopt;
  call.target = "torch.ops.aten.alias.default";
  call.arguments.resize(1);
  return std::nullopt;
}

const std::map<std::string_view, Problem (*)(PrintedCall&)>& lowerings() {
  static const std::map<std::string_view, Problem (*)(PrintedCall&)> table{
      {"convert_element_type", lowerCast},
      {"iota", lowerIota},
      {"view_of", lowerViewOf},
      {"device_put", lowerDevicePut},
      {"inductor_seeds", lowerSeeds},
      {"inductor_lookup_seed", lowerLookupSeed},
      {"inductor_random", lowerRandom},
      {"inductor_randint", lowerRandint},
      {"fma", lowerFma},
      {"rev", lowerRev},
      {"_low_memory_max_pool_with_offsets", lowerPooling},
      {"_low_memory_max_pool_offsets_to_indices", lowerPoolingOffsets}};
  return table;
}

/// "iota" of "torch.ops.prims.iota.default"; empty for an op of another namespace or overload.
std::string_view primOf(std::string_view target) {
  if (!target.starts_with(prefix) || !target.ends_with(suffix)) return {};
  return target.substr(prefix.size(), target.size() - prefix.size() - suffix.size());
}

}  // namespace

std::optional<std::string> lowerPrims(PrintedCall& call) {
  const auto found = lowerings().find(primOf(call.target));
  return found == lowerings().end() ? std::nullopt : found->second(call);
}

bool isLowered(std::string_view op) { return lowerings().contains(primOf("torch.ops." + std::string(op))); }

}  // namespace retrograd::jobs
