#include "core/formats/fx/lower_prims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/error.h"
#include "core/base/number_text.h"

namespace retrograd::fx {
namespace {

using Kind = Expression::Kind;
using Items = std::vector<Expression>;

constexpr std::string_view prefix = "torch.ops.prims.", suffix = ".default";
constexpr std::int64_t longestRange = std::int64_t{1} << 40, mostOfAWindow = std::int64_t{1} << 31;

Expression integer(std::int64_t n) { return leaf(Kind::integer, {}, n); }
Expression list(Items items) { return with(Kind::list, {}, std::move(items)); }
Expression call(std::string_view op, Items arguments) {
  return callOf(fmt::format("torch.ops.aten.{}", op), std::move(arguments));
}
Expression int64Type() { return keyword("dtype", path("torch.int64")); }

/// "iota" of "torch.ops.prims.iota.default"; empty for an op of another namespace or overload.
std::string_view primOf(std::string_view target) {
  if (!target.starts_with(prefix) || !target.ends_with(suffix) || target.size() < prefix.size() + suffix.size())
    return {};
  return target.substr(prefix.size(), target.size() - prefix.size() - suffix.size());
}

/// Prims of one ATen op with the same arguments.
const std::map<std::string_view, std::string_view>& renamed() {
  static const std::map<std::string_view, std::string_view> table{{"view_of", "alias.default"},
                                                                  {"rev", "flip.default"},
                                                                  {"_unsafe_index_put_", "index_put_.default"},
                                                                  {"sum", "sum.dim_IntList"},
                                                                  {"amax", "amax.default"},
                                                                  {"amin", "amin.default"},
                                                                  {"transpose", "permute.default"},
                                                                  {"squeeze", "squeeze.dims"},
                                                                  {"where", "where.self"},
                                                                  {"clone", "clone.default"},
                                                                  {"scalar_tensor", "scalar_tensor.default"},
                                                                  {"maximum", "maximum.default"},
                                                                  {"minimum", "minimum.default"},
                                                                  {"add", "add.Tensor"},
                                                                  {"sub", "sub.Tensor"},
                                                                  {"mul", "mul.Tensor"},
                                                                  {"eq", "eq.Tensor"},
                                                                  {"ne", "ne.Tensor"},
                                                                  {"lt", "lt.Tensor"},
                                                                  {"le", "le.Tensor"},
                                                                  {"gt", "gt.Tensor"},
                                                                  {"ge", "ge.Tensor"}};
  return table;
}

/// A window that slides over a tensor's last dimensions.
struct Window {
  std::vector<std::int64_t> kernel, stride, padding, dilation;
  Items input;  ///< sizes of what it slides over

  std::size_t rank() const { return stride.size(); }
};

class Lowering {
 public:
  explicit Lowering(const Graph& graph) : from_(graph), to_(graph) { to_.nodes.clear(); }

  Lowered run() {
    moved_.resize(from_.valueCount());
    std::vector<std::size_t> origins;
    for (std::size_t i = 0; i < from_.inputs.size(); ++i) moved_[i] = i;
    for (const auto& node : from_.nodes) {
      node_ = node;
      moveValues(node_.call, moved_);
      lower();
      const auto place = static_cast<std::size_t>(&node - from_.nodes.data());
      moved_[from_.inputs.size() + place] = to_.valueCount() - 1;
      origins.resize(to_.nodes.size(), place);
    }
    for (auto& output : to_.outputs) moveValues(output.value, moved_);
    return {std::move(to_), std::move(moved_), std::move(origins)};
  }

  static bool knows(std::string_view prim) { return rules().contains(prim) || renamed().contains(prim); }

 private:
  using Rule = void (Lowering::*)();
  static const std::map<std::string_view, Rule>& rules();

  [[noreturn]] void fail(std::string message) const {
    badInput(std::move(message), fmt::format("{} (line {} of the graph)", node_.name, node_.line));
  }

  void lower() {
    const auto& right = node_.call;
    if (right.is(Kind::item) && right.items[0].is(Kind::value) && right.items[1].is(Kind::integer) &&
        right.items[1].integer == 1)
      if (const auto window = pooled_.find(right.items[0].valueIndex()); window != pooled_.end())
        return finish(call("_to_copy.default",
                           {offsetsOf(emit(right), window->second), keyword("dtype", leaf(Kind::path, "torch.int8"))}));
    const auto prim =
        right.is(Kind::call) && right.items[0].is(Kind::path) ? primOf(right.items[0].text) : std::string_view();
    if (const auto rule = rules().find(prim); rule != rules().end()) return (this->*rule->second)();
    if (const auto name = renamed().find(prim); name != renamed().end())
      node_.call.items[0].text = fmt::format("torch.ops.aten.{}", name->second);
    to_.nodes.push_back(std::move(node_));
  }

