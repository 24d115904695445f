// Symbolic sizes: sympy's srepr, a nest of calls, as the infix text that people write.
#include <optional>
#include <vector>

#include "core/formats/pt2/pt2_values.h"

namespace retrograd::pt2 {
namespace {

constexpr int comparisonLevel = 0, sumLevel = 1, productLevel = 2, powerLevel = 3, atomLevel = 4;
constexpr int maxNesting = 64;

/// A printed part and how tightly it binds.
struct Part {
  std::string text;
  int level = atomLevel;
};

class Srepr {
 public:
  explicit Srepr(std::string_view text) : text_(text) {}
  std::optional<std::string> print() {
    auto part = call(0);
    return part && at_ == text_.size() ? std::optional(part->text) : std::nullopt;
  }

 private:
  bool take(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const auto begin = at_;
    const auto isPart = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
    };
    while (at_ < text_.size() && isPart(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::optional<Part> quoted() {
    const auto end = text_.find('\'', at_);
    if (end == std::string_view::npos) return std::nullopt;
    Part part{std::string(text_.substr(at_, end - at_))};
    at_ = end + 1;
    return part;
  }
  /// One argument; nothing (but no failure) for a keyword such as positive=True.
  bool argument(int depth, std::vector<Part>& parts) {
    if (take('\'')) {
      auto part = quoted();
      if (part) parts.push_back(std::move(*part));
      return part.has_value();
    }
    const auto begin = at_;
    const auto name = word();
    if (!name.empty() && take('=')) return !word().empty();
    at_ = begin;
    auto part = call(depth + 1);
    if (part) parts.push_back(std::move(*part));
    return part.has_value();
  }
  std::optional<Part> call(int depth) {
    if (depth > maxNesting) return std::nullopt;
    const std::string name(word());
    if (name.empty()) return std::nullopt;
    if (!take('(')) return Part{name, name.starts_with('-') ? productLevel : atomLevel};
    std::vector<Part> parts;
    while (!take(')')) {
      if (!argument(depth, parts)) return std::nullopt;
      take(',');
    }
    return combine(name, parts);
  }
  static std::string wrapped(const Part& part, int level) {
    return part.level < level ? "(" + part.text + ")" : part.text;
  }
  static Part join(const std::vector<Part>& parts, std::string_view sign, int level) {
    Part all{{}, level};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool subtracted = i > 0 && level == sumLevel && parts[i].text.starts_with('-');
      if (subtracted) all.text += " - " + wrapped({parts[i].text.substr(1), parts[i].level}, level + 1);
      else all.text += std::string(i ? sign : "") + wrapped(parts[i], i ? level + 1 : level);
    }
    return all;
  }
  /// -1*a*b as "-a*b"; a quotient among the factors in parentheses, as the sign binds tighter than "//".
  static Part negated(const std::vector<Part>& parts) {
    Part all{"-", productLevel};
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (i > 1) all.text += '*';
      all.text += wrapped(parts[i], productLevel + 1);
    }
    return all;
  }
  /// A negative dividend in parentheses: what subtracts the quotient would take its sign for its own.
  static std::vector<Part> dividend(std::vector<Part> parts) {
    if (!parts.empty() && parts.front().text.starts_with('-'))
      parts.front() = {wrapped(parts.front(), atomLevel + 1), atomLevel};
    return parts;
  }
  static std::string_view comparison(std::string_view name) {
    static constexpr std::pair<std::string_view, std::string_view> signs[] = {
        {"Equality", " == "},    {"Unequality", " != "},    {"LessThan", " <= "},
        {"GreaterThan", " >= "}, {"StrictLessThan", " < "}, {"StrictGreaterThan", " > "}};
    for (const auto& [known, sign] : signs)
      if (name == known) return sign;
    return {};
  }
  static Part combine(const std::string& name, const std::vector<Part>& parts) {
    if ((name == "Symbol" || name == "Integer" || name == "Float") && !parts.empty()) return parts.front();
    if (const auto sign = comparison(name); !sign.empty() && parts.size() == 2)
      return join(parts, sign, comparisonLevel);
    if (name == "Add") return join(parts, " + ", sumLevel);
    if (name == "Mul" && parts.size() > 1 && parts.front().text == "-1") return negated(parts);
    if (name == "Mul") return join(parts, "*", productLevel);
    if (name == "Pow") return join(parts, "**", powerLevel);
    if (name == "Rational" || name == "IntTrueDiv") return join(parts, "/", productLevel);
    if (name == "FloorDiv" || name == "CleanDiv") return join(dividend(parts), "//", productLevel);
    if (name == "Mod" || name == "PythonMod") return join(dividend(parts), "%", productLevel);
    Part all{name + "("};
    for (std::size_t i = 0; i < parts.size(); ++i) all.text += (i ? ", " : "") + parts[i].text;
    all.text += ")";
    return all;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string shortExpression(std::string_view srepr) {
  constexpr std::size_t longest = 4096;
  if (srepr.size() > longest) return std::string(srepr.substr(0, longest));
  return Srepr(srepr).print().value_or(std::string(srepr));
}

}  // namespace retrograd::pt2
