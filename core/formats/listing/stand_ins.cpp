#include "core/formats/listing/stand_ins.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <unordered_map>

#include "core/formats/fx/lower_prims.h"
#include "core/trace/op_traits.h"

namespace retrograd::jobs {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

constexpr std::string_view prefix = "torch.ops.";

/// "aten.mm.default"; empty for what is not a call of an op.
std::string_view opOf(const Expression& call) {
  if (!call.is(Kind::call) || !call.items[0].is(Kind::path) || !call.items[0].text.starts_with(prefix)) return {};
  return std::string_view(call.items[0].text).substr(prefix.size());
}

bool isOpaque(const Expression& call, const SymbolLookup& lookup) {
  const auto op = opOf(call);
  return !op.empty() && !fx::isLoweredPrim(op) && !lookup(op);
}

/// Whether a call says by its name that it writes: "triton_kernel_wrapper_mutation", "all_reduce_.default".
bool writesByName(std::string_view op) {
  if (op.find("mutation") != std::string_view::npos) return true;
  const auto dot = op.find('.');
  auto name = op.substr(dot + 1);
  name = name.substr(0, name.find('.'));
  return name.ends_with('_') && !name.ends_with("__");
}

std::optional<std::size_t> baseOfItem(const Expression& call) {
  return call.is(Kind::item) && call.items[0].is(Kind::value) ? std::optional(call.items[0].valueIndex())
                                                              : std::nullopt;
}

const fx::Type* typeOf(const fx::Graph& graph, std::size_t value) {
  const auto type = graph.valueType(value);
  return type == fx::noIndex ? nullptr : &graph.types[type];
}

bool isTensor(const fx::Graph& graph, std::size_t value) {
  const auto* type = typeOf(graph, value);
  return type != nullptr && type->kind == fx::Type::Kind::tensor;
}

bool isFloating(const fx::Graph& graph, std::size_t value) {
  return isTensor(graph, value) && isFloating(typeOf(graph, value)->dtype);
}

bool isNumber(const fx::Graph& graph, std::size_t value) {
  const auto* type = typeOf(graph, value);
  return type != nullptr && type->kind == fx::Type::Kind::number;
}

/// By value: the call (a node) that it is an item of, or an item of an item; none for other values.
std::vector<std::optional<std::size_t>> callsOfItems(const fx::Graph& graph, const SymbolLookup& lookup) {
  std::vector<std::optional<std::size_t>> calls(graph.valueCount());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& call = graph.nodes[n].call;
    const auto value = graph.inputs.size() + n;
    if (isOpaque(call, lookup)) calls[value] = n;
    else if (const auto base = baseOfItem(call); base && !isTensor(graph, *base)) calls[value] = calls[*base];
  }
  return calls;
}

/// The text of a call without the names of values, and the texts of the bodies that it is given.
std::string argumentsOf(const fx::Graph& graph, const Expression& call) {
  const std::vector<std::string> unnamed(graph.valueCount(), "_");
  auto text = fx::toText(call, unnamed);
  fx::forEachValue(call, [&](std::size_t value) {
    if (value < graph.inputs.size()) return;
    const auto attribute = fx::ownAttribute(graph.nodes[value - graph.inputs.size()].call);
    const auto* body = attribute ? graph.body(*attribute) : nullptr;
    if (body == nullptr) return;
    std::vector<std::string> names(body->valueCount());
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("v{}", i);
    for (const auto& node : body->nodes) text += "\n" + fx::toText(node.call, names);
    for (const auto& output : body->outputs) text += "\nreturn " + fx::toText(output.value, names);
  });
  return text;
}

Expression real(double number) {
  auto e = fx::leaf(Kind::real);
  e.real = number;
  return e;
}

Expression call(std::string_view op, std::vector<Expression> arguments) {
  return fx::callOf(fmt::format("torch.ops.aten.{}", op), std::move(arguments));
}

/// Copies a graph. A value of the copy is known by a key: an input's position, then those of nodes; the k-th input that
/// is added is -1 - k.
class Copy {
 public:
  Copy(const fx::Graph& graph, const SymbolLookup& lookup, const std::vector<std::string>& given)
      : from_(graph), lookup_(lookup), given_(given.begin(), given.end()), calls_(callsOfItems(graph, lookup)) {
    to_ = graph;
    to_.nodes.clear();
    for (std::size_t i = 0; i < from_.valueCount(); ++i) names_.insert(from_.valueName(i));
  }

