#pragma once
#include <string>
#include <vector>

#include "core/formats/fx/fx_graph.h"

namespace retrograd::jobs {

/// What a node calls, and with what. Points into the node.
struct CallTarget {
  std::string op;  ///< "torch.ops.aten.mm.default"
  std::vector<const fx::Expression*> operands;
};

inline constexpr std::string_view opsPrefix = "torch.ops.";

/// Whether an expression calls an op; else it is a function, a method or an operator of Python.
bool isOpCall(const fx::Expression& call);

/// The op that is called; anything else as an op that LibTorch lacks: "torch.ops.torch_nn_functional.linear.default",
/// "torch.ops.Tensor.view.default", "torch.ops.python.add.default".
CallTarget targetOf(const fx::Expression& call);

}  // namespace retrograd::jobs
