#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/formats/fx/fx_graph.h"

namespace retrograd::jobs {

/// Which nodes of a graph take the results of calls that give several: `getitem = native_layer_norm[0]`, or by name, as
/// a Triton kernel gives them: `getitem = triton_kernel['out']`.
class CallResults {
 public:
  explicit CallResults(const fx::Graph& graph);

  /// The nodes that take the results of a value, fx::noIndex where none does; null where none takes any. Results of a
  /// tuple among them come behind the others.
  const std::vector<std::uint32_t>* of(std::size_t value) const;
  /// Which result of its call a node takes; those by name are counted in the order in which they are taken.
  std::optional<std::size_t> position(std::size_t value) const;
  /// Whether a node only takes a tuple apart: it is one, or takes an item of one.
  bool isInTuple(std::size_t value) const;

 private:
  std::optional<std::size_t> baseOf(const fx::Node& node) const;
  void addResult(std::size_t base, std::size_t node, std::vector<std::string>& names);

  const fx::Graph& graph_;
  std::unordered_map<std::size_t, std::vector<std::uint32_t>> results_;
  std::unordered_map<std::size_t, std::size_t> positions_;
  std::unordered_map<std::size_t, std::size_t> tuples_;  ///< a result that is a tuple: the call whose result it is
};

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
