#include "core/base/text_pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <vector>

namespace retrograd {
namespace {

constexpr std::size_t longestPattern = 1000;

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

/// The parenthesis without its other half: RE2 says that there is one, and not where.
std::size_t unmatchedParenthesis(std::string_view pattern) {
  std::vector<std::size_t> open;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\') ++at;
    else if (pattern[at] == '[') at = std::min(pattern.find(']', at + 2), pattern.size());
    else if (pattern[at] == '(') open.push_back(at);
    else if (pattern[at] == ')') {
      if (open.empty()) return at;
      open.pop_back();
    }
  }
  return open.empty() ? 0 : open.back();
}

std::size_t placeOfError(const re2::RE2& expression, std::string_view pattern) {
  const auto code = expression.error_code();
  if (code == re2::RE2::ErrorMissingParen || code == re2::RE2::ErrorUnexpectedParen)
    return unmatchedParenthesis(pattern);
  const auto found = pattern.rfind(expression.error_arg());
  return found == std::string_view::npos ? 0 : found;
}

/// Adds the characters between the bracket at `open` and its closing one to the expression, and returns where that is.
/// A closing bracket in the first place is one of the characters.
std::optional<std::size_t> classEnd(std::string_view glob, std::size_t open, std::string& expression) {
  auto at = open + 1;
  expression += '[';
  if (at < glob.size() && glob[at] == '!') {
    expression += '^';
    ++at;
  }
  for (bool isFirst = true; at < glob.size() && (isFirst || glob[at] != ']'); isFirst = false, ++at) {
    const bool isEscape = glob[at] == '\\' && at + 1 < glob.size();
    if (!isEscape && std::string_view("[]^").find(glob[at]) != std::string_view::npos) expression += '\\';
    expression += glob[at];
    if (isEscape) expression += glob[++at];
  }
  expression += ']';
  return at < glob.size() ? std::optional(at) : std::nullopt;
}

/// The glob as a regular expression; nullopt where a '[' does not close.
std::optional<std::string> expressionOf(std::string_view glob, TextPattern::Problem& problem) {
  std::string expression;
  for (std::size_t at = 0; at < glob.size(); ++at) {
    const char c = glob[at];
    if (c == '*') expression += ".*";
    else if (c == '?') expression += '.';
    else if (c == '[') {
      const auto end = classEnd(glob, at, expression);
      if (!end) {
        problem = {at, "'[' without ']'"};
        return std::nullopt;
      }
      at = *end;
    } else expression += re2::RE2::QuoteMeta(piece({&c, 1}));
  }
  return expression;
}

}  // namespace

std::optional<TextPattern> TextPattern::compile(const std::string& expression, bool isWhole, Problem& problem) {
  re2::RE2::Options options(re2::RE2::Latin1);  // bytes
  options.set_log_errors(false);
  options.set_dot_nl(true);
  auto compiled = std::make_shared<const re2::RE2>(expression, options);
  if (!compiled->ok()) {
    problem = {placeOfError(*compiled, expression), compiled->error()};
    return std::nullopt;
  }
  TextPattern pattern;
  pattern.expression_ = std::move(compiled);
  pattern.isWhole_ = isWhole;
  return pattern;
}

std::optional<TextPattern> TextPattern::glob(std::string_view pattern, Problem& problem) {
  if (pattern.size() > longestPattern) {
    problem = {longestPattern, "the pattern is too long"};
    return std::nullopt;
  }
  const auto expression = expressionOf(pattern, problem);
  return expression ? compile(*expression, true, problem) : std::nullopt;
}

std::optional<TextPattern> TextPattern::regularExpression(std::string_view pattern, Problem& problem) {
  if (pattern.size() <= longestPattern) return compile(std::string(pattern), false, problem);
  problem = {longestPattern, "the pattern is too long"};
  return std::nullopt;
}

TextPattern TextPattern::exactly(std::string_view text) {
  TextPattern pattern;
  pattern.text_ = text;
  return pattern;
}

TextPattern TextPattern::containing(std::string_view text) {
  auto pattern = exactly(text);
  pattern.isWhole_ = false;
  return pattern;
}

bool TextPattern::matches(std::string_view text) const {
  if (!expression_) return isWhole_ ? text == text_ : text.find(text_) != std::string_view::npos;
  return isWhole_ ? re2::RE2::FullMatch(piece(text), *expression_) : re2::RE2::PartialMatch(piece(text), *expression_);
}

}  // namespace retrograd