  // --- what a rule is made of ---

  std::size_t count() const { return node_.call.items.size() - 1; }
  /// A positional argument, else the one of that name.
  const Expression& given(std::size_t position, std::string_view name) const {
    if (position < count() && !node_.call.items[position + 1].is(Kind::keyword)) return node_.call.items[position + 1];
    if (const auto* value = node_.call.keyword(name)) return *value;
    fail(fmt::format("is called without '{}'", name));
  }

  /// The op's last step, which has its name.
  void finish(Expression last) {
    node_.call = std::move(last);
    to_.nodes.push_back(std::move(node_));
  }

  /// A step before the last.
  Expression emit(Expression step, std::uint32_t type = noIndex) {
    if (names_.empty()) {
      for (std::size_t i = 0; i < from_.valueCount(); ++i) names_.insert(from_.valueName(i));
    }
    Node node{{}, type, node_.source, std::move(step), node_.line};
    do node.name = fmt::format("{}_step_{}", node_.name, ++steps_);
    while (!names_.insert(node.name).second);
    to_.nodes.push_back(std::move(node));
    return valueAt(to_.valueCount() - 1);
  }
  Expression emit(std::string_view op, Items arguments) { return emit(call(op, std::move(arguments))); }

  const Type* typeOf(const Expression& e) const {
    const auto type = e.is(Kind::value) ? to_.valueType(e.valueIndex()) : noIndex;
    return type == noIndex ? nullptr : &to_.types[type];
  }
  bool isNumber(const Expression& e) const {
    const auto* type = typeOf(e);
    return e.is(Kind::integer) || e.is(Kind::real) || (type != nullptr && type->kind == Type::Kind::number);
  }

  /// A number that is worked out where the graph runs; `expression` says the same of size symbols, where that is known.
  Expression emitNumber(Expression step, std::string expression) {
    if (expression.empty()) return emit(std::move(step));
    Type type;
    type.kind = Type::Kind::number;
    type.text = fmt::format("Sym({})", expression);
    type.expression = std::move(expression);
    to_.types.push_back(std::move(type));
    return emit(std::move(step), static_cast<std::uint32_t>(to_.types.size() - 1));
  }

  /// The size of a tensor's dimension, counted from the end: -1 is the last.
  Expression sizeOf(const Expression& tensor, std::int64_t dimension) {
    const auto* type = typeOf(tensor);
    std::string text;
    if (type != nullptr && type->kind == Type::Kind::tensor && std::ssize(type->sizes) >= -dimension)
      text = type->sizes[type->sizes.size() - static_cast<std::size_t>(-dimension)];
    if (const auto size = numberIn<std::int64_t>(text)) return integer(*size);
    return emitNumber(call("sym_size.int", {tensor, integer(dimension)}), std::move(text));
  }

  std::vector<std::int64_t> integersOf(const Expression& e, std::string_view name) const {
    std::vector<std::int64_t> numbers;
    for (const auto& item : e.items) {
      if (!item.is(Kind::integer) || std::abs(item.integer) > mostOfAWindow)
        fail(fmt::format("has a {} that is not a number", name));
      numbers.push_back(item.integer);
    }
    return numbers;
  }

  // --- the rules ---

  void iota() {
    const auto length = given(0, "length");
    const auto optional = [&](std::string_view name, std::int64_t otherwise) {
      const auto* value = node_.call.keyword(name);
      return value == nullptr ? integer(otherwise) : *value;
    };
    const auto start = optional("start", 0), step = optional("step", 1);
    if (!start.is(Kind::integer) || !step.is(Kind::integer)) fail("a start or step that is not a number");
    Expression end;
    if (length.is(Kind::integer)) {
      std::int64_t last = 0;
      if (length.integer < 0 || length.integer > longestRange) fail("a length that is not a number");
      if (__builtin_mul_overflow(length.integer, step.integer, &last) ||
          __builtin_add_overflow(last, start.integer, &last))
        fail("a range beyond 64 bits");
      end = integer(last);
    } else if (length.is(Kind::value) && (typeOf(length) == nullptr || isNumber(length))) {
      const auto* type = typeOf(length);
      end = emitNumber(
          with(Kind::binary, "+", {with(Kind::binary, "*", {length, step}), start}),
          type == nullptr ? std::string() : fmt::format("({})*{} + {}", type->expression, step.integer, start.integer));
    } else {
      fail("a length that is not a number");
    }
    Items arguments{start, std::move(end), step};
    for (const char* name : {"dtype", "device"})
      if (const auto* value = node_.call.keyword(name)) arguments.push_back(keyword(name, *value));
    finish(call("arange.start_step", std::move(arguments)));
  }

