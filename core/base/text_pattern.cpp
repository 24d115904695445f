#include "core/base/text_pattern.h"

#include <algorithm>

namespace retrograd {
namespace {

constexpr std::size_t longestPattern = 1000, deepestNesting = 50;

}  // namespace

/// Builds the automaton from the end: each part is given the state that follows it and returns the state it begins
/// with.
class PatternCompiler {
 public:
  using State = TextPattern::State;
  using Kind = State::Kind;
  using Characters = TextPattern::Characters;

  PatternCompiler(std::string_view text, TextPattern::Problem& problem) : text_(text), problem_(problem) {}

  std::optional<TextPattern> glob() {
    if (!fits()) return std::nullopt;
    std::vector<Part> parts;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '*') parts.push_back({any(), true});
      else if (c == '?') parts.push_back({any(), false});
      else if (c == '[') {
        const auto set = characterClass('!');
        if (!set) return std::nullopt;
        parts.push_back({*set, false});
      } else parts.push_back({one(c), false});
    }
    auto next = add({});
    for (auto it = parts.rbegin(); it != parts.rend(); ++it)
      next = it->repeats ? star(it->set, next) : characters(it->set, next);
    return finish(next, true);
  }

  std::optional<TextPattern> regularExpression() {
    if (!fits()) return std::nullopt;
    std::int32_t start = -1;
    const auto fragment = alternatives(0);
    if (!failed_ && at_ < text_.size()) fail(at_, "')' without '('");
    if (failed_) return std::nullopt;
    start = patch(fragment, add({}));
    return finish(start, false);
  }

  TextPattern literal(bool isWhole) {
    auto next = add({});
    for (auto it = text_.rbegin(); it != text_.rend(); ++it) next = characters(one(*it), next);
    return *finish(next, isWhole);
  }

 private:
  struct Part {
    Characters set;
    bool repeats;
  };
  /// A piece of automaton: where it begins, and its loose ends (state, whether `other`).
  struct Fragment {
    std::int32_t start = -1;
    std::vector<std::pair<std::int32_t, bool>> ends;
  };

  static Characters any() { return Characters().set(); }
  static Characters one(char c) { return Characters().set(static_cast<unsigned char>(c)); }
  static void range(Characters& set, char from, char to) {
    for (int c = static_cast<unsigned char>(from); c <= static_cast<unsigned char>(to); ++c) set.set(c);
  }

  bool fits() {
    if (text_.size() > longestPattern) fail(longestPattern, "the pattern is too long");
    return !failed_;
  }
  void fail(std::size_t position, std::string message) {
    if (!failed_) problem_ = {position, std::move(message)};
    failed_ = true;
  }

  std::int32_t add(State state) {
    pattern_.states_.push_back(state);
    return static_cast<std::int32_t>(pattern_.states_.size()) - 1;
  }
  std::int32_t characters(const Characters& set, std::int32_t next) {
    pattern_.sets_.push_back(set);
    return add({Kind::characters, next, -1, static_cast<std::uint32_t>(pattern_.sets_.size() - 1)});
  }
  std::int32_t star(const Characters& set, std::int32_t next) {
    const auto fork = add({Kind::fork, -1, next, 0});
    const auto loop = characters(set, fork);
    pattern_.states_[fork].next = loop;
    return fork;
  }
  std::int32_t patch(const Fragment& fragment, std::int32_t target) {
    for (const auto& [state, isOther] : fragment.ends)
      (isOther ? pattern_.states_[state].other : pattern_.states_[state].next) = target;
    return fragment.start;
  }
  Fragment single(std::int32_t state) { return {state, {{state, false}}}; }
  Fragment empty() { return single(add({Kind::jump, -1, -1, 0})); }

  Fragment alternatives(std::size_t depth) {
    if (depth > deepestNesting) {
      fail(at_, "nested too deep");
      return {};
    }
    auto all = sequence(depth);
    while (!failed_ && at_ < text_.size() && text_[at_] == '|') {
      ++at_;
      const auto other = sequence(depth);
      const auto fork = add({Kind::fork, all.start, other.start, 0});
      all.start = fork;
      all.ends.insert(all.ends.end(), other.ends.begin(), other.ends.end());
    }
    return all;
  }

  Fragment sequence(std::size_t depth) {
    auto all = empty();
    while (!failed_ && at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      auto next = repeated(depth);
      if (failed_) break;
      patch(all, next.start);
      all.ends = std::move(next.ends);
    }
    return all;
  }

  Fragment repeated(std::size_t depth) {
    auto part = atom(depth);
    while (!failed_ && at_ < text_.size() && std::string_view("*+?").find(text_[at_]) != std::string_view::npos) {
      const char c = text_[at_++];
      const auto fork = add({Kind::fork, part.start, -1, 0});
      if (c == '?') {
        part.ends.emplace_back(fork, true);
        part.start = fork;
      } else {
        patch(part, fork);
        part = {c == '*' ? fork : part.start, {{fork, true}}};
      }
    }
    return part;
  }

  Fragment atom(std::size_t depth) {
    const auto begin = at_;
    const char c = text_[at_++];
    switch (c) {
      case '(': {
        auto inner = alternatives(depth + 1);
        if (!failed_ && (at_ >= text_.size() || text_[at_] != ')')) fail(begin, "'(' without ')'");
        ++at_;
        return inner;
      }
      case '[': {
        const auto set = characterClass('^');
        return set ? single(characters(*set, -1)) : Fragment{};
      }
      case '^': return single(add({Kind::begin, -1, -1, 0}));
      case '$': return single(add({Kind::end, -1, -1, 0}));
      case '.': return single(characters(any(), -1));
      case '*':
      case '+':
      case '?': fail(begin, "nothing to repeat"); return {};
      case '{': fail(begin, "counted repetition is not supported; write \\{ for the character"); return {};
      case '\\': return single(characters(escaped(begin), -1));
      default: return single(characters(one(c), -1));
    }
  }

  Characters escaped(std::size_t begin) {
    if (at_ >= text_.size()) {
      fail(begin, "nothing after '\\'");
      return {};
    }
    const char c = text_[at_++];
    Characters set;
    switch (c) {
      case 'd':
      case 'D': range(set, '0', '9'); break;
      case 'w':
      case 'W':
        range(set, '0', '9');
        range(set, 'a', 'z');
        range(set, 'A', 'Z');
        set |= one('_');
        break;
      case 's':
      case 'S':
        for (char space : {' ', '\t', '\n', '\r', '\f', '\v'}) set |= one(space);
        break;
      default:
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) fail(begin, "unknown escape");
        return one(c);
    }
    return c >= 'A' && c <= 'Z' ? ~set : set;
  }

  /// What stands between brackets; the opening one was read.
  std::optional<Characters> characterClass(char negation) {
    const auto begin = at_ - 1;
    const bool isNegated = at_ < text_.size() && text_[at_] == negation;
    if (isNegated) ++at_;
    Characters set;
    for (bool isFirst = true; at_ < text_.size() && (isFirst || text_[at_] != ']'); isFirst = false) {
      const char from = text_[at_++];
      if (from == '\\' && at_ < text_.size()) {
        set |= escaped(at_ - 1);
      } else if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        range(set, from, text_[at_ + 1]);
        at_ += 2;
      } else {
        set |= one(from);
      }
      if (failed_) return std::nullopt;
    }
    if (at_ >= text_.size()) {
      fail(begin, "'[' without ']'");
      return std::nullopt;
    }
    ++at_;
    return isNegated ? ~set : set;
  }

  std::optional<TextPattern> finish(std::int32_t start, bool isWhole) {
    pattern_.start_ = start;
    pattern_.isWhole_ = isWhole;
    return std::move(pattern_);
  }

  std::string_view text_;
  TextPattern::Problem& problem_;
  std::size_t at_ = 0;
  bool failed_ = false;
  TextPattern pattern_;
};

