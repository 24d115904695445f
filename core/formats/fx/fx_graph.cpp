#include "core/formats/fx/fx_graph.h"

#include <fmt/format.h>

#include <algorithm>

namespace retrograd::fx {

using Kind = Expression::Kind;

const Expression* Expression::keyword(std::string_view name) const {
  if (kind != Kind::call) return nullptr;
  const auto found = std::find_if(items.begin() + 1, items.end(),
                                  [&](const auto& item) { return item.kind == Kind::keyword && item.text == name; });
  return found == items.end() ? nullptr : &found->items.front();
}

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

namespace {

std::string pythonText(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + "'";
}

/// As Python's repr: the shortest that reads back, and always a real.
std::string realText(double real) {
  auto text = fmt::format("{}", real);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

class Writer {
 public:
  explicit Writer(const std::vector<std::string>& names) : names_(names) {}
  std::string take() { return std::move(out_); }

  void write(const Expression& e) {
    switch (e.kind) {
      case Kind::none: out_ += "None"; break;
      case Kind::boolean: out_ += e.integer != 0 ? "True" : "False"; break;
      case Kind::integer: out_ += fmt::format("{}", e.integer); break;
      case Kind::real: out_ += realText(e.real); break;
      case Kind::complex: out_ += fmt::format("complex({}, {})", realText(e.real), realText(e.imaginary)); break;
      case Kind::string: out_ += pythonText(e.text); break;
      case Kind::ellipsis: out_ += "..."; break;
      case Kind::value: out_ += names_.at(e.integer); break;
      case Kind::bigInteger:
      case Kind::path: out_ += e.text; break;
      case Kind::attribute: operand(e.items[0]), out_ += "." + e.text; break;
      case Kind::keyword: out_ += e.text + " = ", write(e.items[0]); break;
      case Kind::unary: out_ += e.text, operand(e.items[0]); break;
      case Kind::binary: operand(e.items[0]), out_ += " " + e.text + " ", operand(e.items[1]); break;
      case Kind::slice: slice(e); break;
      case Kind::item: operand(e.items[0]), list("[", e.items, 1, "]"); break;
      case Kind::call: operand(e.items[0]), list("(", e.items, 1, ")"); break;
      case Kind::tuple: list("(", e.items, 0, e.items.size() == 1 ? ",)" : ")"); break;
      case Kind::list: list("[", e.items, 0, "]"); break;
      case Kind::dict: dict(e); break;
      case Kind::inPlace: inPlace(e); break;
    }
  }

 private:
  void operand(const Expression& e) {
    const bool isLoose = e.is(Kind::binary) || e.is(Kind::unary) || (e.is(Kind::integer) && e.integer < 0) ||
                         (e.is(Kind::real) && e.real < 0);
    if (isLoose) out_ += "(";
    write(e);
    if (isLoose) out_ += ")";
  }
  void list(std::string_view open, const std::vector<Expression>& items, std::size_t first, std::string_view close) {
    out_ += open;
    for (auto i = first; i < items.size(); ++i) {
      if (i > first) out_ += ", ";
      write(items[i]);
    }
    out_ += close;
  }
  void dict(const Expression& e) {
    out_ += "{";
    for (std::size_t i = 0; i + 1 < e.items.size(); i += 2) {
      if (i > 0) out_ += ", ";
      write(e.items[i]), out_ += ": ", write(e.items[i + 1]);
    }
    out_ += "}";
  }
  void slice(const Expression& e) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == 1 || (i == 2 && !e.items[2].is(Kind::none))) out_ += ":";
      if (!e.items[i].is(Kind::none)) write(e.items[i]);
    }
  }
  void inPlace(const Expression& e) {
    write(e.items[0]);
    if (e.text == "[]=") {
      out_ += "[", write(e.items[1]), out_ += "] = ", write(e.items[2]);
    } else {
      out_ += " " + e.text + " ", write(e.items[1]);
    }
  }

  const std::vector<std::string>& names_;
  std::string out_;
};

}  // namespace

std::string toText(const Expression& expression, const std::vector<std::string>& names) {
  Writer writer(names);
  writer.write(expression);
  return writer.take();
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
