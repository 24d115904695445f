#include <fmt/format.h>

#include <algorithm>

#include "core/base/byte_size.h"
#include "core/trace/filter/filter.h"
#include "core/trace/filter/filter_words.h"

namespace retrograd {
namespace {

bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// What ends a word. Brackets of a shape or a character class do not.
bool endsWord(char c) {
  return isSpace(c) || c == '(' || c == ')' || c == '"' || c == '<' || c == '>' || c == '=' || c == ':';
}

}  // namespace

/// Recursive descent: or, and, not, then brackets or a term.
class FilterParser {
 public:
  using Field = Filter::Field;
  using Comparison = Filter::Comparison;
  using Node = Filter::Node;

  FilterParser(std::string_view text, Filter::Problem& problem) : text_(text), problem_(problem) {}

  std::optional<Filter> run() {
    constexpr std::size_t longest = 10'000;  // conditions side by side nest when they are evaluated
    if (text_.size() > longest) fail(longest, text_.size(), "the filter is too long");
    skipSpace();
    if (!failed_ && at_ == text_.size()) return Filter();
    if (failed_) return std::nullopt;
    filter_.root_ = either(0);
    if (!failed_ && at_ < text_.size()) fail(at_, at_ + 1, "')' without '('");
    return failed_ ? std::nullopt : std::optional(std::move(filter_));
  }

 private:
  void skipSpace() {
    while (at_ < text_.size() && isSpace(text_[at_])) ++at_;
  }
  std::int32_t fail(std::size_t begin, std::size_t end, std::string message) {
    if (!failed_) problem_ = {std::min(begin, text_.size()), std::min(end, text_.size()), std::move(message)};
    failed_ = true;
    return -1;
  }
  std::int32_t add(Node node) {
    filter_.nodes_.push_back(std::move(node));
    return static_cast<std::int32_t>(filter_.nodes_.size()) - 1;
  }
  std::int32_t combine(Node::Kind kind, std::int32_t left, std::int32_t right) {
    Node node;
    node.kind = kind;
    node.left = left;
    node.right = right;
    return add(std::move(node));
  }
  /// Takes the word where it is next.
  bool take(std::string_view word) {
    const auto end = at_ + word.size();
    if (text_.substr(at_, word.size()) != word ||
        (end < text_.size() && !isSpace(text_[end]) && text_[end] != '(' && text_[end] != ')'))
      return false;
    at_ = end;
    skipSpace();
    return true;
  }
  bool isAtEnd() const { return at_ == text_.size() || text_[at_] == ')'; }

  std::int32_t either(int depth) {
    auto left = both(depth);
    while (!failed_ && take("or")) left = combine(Node::Kind::either, left, both(depth));
    return left;
  }
  std::int32_t both(int depth) {
    auto left = negation(depth);
    while (!failed_ && !isAtEnd()) {
      const auto before = at_;
      if (take("or")) {
        at_ = before;
        break;
      }
      take("and");
      left = combine(Node::Kind::both, left, negation(depth));
    }
    return left;
  }
  std::int32_t negation(int depth) {
    bool isNegated = false;
    while (take("not")) isNegated = !isNegated;
    const auto inner = primary(depth);
    return isNegated && !failed_ ? combine(Node::Kind::negation, inner, -1) : inner;
  }

  std::int32_t primary(int depth) {
    constexpr int deepest = 100;
    if (isAtEnd()) return fail(at_, at_ + 1, "a condition is expected, such as op:mm or role:gradient");
    if (text_[at_] != '(') return term();
    const auto open = at_;
    if (depth >= deepest) return fail(open, open + 1, "nested too deep");
    ++at_;
    skipSpace();
    const auto inner = either(depth + 1);
    if (failed_) return -1;
    if (at_ == text_.size()) return fail(open, open + 1, "'(' without ')'");
    ++at_;
    skipSpace();
    return inner;
  }

  std::int32_t term() {
    const auto begin = at_;
    Node node;
    if (text_[at_] == '"' || text_[at_] == '/') {
      value(node);
      return failed_ ? -1 : add(std::move(node));
    }
    while (at_ < text_.size() && !endsWord(text_[at_])) ++at_;
    const auto word = text_.substr(begin, at_ - begin);
    if (at_ == text_.size() || std::string_view(":<>=").find(text_[at_]) == std::string_view::npos)
      return bareWord(word, begin);
    const auto field = filterField(word);
    if (!field) return fail(begin, at_, fmt::format("no field '{}'; there are {}", word, filterFieldNames()));
    node.field = *field;
    comparison(node, begin);
    if (!failed_) value(node);
    return failed_ ? -1 : add(std::move(node));
  }

  /// "saved" and "recomputed" are questions by themselves; another word is looked for in names.
  std::int32_t bareWord(std::string_view word, std::size_t begin) {
    if (word.empty()) return fail(begin, begin + 1, "a condition is expected, such as op:mm or role:gradient");
    Node node;
    if (const auto field = filterField(word); field == Field::saved || field == Field::recomputed) {
      node.field = *field;
      node.number = 1;
    } else {
      pattern(node, word, begin, begin + word.size());
    }
    skipSpace();
    return failed_ ? -1 : add(std::move(node));
  }

