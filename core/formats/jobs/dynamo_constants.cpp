#include "core/formats/jobs/dynamo_constants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/number_text.h"

namespace retrograd::jobs {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

/// Numbers that a program wrote down.
struct Literal {
  std::vector<std::int64_t> sizes;
  std::vector<Expression> numbers;  ///< integers, reals and booleans, in the order of memory

  std::string text() const { return fx::toText(asList(), {}); }

 private:
  Expression asList() const {
    Expression list;
    list.kind = Kind::list;
    list.items = numbers;
    return list;
  }
};

bool isNumber(const Expression& e) { return e.is(Kind::integer) || e.is(Kind::real) || e.is(Kind::boolean); }

/// A number, or lists of numbers of one length each, within each other.
bool read(const Expression& e, std::size_t depth, Literal& literal) {
  constexpr std::size_t deepest = 32;
  if (isNumber(e)) {
    if (depth != literal.sizes.size()) return false;
    literal.numbers.push_back(e);
    return true;
  }
  if ((!e.is(Kind::list) && !e.is(Kind::tuple)) || depth > deepest) return false;
  const auto length = std::ssize(e.items);
  if (depth == literal.sizes.size()) {
    if (!literal.numbers.empty()) return false;
    literal.sizes.push_back(length);
  }
  return literal.sizes[depth] == length &&
         std::all_of(e.items.begin(), e.items.end(), [&](const auto& item) { return read(item, depth + 1, literal); });
}

std::string lineOf(const fx::Graph& graph, const fx::Node& node) {
  if (node.source == fx::noIndex) return {};
  const auto& source = graph.sources[node.source];
  return fmt::format("{}:{}", source.file, source.line);
}

/// Whether a function makes a tensor of the numbers that it is given first.
bool makesTensor(std::string_view path) {
  static const std::set<std::string_view> names{"tensor",     "as_tensor", "asarray",      "scalar_tensor",
                                                "new_tensor", "array",     "wrapped_array"};
  const auto name = path.substr(path.rfind('.') + 1);
  return names.contains(name) || name.ends_with("Tensor") || name.ends_with("wrapped_array");
}

using Literals = std::map<std::string, std::vector<Literal>>;  ///< by line and sizes

std::string keyOf(const std::string& line, const std::vector<std::int64_t>& sizes) {
  return fmt::format("{} [{}]", line, fmt::join(sizes, ", "));
}

void take(const Expression& e, const std::string& line, Literals& literals) {
  Literal literal;
  if (read(e, 0, literal)) literals[keyOf(line, literal.sizes)].push_back(std::move(literal));
}

void takeSubscript(const Expression& subscript, const std::string& line, Literals& literals) {
  if (subscript.is(Kind::list)) return take(subscript, line, literals);
  if (!subscript.is(Kind::tuple)) return;
  for (const auto& part : subscript.items)
    if (part.is(Kind::list)) take(part, line, literals);
}

void collect(const fx::Graph& graph, Literals& literals, int depth = 0) {
  constexpr int deepest = 60;
  for (const auto& node : graph.nodes) {
    const auto line = lineOf(graph, node);
    const auto& call = node.call;
    const bool isFunction = call.is(Kind::call) && call.items.size() > 1;
    if (isFunction && call.items[0].is(Kind::path) && makesTensor(call.items[0].text))
      take(call.items[1], line, literals);
    if (isFunction && call.items[0].is(Kind::attribute) && makesTensor(call.items[0].text))
      take(call.items[1], line, literals);
    if (call.is(Kind::item)) takeSubscript(call.items[1], line, literals);
    if (call.is(Kind::inPlace) && call.text == "[]=") takeSubscript(call.items[1], line, literals);
  }
  if (depth < deepest)
    for (const auto& body : graph.bodies) collect(body, literals, depth + 1);
}

double realOf(const Expression& number) {
  return number.is(Kind::real) ? number.real : static_cast<double>(number.integer);
}

template <class Element>
void append(std::vector<std::byte>& bytes, Element element) {
  const auto raw = std::bit_cast<std::array<std::byte, sizeof(Element)>>(element);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

/// False where the type does not hold such a number, or is none of those that are written here.
bool append(std::vector<std::byte>& bytes, DType dtype, const Expression& number) {
  if (!isDifferentiable(dtype) && number.is(Kind::real)) return false;
  switch (dtype) {
    case DType::f64: append(bytes, realOf(number)); return true;
    case DType::f32: append(bytes, static_cast<float>(realOf(number))); return true;
    case DType::i64: append(bytes, number.integer); return true;
    case DType::i32: append(bytes, static_cast<std::int32_t>(number.integer)); return true;
    case DType::i16: append(bytes, static_cast<std::int16_t>(number.integer)); return true;
    case DType::i8: append(bytes, static_cast<std::int8_t>(number.integer)); return true;
    case DType::u8: append(bytes, static_cast<std::uint8_t>(number.integer)); return true;
    case DType::b8: append(bytes, static_cast<std::uint8_t>(number.integer != 0)); return true;
    default: return false;
  }
}

std::optional<TensorData> tensorOf(const Literal& literal, DType dtype) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  for (const auto& number : literal.numbers)
    if (!append(*bytes, dtype, number)) return std::nullopt;
  TensorData tensor;
  tensor.meta.dtype = dtype;
  tensor.meta.sizes = literal.sizes;
  tensor.meta.strides = contiguousStrides(literal.sizes);
  tensor.data = bytes->data();
  tensor.bytes = bytes->size();
  tensor.owner = bytes;
  return tensor;
}

std::optional<std::vector<std::int64_t>> sizesOf(const fx::Type& type) {
  std::vector<std::int64_t> sizes;
  for (const auto& text : type.sizes) {
    const auto size = numberIn<std::int64_t>(text);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

bool areEqual(const std::vector<Literal>& literals) {
  return std::all_of(literals.begin(), literals.end(),
                     [&](const auto& literal) { return literal.text() == literals.front().text(); });
}

/// Whether a node is a constant of the compiled program: an attribute that is a tensor.
bool isConstant(const fx::Graph& graph, const fx::Node& node) {
  return fx::ownAttribute(node.call) && node.type != fx::noIndex &&
         graph.types[node.type].kind == fx::Type::Kind::tensor;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> constantsOf(const fx::Graph& graph) {
  std::vector<std::pair<std::string, std::string>> constants;
  for (const auto& node : graph.nodes)
    if (isConstant(graph, node)) constants.emplace_back(node.name, *fx::ownAttribute(node.call));
  return constants;
}

TensorMap constantsOfDynamo(const fx::Graph& graph, const fx::Graph& dynamo) {
  std::map<std::string, std::vector<const fx::Node*>> wanted;  // by line and sizes, each attribute once
  std::set<std::string> met;
  for (const auto& node : graph.nodes) {
    if (!isConstant(graph, node) || !met.insert(*fx::ownAttribute(node.call)).second) continue;
    if (const auto sizes = sizesOf(graph.types[node.type])) wanted[keyOf(lineOf(graph, node), *sizes)].push_back(&node);
  }
  if (wanted.empty()) return {};
  Literals literals;
  collect(dynamo, literals);
  TensorMap constants;
  for (const auto& [key, nodes] : wanted) {
    const auto found = literals.find(key);
    if (found == literals.end() || (found->second.size() != nodes.size() && !areEqual(found->second))) continue;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& literal = found->second[std::min(i, found->second.size() - 1)];
      if (auto tensor = tensorOf(literal, graph.types[nodes[i]->type].dtype))
        constants.emplace(*fx::ownAttribute(nodes[i]->call), std::move(*tensor));
    }
  }
  return constants;
}

}  // namespace retrograd::jobs