  StoodIn run() {
    keys_.resize(from_.valueCount());
    for (std::size_t i = 0; i < from_.inputs.size(); ++i) keys_[i] = static_cast<std::int64_t>(i);
    findUnset();
    for (std::size_t n = 0; n < from_.nodes.size(); ++n) {
      node_ = n;
      visit(from_.inputs.size() + n);
    }
    for (auto& output : to_.outputs) move(output.value);
    return settle();
  }

 private:
  /// Memory that nobody wrote to yet, and views of it: what it holds is not the program's.
  void findUnset() {
    unset_.resize(from_.valueCount());
    for (std::size_t n = 0; n < from_.nodes.size(); ++n) {
      const auto& made = from_.nodes[n].call;
      const auto op = opOf(made);
      if (hasTrait(op, OpTrait::leavesUnwritten)) unset_[from_.inputs.size() + n] = 1;
      const auto symbol = op.empty() ? std::nullopt : lookup_(op);
      if (symbol && symbol->isView && made.items.size() > 1 && made.items[1].is(Kind::value))
        unset_[from_.inputs.size() + n] = unset_[made.items[1].valueIndex()];
    }
  }

  void visit(std::size_t value) {
    const auto& node = from_.nodes[node_];
    const auto of = calls_[value];
    if (!of) {
      auto copy = node;
      move(copy.call);
      keys_[value] = add(std::move(copy));
      return;
    }
    if (of == node_) startCall();
    if (isTensor(from_, value)) {
      keys_[value] = result(*of, value);
      return;
    }
    keys_[value] = add({node.name, isNumber(from_, value) ? node.type : fx::noIndex, node.source,
                        fx::path("self." + node.name), node.line});  // nobody reads it, or it is a size
  }

  /// A tensor that an opaque call gives.
  std::int64_t result(std::size_t of, std::size_t value) {
    const auto& node = from_.nodes[value - from_.inputs.size()];
    const auto factor = factors_.find(of);
    if (given_.contains(node.name) || factor == factors_.end() || !isFloating(from_, value))
      return addInput(node.name, node.type);
    const auto base = addInput(node.name + "__stand_in", node.type);
    return add({node.name, node.type, node.source, call("mul.Tensor", {fx::valueAt(base), fx::valueAt(factor->second)}),
                node.line});
  }

  /// The results of a call are multiplied with this: of each tensor x that it reads six times its norm and a weighted
  /// sum of its elements, which is positive, and of these the geometric mean. So each x counts as much as any other,
  /// however large it is, and a part of it that is off moves the result by as large a part.
  void startCall() {
    const auto& node = from_.nodes[node_];
    std::vector<std::int64_t> logs;
    std::size_t k = 0;
    fx::forEachValue(node.call, [&](std::size_t operand) {
      const auto position = k++;
      if (!isTensor(from_, operand) || unset_[operand] || isComplex(typeOf(from_, operand)->dtype)) return;
      logs.push_back(logOf(operand, position));
    });
    if (logs.empty()) return;
    auto sum = logs.front();
    for (std::size_t i = 1; i < logs.size(); ++i) sum = step("add.Tensor", {fx::valueAt(sum), fx::valueAt(logs[i])});
    const auto mean = step("mul.Scalar", {fx::valueAt(sum), real(1.0 / static_cast<double>(logs.size()))});
    factors_[node_] = step("exp.default", {fx::valueAt(mean)});
  }

  std::int64_t logOf(std::size_t operand, std::size_t position) {
    auto type = *typeOf(from_, operand);
    if (type.dtype != DType::f64) type.dtype = DType::f32;
    type.strides.clear();
    type.hasStrides = false;
    to_.types.push_back(type);
    const auto weights = addInput(fmt::format("{}__weights_{}", from_.nodes[node_].name, position),
                                  static_cast<std::uint32_t>(to_.types.size() - 1));
    const auto dtype = type.dtype == DType::f64 ? "torch.float64" : "torch.float32";
    const auto cast = step("_to_copy.default", {fx::valueAt(keys_[operand]), fx::keyword("dtype", fx::path(dtype))});
    const auto x =
        step("nan_to_num.default", {fx::valueAt(cast), real(0), real(1), real(-1)});  // a mask has infinities
    const auto weighted = step("mul.Tensor", {fx::valueAt(x), fx::valueAt(weights)});
    const auto sum = step("sum.default", {fx::valueAt(weighted)});
    const auto norm = step("linalg_vector_norm.default", {fx::valueAt(x)});
    const auto size = step("mul.Scalar", {fx::valueAt(norm), real(6)});
    const auto whole = step("add.Tensor", {fx::valueAt(size), fx::valueAt(sum)});
    constexpr double least = 1e-30;  // of a tensor of zeros, which leaves the others their part
    return step("log.default", {fx::valueAt(step("clamp_min.default", {fx::valueAt(whole), real(least)}))});
  }

