// Expressions as Python text.
#include <fmt/format.h>

#include "core/formats/python_syntax/python_expression.h"

namespace retrograd::python {

using Kind = Expression::Kind;

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

}  // namespace retrograd::python