  void cast() { finish(call("_to_copy.default", {given(0, "a"), keyword("dtype", given(1, "dtype"))})); }
  void devicePut() { finish(call("_to_copy.default", {given(0, "a"), keyword("device", given(1, "device"))})); }

  void seed() { finish(call("zeros.default", {list({}), int64Type(), keyword("device", given(0, "device"))})); }
  void seeds() {
    finish(call("zeros.default", {list({given(0, "count")}), int64Type(), keyword("device", given(1, "device"))}));
  }
  void lookupSeed() { finish(call("select.int", {given(0, "seeds"), integer(0), given(1, "index")})); }
  void random() {
    finish(call(given(2, "mode").text == "randn" ? "randn.default" : "rand.default", {given(0, "size")}));
  }
  void randint() { finish(call("randint.low", {given(0, "low"), given(1, "high"), given(2, "size")})); }

  /// fma(a, b, c) is a * b + c.
  void fma() {
    const auto a = given(0, "a"), b = given(1, "b"), c = given(2, "c");
    if (isNumber(c)) return finish(call("add.Tensor", {emit("mul.Tensor", {a, b}), c}));
    if (isNumber(b)) return finish(call("add.Tensor", {c, a, keyword("alpha", b)}));
    if (isNumber(a)) return finish(call("add.Tensor", {c, b, keyword("alpha", a)}));
    finish(call("addcmul.default", {c, a, b}));
  }

  void broadcastInDim() {
    auto value = given(0, "a");
    const auto shape = given(1, "shape");
    const auto dimensions = integersOf(given(2, "broadcast_dimensions"), "dimension");
    for (std::int64_t d = 0; d < std::ssize(shape.items); ++d)
      if (std::find(dimensions.begin(), dimensions.end(), d) == dimensions.end())
        value = emit("unsqueeze.default", {value, integer(d)});
    finish(call("expand.default", {value, shape}));
  }

  void forceStrides() {
    const auto input = given(0, "input"), strides = given(1, "stride");
    Items sizes;
    for (auto d = -std::ssize(strides.items); d < 0; ++d) sizes.push_back(sizeOf(input, d));
    finish(call("copy.default", {emit("new_empty_strided.default", {input, list(std::move(sizes)), strides}), input}));
  }

  /// (self, kernel_size, stride, padding, dilation, ceil_mode) -> values, and for each the place of its maximum in the
  /// window, as int8.
  void pool() {
    const auto self = given(0, "self");
    Window window;
    window.kernel = integersOf(given(1, "kernel_size"), "kernel");
    window.stride = integersOf(given(2, "stride"), "stride");
    window.padding = integersOf(given(3, "padding"), "padding");
    window.dilation = integersOf(given(4, "dilation"), "dilation");
    const auto rank = std::ssize(window.kernel);
    if ((rank != 2 && rank != 3) || window.stride.size() != window.kernel.size() ||
        window.padding.size() != window.kernel.size() || window.dilation.size() != window.kernel.size())
      fail("a window that does not fit");
    for (auto d = -rank; d < 0; ++d) window.input.push_back(sizeOf(self, d));
    node_.call.items[0].text =
        rank == 3 ? "torch.ops.aten.max_pool3d_with_indices.default" : "torch.ops.aten.max_pool2d_with_indices.default";
    to_.nodes.push_back(std::move(node_));
    pooled_.emplace(to_.valueCount() - 1, std::move(window));
  }

  /// (offsets, kernel_size, input_size, stride, padding, dilation) -> places in the input
  void poolOffsets() {
    Window window;
    window.kernel = integersOf(given(1, "kernel_size"), "kernel");
    window.input = given(2, "input_size").items;
    window.stride = integersOf(given(3, "stride"), "stride");
    window.padding = integersOf(given(4, "padding"), "padding");
    window.dilation = integersOf(given(5, "dilation"), "dilation");
    indicesOf(given(0, "offsets"), window);
  }
  /// (offsets, kernel_width, input_width, stride, padding), before PyTorch 2.8
  void poolOffsets2d() {
    Window window;
    if (!given(1, "kernel_w").is(Kind::integer)) fail("a kernel that is not a number");
    window.kernel = {1, given(1, "kernel_w").integer};
    window.input = {integer(1), given(2, "input_w")};
    window.stride = integersOf(given(3, "stride"), "stride");
    window.padding = integersOf(given(4, "padding"), "padding");
    window.dilation = {1, 1};
    indicesOf(given(0, "offsets"), window);
  }

