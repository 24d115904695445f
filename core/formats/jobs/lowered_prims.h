#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd::jobs {

/// A call as a trace prints it: "torch.ops.aten.mm.default", and its arguments, named ones as "name=value" behind the
/// others.
struct PrintedCall {
  std::string target;
  std::vector<std::string> arguments;
};

/// Says a call of `prims` in terms of `aten`: LibTorch has no prims, they are made in Python. Inductor's draws become
/// those of LibTorch's generator, without a seed of their own. Leaves any other call as it is. Returns what is wrong
/// with a call that cannot be said, such as a range whose length is no number.
std::optional<std::string> lowerPrims(PrintedCall& call);

/// Whether lowerPrims() knows this op of `prims` ("prims.iota.default").
bool isLowered(std::string_view op);

}  // namespace retrograd::jobs