  void comparison(Node& node, std::size_t begin) {
    const char c = text_[at_++];
    const bool orEqual = (c == '<' || c == '>') && at_ < text_.size() && text_[at_] == '=';
    if (orEqual) ++at_;
    if (c == ':') return;
    node.comparison = c == '='   ? Comparison::equal
                      : c == '<' ? (orEqual ? Comparison::lessOrEqual : Comparison::less)
                                 : (orEqual ? Comparison::greaterOrEqual : Comparison::greater);
    if (node.field != Field::bytes && c != '=') fail(begin, at_, "only bytes can be compared with < and >");
  }

  /// What is behind a field: a word, a quoted text or a regular expression.
  void value(Node& node) {
    const auto begin = at_;
    if (at_ == text_.size() || isSpace(text_[at_]) || text_[at_] == ')') {
      fail(begin, begin + 1, "a value is expected");
      return;
    }
    if (text_[at_] == '"') quoted(node);
    else if (text_[at_] == '/') expression(node);
    else {
      while (at_ < text_.size() && !isSpace(text_[at_]) && text_[at_] != '(' && text_[at_] != ')' && text_[at_] != '"')
        ++at_;
      plain(node, text_.substr(begin, at_ - begin), begin);
    }
    if (!failed_ && at_ < text_.size() && !isSpace(text_[at_]) && text_[at_] != ')')
      fail(at_, at_ + 1, "a space is expected");
    skipSpace();
  }

  void plain(Node& node, std::string_view word, std::size_t begin) {
    const auto end = begin + word.size();
    switch (node.field) {
      case Field::bytes: number(node, word, begin); return;
      case Field::saved:
      case Field::recomputed: {
        const bool yes = word == "yes" || word == "true";
        if (!yes && word != "no" && word != "false") fail(begin, end, "yes or no is expected");
        node.number = yes;
        return;
      }
      case Field::role:
        if (word.find_first_of("*?[") == std::string_view::npos && !isFilterRole(word)) {
          fail(begin, end, fmt::format("no role '{}'; there are {}", word, filterRoleNames()));
          return;
        }
        break;
      case Field::shape: shape(node, word, begin); return;
      default: break;
    }
    pattern(node, word, begin, end);
  }

  /// A word is a glob; without a field it is looked for anywhere.
  void pattern(Node& node, std::string_view word, std::size_t begin, std::size_t end) {
    TextPattern::Problem wrong;
    const bool hasGlob = word.find_first_of("*?[") != std::string_view::npos;
    node.text = std::string(word);
    node.isGlob = hasGlob;
    node.pattern = node.field == Field::any
                       ? TextPattern::glob(hasGlob ? std::string(word) : fmt::format("*{}*", word), wrong)
                       : TextPattern::glob(word, wrong);
    if (!node.pattern) fail(begin + wrong.position, end, wrong.message);
  }

  void number(Node& node, std::string_view word, std::size_t begin) {
    const auto bytes = byteSizeIn(word);
    if (!bytes) {
      fail(begin, begin + word.size(), std::string("expected ") + byteSizeForms);
      return;
    }
    if (node.comparison == Comparison::matches) node.comparison = Comparison::equal;
    node.number = *bytes;
  }

  void shape(Node& node, std::string_view word, std::size_t begin) {
    if (!parseShapePattern(word)) fail(begin, begin + word.size(), "a shape is expected, such as 4x8, [4,*] or 4x...");
    node.text = std::string(word);
  }

  void quoted(Node& node) {
    const auto begin = at_++;
    std::string content;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      content += text_[at_++];
    }
    if (at_ == text_.size()) {
      fail(begin, begin + 1, "the quotes are not closed");
      return;
    }
    ++at_;
    if (node.field == Field::bytes || node.field == Field::saved || node.field == Field::recomputed ||
        node.field == Field::shape)
      return plain(node, content, begin);
    node.text = content;
    node.pattern = node.field == Field::any ? TextPattern::containing(content) : TextPattern::exactly(content);
  }

  void expression(Node& node) {
    const auto begin = at_++;
    std::string content;
    while (at_ < text_.size() && text_[at_] != '/') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] != '/') content += '\\';
        ++at_;
      }
      content += text_[at_++];
    }
    if (at_ == text_.size()) {
      fail(begin, begin + 1, "the regular expression is not closed with '/'");
      return;
    }
    ++at_;
    if (node.field == Field::bytes || node.field == Field::saved || node.field == Field::recomputed) {
      fail(begin, at_, "a regular expression is not allowed here");
      return;
    }
    TextPattern::Problem wrong;
    node.isGlob = true;
    node.pattern = TextPattern::regularExpression(content, wrong);
    if (!node.pattern) fail(begin + 1 + wrong.position, at_ - 1, wrong.message);
  }

  std::string_view text_;
  Filter::Problem& problem_;
  std::size_t at_ = 0;
  bool failed_ = false;
  Filter filter_;
};

std::optional<Filter> Filter::parse(std::string_view text, Problem& problem) {
  return FilterParser(text, problem).run();
}

Filter Filter::parse(std::string_view text) {
  Problem problem;
  if (auto filter = parse(text, problem)) return std::move(*filter);
  badUse(problem.message, fmt::format("filter, column {}", problem.begin + 1));
}

}  // namespace retrograd
