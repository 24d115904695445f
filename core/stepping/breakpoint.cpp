#include "core/stepping/breakpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <vector>

#include "core/base/module_path.h"
#include "core/base/near_names.h"
#include "core/base/number_text.h"
#include "core/base/op_name.h"
#include "core/questions/why.h"

namespace retrograd {
namespace {

using Where = Breakpoint::Where;
using When = Breakpoint::When;

std::vector<std::string> wordsOf(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool isCondition(std::string_view word) {
  static const std::set<std::string_view> words{"nan", "inf", "norm", "max", "meta"};
  return words.contains(word);
}

class Parser {
 public:
  Parser(const Analysis& analysis, std::string_view text)
      : analysis_(analysis), document_(*analysis.document), words_(wordsOf(text)), text_(text) {}

  Breakpoint run() {
    place();
    return when();
  }

  /// Only what follows the place; "if" may be left out.
  Breakpoint runAt(Breakpoint place) {
    result_ = std::move(place);
    result_.when = When::always;
    result_.limit = 0;
    result_.skip = 0;
    if (!words_.empty() && words_[0] != "if" && words_[0] != "after") condition();
    return when();
  }

 private:
  Breakpoint when() {
    if (next_ < words_.size() && words_[next_] == "if") ++next_, condition();
    if (next_ < words_.size() && words_[next_] == "after") ++next_, result_.skip = count();
    if (next_ < words_.size()) refuse("'" + words_[next_] + "' is not understood; expected `if ...` or `after N`");
    return result_;
  }

  [[noreturn]] void refuse(const std::string& message) const {
    badUse(message, "breakpoint '" + std::string(text_) + "'");
  }

  std::string word(const char* expected) {
    if (next_ >= words_.size()) refuse(std::string("expected ") + expected);
    return words_[next_++];
  }

  std::int64_t count() {
    const auto text = word("a count");
    const auto value = wholeNumber(text);
    if (!value) refuse("'" + text + "' is not a count: expected a whole number from 0 to 9223372036854775807");
    return *value;
  }

  double number(const char* expected) {
    const auto text = word(expected);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) refuse("'" + text + "' is not a number");
    return value;
  }

  void place() {
    const auto first = word("an op (#12, or a value it makes), kind OP, module PATH, value NAME or any");
    if (first == "any") {
      result_.where = Where::anywhere;
    } else if (first == "kind") {
      result_.where = Where::opKind;
      result_.text = word("an op's name");
      requireSome("the traces hold no op of this name" + didYouMean(result_.text, kinds()));
    } else if (first == "module") {
      result_.where = Where::module;
      result_.text = moduleMeant(word("a module's path"));
      requireSome("the traces compute nothing in this module");
    } else if (first == "value") {
      result_.where = Where::value;
      const auto name = word("a value's name");
      const auto value = findValue(analysis_, name);
      if (!value) refuse("there is no value '" + name + "'" + didYouMean(name, valueNames(analysis_)));
      result_.value = *value;
      requireSome("no op of the traces makes it");
    } else {
      placeAtOp(first);
    }
  }

  void placeAtOp(const std::string& name) {
    result_.where = Where::op;
    if (name.starts_with('#')) {
      const auto number = opNumber(name);
      if (!number) refuse("'" + name + "' is not the id of an op; ids look like #12");
      result_.op = BoundSymbolId(*number);
    } else if (const auto value = findValue(analysis_, name)) {
      result_.op = document_.value(*value).producer;
      for (auto op : analysis_.joint.ops) {
        const auto outputs = document_.outputs(op);
        if (std::find(outputs.begin(), outputs.end(), *value) != outputs.end()) result_.op = op;
      }
    }
    if (std::find(analysis_.joint.ops.begin(), analysis_.joint.ops.end(), result_.op) == analysis_.joint.ops.end()) {
      // An op of the computation represents the first op it became.
      const auto derived =
          document_.contains(result_.op) ? analysis_.links.derived(result_.op) : std::span<const BoundSymbolId>();
      if (derived.empty() && (name == "if" || isCondition(name))) refuseWithoutPlace();
      if (derived.empty())
        refuse("forward and backward hold no op '" + name + "'" +
               (name.starts_with('#') ? std::string() : didYouMean(name, valueNames(analysis_))));
      result_.op = derived.front();
    }
  }

  /// A condition alone: proposes it for any op.
  [[noreturn]] void refuseWithoutPlace() const {
    std::string meant = "any if";
    for (std::size_t i = words_[0] == "if" ? 1 : 0; i < words_.size(); ++i) meant += " " + words_[i];
    refuse("it does not say where; did you mean '" + meant + "'?");
  }

  std::string moduleMeant(const std::string& text) const {
    std::set<std::string, std::less<>> paths;
    for (auto op : analysis_.joint.ops) paths.emplace(document_.text(document_.boundSymbol(op).module));
    try {
      return moduleNamed(text, paths);
    } catch (const Error& error) {
      refuse(error.message());
    }
  }

  /// "mm" and "aten.mm.default" of each op of the traces.
  std::vector<std::string> kinds() const {
    std::set<std::string> names;
    for (auto op : analysis_.joint.ops) {
      const std::string name = document_.symbol(op).name;
      const auto first = name.find('.'), last = name.rfind('.');
      if (first < last) names.insert(name.substr(first + 1, last - first - 1));
    }
    return {names.begin(), names.end()};
  }

  void requireSome(const std::string& message) const {
    const auto& ops = analysis_.joint.ops;
    if (std::none_of(ops.begin(), ops.end(), [&](BoundSymbolId op) { return concerns(analysis_, result_, op); }))
      refuse(message);
  }

  void condition() {
    const auto what = word("nan, inf, norm, max or meta");
    if (what == "nan") result_.when = When::nan;
    else if (what == "inf") result_.when = When::bad;
    else if (what == "meta") result_.when = When::meta;
    else if (what == "norm" || what == "max") {
      result_.when = what == "norm" ? When::norm : When::largest;
      if (word("> and a limit") != ">") refuse("expected > and a limit");
      result_.limit = number("a limit");
    } else {
      refuse("'" + what + "' is not a condition; expected nan, inf, norm > X, max > X or meta");
    }
  }

  const Analysis& analysis_;
  const Document& document_;
  std::vector<std::string> words_;
  std::string_view text_;
  std::size_t next_ = 0;
  Breakpoint result_;
};

}  // namespace

Breakpoint parseBreakpoint(const Analysis& analysis, std::string_view text) { return Parser(analysis, text).run(); }

Breakpoint withCondition(const Analysis& analysis, Breakpoint breakpoint, std::string_view text) {
  return Parser(analysis, text).runAt(std::move(breakpoint));
}

std::string describeCondition(const Breakpoint& b) {
  std::string text;
  switch (b.when) {
    case When::always: break;
    case When::nan: text = "if nan"; break;
    case When::bad: text = "if inf"; break;
    case When::meta: text = "if meta"; break;
    case When::norm: text = fmt::format("if norm > {}", b.limit); break;
    case When::largest: text = fmt::format("if max > {}", b.limit); break;
  }
  if (b.skip > 0) text += fmt::format("{}after {}", text.empty() ? "" : " ", b.skip);
  return text;
}

std::string describe(const Analysis& analysis, const Breakpoint& b) {
  const auto& document = *analysis.document;
  std::string text;
  switch (b.where) {
    case Where::op: text = fmt::format("#{}", b.op.index); break;
    case Where::opKind: text = "kind " + b.text; break;
    case Where::module: text = "module " + b.text; break;
    case Where::value: text = "value " + document.displayName(b.value); break;
    case Where::anywhere: text = "any"; break;
  }
  const auto condition = describeCondition(b);
  return condition.empty() ? text : text + " " + condition;
}

bool concerns(const Analysis& analysis, const Breakpoint& b, BoundSymbolId op) {
  const auto& document = *analysis.document;
  const auto& bound = document.boundSymbol(op);
  switch (b.where) {
    case Where::op: return op == b.op;
    case Where::anywhere: return true;
    case Where::module: return isInModule(document.text(bound.module), b.text);
    case Where::opKind: {
      const std::string_view name = document.symbol(bound.symbol).name;
      const auto first = name.find('.'), last = name.rfind('.');
      return name == b.text || name.substr(first + 1, last - first - 1) == b.text ||
             "torch.ops." + std::string(name) == b.text;
    }
    case Where::value: {
      const auto outputs = document.outputs(op);
      return std::find(outputs.begin(), outputs.end(), b.value) != outputs.end();
    }
  }
  return false;
}

bool meets(const Breakpoint& b, const TensorStatistics& s, const TensorMeta& meta, const TensorMeta& expected) {
  switch (b.when) {
    case When::always: return true;
    case When::nan: return s.nan > 0;
    case When::bad: return s.nan + s.inf > 0;
    case When::norm: return s.norm > b.limit;
    case When::largest: return std::max(std::abs(s.min), std::abs(s.max)) > b.limit || s.inf > 0;
    case When::meta: return meta.sizes != expected.sizes || meta.dtype != expected.dtype;
  }
  return false;
}

}  // namespace retrograd