std::optional<TextPattern> TextPattern::glob(std::string_view pattern, Problem& problem) {
  return PatternCompiler(pattern, problem).glob();
}

std::optional<TextPattern> TextPattern::regularExpression(std::string_view pattern, Problem& problem) {
  return PatternCompiler(pattern, problem).regularExpression();
}

TextPattern TextPattern::exactly(std::string_view text) {
  Problem none;
  return PatternCompiler(text, none).literal(true);
}

TextPattern TextPattern::containing(std::string_view text) {
  Problem none;
  return PatternCompiler(text, none).literal(false);
}

/// Adds a state and all that can be reached from it without reading a character.
void TextPattern::follow(std::vector<std::int32_t>& states, std::vector<char>& seen, std::int32_t first, bool isBegin,
                         bool isEnd) const {
  std::vector<std::int32_t> open{first};
  while (!open.empty()) {
    const auto index = open.back();
    open.pop_back();
    if (index < 0 || seen[index]) continue;
    seen[index] = 1;
    const auto& state = states_[index];
    switch (state.kind) {
      case State::Kind::fork: open.push_back(state.other); [[fallthrough]];
      case State::Kind::jump: open.push_back(state.next); break;
      case State::Kind::begin:
        if (isBegin) open.push_back(state.next);
        break;
      case State::Kind::end:
        if (isEnd) open.push_back(state.next);
        break;
      case State::Kind::characters:
      case State::Kind::match: states.push_back(index); break;
    }
  }
}

bool TextPattern::matches(std::string_view text) const {
  std::vector<std::int32_t> now, next;
  std::vector<char> seen(states_.size());
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const bool isEnd = at == text.size();
    if (at == 0 || !isWhole_) follow(now, seen, start_, at == 0, isEnd);
    for (auto index : now)
      if (states_[index].kind == State::Kind::match && (isEnd || !isWhole_)) return true;
    if (isEnd) break;
    std::fill(seen.begin(), seen.end(), 0);
    next.clear();
    for (auto index : now) {
      const auto& state = states_[index];
      if (state.kind == State::Kind::characters && sets_[state.set][static_cast<unsigned char>(text[at])])
        follow(next, seen, state.next, false, at + 1 == text.size());
    }
    now.swap(next);
    if (isWhole_ && now.empty()) return false;
  }
  return false;
}

}  // namespace retrograd