  /// Where the window of each element begins in a dimension, plus stride and padding.
  Expression beginnings(const Expression& ones, const Window& window, std::size_t d) {
    const auto dimension = static_cast<std::int64_t>(d) - static_cast<std::int64_t>(window.rank());
    return emit("mul.Scalar", {emit("cumsum.default", {ones, integer(dimension)}), integer(window.stride[d])});
  }
  Expression floorDivide(const Expression& a, const Expression& b) {
    return emit("div.Scalar_mode", {a, b, keyword("rounding_mode", leaf(Kind::string, "floor"))});
  }

  void indicesOf(const Expression& offsets, const Window& window) {
    const auto rank = window.rank();
    if (rank == 0 || window.kernel.size() != rank || window.input.size() != rank || window.padding.size() != rank ||
        window.dilation.size() != rank)
      fail("a window that does not fit");
    auto rest = emit("_to_copy.default", {offsets, int64Type()});
    const auto ones = emit("ones_like.default", {rest});
    Items inWindow(rank);
    for (auto d = rank; d-- > 1;) {
      inWindow[d] = emit("remainder.Scalar", {rest, integer(window.kernel[d])});
      rest = floorDivide(rest, integer(window.kernel[d]));
    }
    inWindow[0] = rest;
    Expression index;
    for (std::size_t d = 0; d < rank; ++d) {
      const auto reach = emit("mul.Scalar", {inWindow[d], integer(window.dilation[d])});
      const auto place = emit("sub.Scalar", {emit("add.Tensor", {beginnings(ones, window, d), reach}),
                                             integer(window.stride[d] + window.padding[d])});
      index = d == 0 ? place : emit("add.Tensor", {emit("mul.Scalar", {index, window.input[d]}), place});
    }
    finish(call("alias.default", {index}));
  }

  Expression offsetsOf(const Expression& indices, const Window& window) {
    const auto rank = window.rank();
    const auto ones = emit("ones_like.default", {indices});
    auto rest = indices;
    Items places(rank);
    for (auto d = rank; d-- > 1;) {
      places[d] = emit("remainder.Scalar", {rest, window.input[d]});
      rest = floorDivide(rest, window.input[d]);
    }
    places[0] = rest;
    Expression offset;
    for (std::size_t d = 0; d < rank; ++d) {
      const auto reach = emit("add.Scalar", {emit("sub.Tensor", {places[d], beginnings(ones, window, d)}),
                                             integer(window.stride[d] + window.padding[d])});
      const auto inWindow = floorDivide(reach, integer(window.dilation[d]));
      offset =
          d == 0 ? inWindow : emit("add.Tensor", {emit("mul.Scalar", {offset, integer(window.kernel[d])}), inWindow});
    }
    return offset;
  }

  const Graph& from_;
  Graph to_;
  Node node_;                                       ///< the one that is being lowered, with values of `to_`
  std::vector<std::size_t> moved_;                  ///< by value of `from_`: which of `to_` it is
  std::unordered_map<std::size_t, Window> pooled_;  ///< by pooling call of `to_`
  std::unordered_set<std::string> names_;
  std::size_t steps_ = 0;
};

const std::map<std::string_view, Lowering::Rule>& Lowering::rules() {
  static const std::map<std::string_view, Rule> table{
      {"convert_element_type", &Lowering::cast},
      {"device_put", &Lowering::devicePut},
      {"iota", &Lowering::iota},
      {"fma", &Lowering::fma},
      {"broadcast_in_dim", &Lowering::broadcastInDim},
      {"inductor_seed", &Lowering::seed},
      {"inductor_seeds", &Lowering::seeds},
      {"inductor_lookup_seed", &Lowering::lookupSeed},
      {"inductor_random", &Lowering::random},
      {"inductor_randint", &Lowering::randint},
      {"inductor_force_stride_order", &Lowering::forceStrides},
      {"_low_memory_max_pool_with_offsets", &Lowering::pool},
      {"_low_memory_max_pool_offsets_to_indices", &Lowering::poolOffsets},
      {"_low_memory_max_pool2d_with_offsets", &Lowering::pool},
      {"_low_memory_max_pool2d_offsets_to_indices", &Lowering::poolOffsets2d}};
  return table;
}

}  // namespace

Lowered withoutPrims(const Graph& graph) { return Lowering(graph).run(); }

bool isLoweredPrim(std::string_view op) { return Lowering::knows(primOf(fmt::format("torch.ops.{}", op))); }

}  // namespace retrograd::fx