  std::int64_t step(std::string_view op, std::vector<Expression> arguments) {
    const auto& node = from_.nodes[node_];
    fx::Node made{{}, fx::noIndex, node.source, call(op, std::move(arguments)), node.line};
    do made.name = fmt::format("{}__step_{}", node.name, ++steps_);
    while (!names_.insert(made.name).second);
    return add(std::move(made));
  }

  std::int64_t add(fx::Node node) {
    to_.nodes.push_back(std::move(node));
    origins_.push_back(node_);
    return static_cast<std::int64_t>(from_.inputs.size() + to_.nodes.size() - 1);
  }

  std::int64_t addInput(std::string name, std::uint32_t type) {
    fx::Input input;
    input.name = std::move(name);
    input.type = type;
    input.line = from_.nodes[node_].line;
    to_.inputs.push_back(std::move(input));
    return -static_cast<std::int64_t>(to_.inputs.size() - from_.inputs.size());
  }

  void move(Expression& e) const {
    if (e.is(Kind::value)) e.integer = keys_[e.valueIndex()];
    for (auto& item : e.items) move(item);
  }

  /// Keys become values: how many inputs there are is known now.
  StoodIn settle() {
    const auto before = std::ssize(from_.inputs);
    const auto added = std::ssize(to_.inputs) - before;
    const auto valueOf = [&](std::int64_t key) {
      return key < 0 ? before - 1 - key : key < before ? key : key + added;
    };
    const auto settleIn = [&](auto&& self, Expression& e) -> void {
      if (e.is(Kind::value)) e.integer = valueOf(e.integer);
      for (auto& item : e.items) self(self, item);
    };
    for (auto& node : to_.nodes) settleIn(settleIn, node.call);
    for (auto& output : to_.outputs) settleIn(settleIn, output.value);
    StoodIn stood;
    for (const auto key : keys_) stood.values.push_back(static_cast<std::size_t>(valueOf(key)));
    for (auto i = before; i < before + added; ++i) stood.inputs.push_back(static_cast<std::size_t>(i));
    stood.graph = std::move(to_);
    stood.origins = std::move(origins_);
    return stood;
  }

  const fx::Graph& from_;
  const SymbolLookup& lookup_;
  std::set<std::string> given_;
  std::vector<std::optional<std::size_t>> calls_;
  fx::Graph to_;
  std::vector<std::int64_t> keys_;  ///< by value of `from_`
  std::vector<std::size_t> origins_;
  std::vector<char> unset_;                                ///< by value of `from_`
  std::unordered_map<std::size_t, std::int64_t> factors_;  ///< by opaque call (a node of `from_`)
  std::set<std::string> names_;
  std::size_t node_ = 0, steps_ = 0;
};

}  // namespace

std::vector<OpaqueCall> opaqueCalls(const fx::Graph& graph, const SymbolLookup& lookup) {
  const auto of = callsOfItems(graph, lookup);
  std::vector<OpaqueCall> calls;
  std::unordered_map<std::size_t, std::size_t> places;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto value = graph.inputs.size() + n;
    if (!of[value]) continue;
    const auto& node = graph.nodes[n];
    if (*of[value] == n) {
      places[n] = calls.size();
      const std::string op(opOf(node.call));
      calls.push_back({node.name, op, argumentsOf(graph, node.call), {}, n, writesByName(op)});
    }
    if (isTensor(graph, value)) calls[places.at(*of[value])].results.push_back(node.name);
  }
  return calls;
}

StoodIn withStandIns(const fx::Graph& graph, const SymbolLookup& lookup, const std::vector<std::string>& given) {
  return Copy(graph, lookup, given).run();
}

}  // namespace retrograd::jobs
