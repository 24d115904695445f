#include "core/formats/fx/fx_graph.h"

#include <algorithm>

namespace retrograd::fx {

using Kind = Expression::Kind;

std::optional<std::string> ownAttribute(const Expression& expression) {
  if (expression.is(Kind::path)) {
    if (!expression.text.starts_with("self.")) return std::nullopt;
    return expression.text.substr(5);
  }
  if (expression.is(Kind::attribute)) {
    const auto base = ownAttribute(expression.items.front());
    return base ? std::optional(*base + "." + expression.text) : std::nullopt;
  }
  if (!expression.isCallOf("getattr") || expression.items.size() != 3 || !expression.items[2].is(Kind::string))
    return std::nullopt;
  const auto& name = expression.items[2].text;
  if (expression.items[1].isPath("self")) return name;
  const auto base = ownAttribute(expression.items[1]);
  return base ? std::optional(*base + "." + name) : std::nullopt;
}

Expression leaf(Kind kind, std::string text, std::int64_t integer) {
  Expression e;
  e.kind = kind;
  e.text = std::move(text);
  e.integer = integer;
  return e;
}

Expression with(Kind kind, std::string text, std::vector<Expression> items) {
  auto e = leaf(kind, std::move(text));
  e.items = std::move(items);
  return e;
}

Expression path(std::string text) { return leaf(Kind::path, std::move(text)); }
Expression valueAt(std::int64_t value) { return leaf(Kind::value, {}, value); }
Expression keyword(std::string name, Expression value) {
  return with(Kind::keyword, std::move(name), {std::move(value)});
}

Expression callOf(std::string target, std::vector<Expression> arguments) {
  arguments.insert(arguments.begin(), path(std::move(target)));
  return with(Kind::call, {}, std::move(arguments));
}

void moveValues(Expression& expression, const std::vector<std::size_t>& moved) {
  if (expression.is(Kind::value)) expression.integer = static_cast<std::int64_t>(moved[expression.valueIndex()]);
  for (auto& item : expression.items) moveValues(item, moved);
}

std::string_view Descriptor::kind() const {
  return expression && expression->is(Kind::call) ? std::string_view(expression->items.front().text)
                                                  : std::string_view();
}

namespace {

std::optional<std::int64_t> plainIndexOf(const Expression& e) {
  if (e.is(Kind::call) && e.items.front().is(Kind::path)) {
    const auto& callee = e.items.front().text;
    const auto* index = e.keyword("idx");
    if ((callee == "PlainAOTInput" || callee == "PlainAOTOutput") && index != nullptr && index->is(Kind::integer))
      return index->integer;
  }
  for (const auto& item : e.items) {
    if (const auto index = plainIndexOf(item)) return index;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> Descriptor::plainIndex() const {
  return expression ? plainIndexOf(*expression) : std::nullopt;
}

const Graph* Graph::body(std::string_view name) const {
  const auto found =
      std::find_if(bodies.begin(), bodies.end(), [&](const auto& body) { return body.className == name; });
  return found == bodies.end() ? nullptr : &*found;
}

std::string_view writtenBy(const Graph& graph) {
  if (graph.hasBackwardMarks) return "PyTorch 2.15 or later";
  if (graph.hasCheckpointTags) return "PyTorch 2.10 or later";
  if (graph.hasDescriptors) return "PyTorch 2.9 or later";
  if (graph.className == "joint_helper") return "PyTorch 2.6 to 2.8";
  return "an unknown version of PyTorch";
}

}  // namespace retrograd::fx
