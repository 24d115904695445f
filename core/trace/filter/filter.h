#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text_pattern.h"
#include "core/trace/trace.h"

namespace retrograd {

/// Which ops to show, in words (docs/filter.md): `role:gradient module:h.3 bytes>1M not op:view`. Terms are side by
/// side (and), `or`, `not` and brackets combine them. A value is a word with globs, a "quoted text" or a /regular
/// expression/.
class Filter {
 public:
  /// What is wrong, and where in the text: bytes [begin, end).
  struct Problem {
    std::size_t begin = 0, end = 0;
    std::string message;
  };
  enum class Field : std::uint8_t { any, op, module, dtype, shape, bytes, role, origin, saved, recomputed, name };
  enum class Comparison : std::uint8_t { matches, less, lessOrEqual, equal, greaterOrEqual, greater };

  /// An empty text lets all ops pass. nullopt where the text is not a filter.
  static std::optional<Filter> parse(std::string_view text, Problem& problem);
  /// The same; throws Error(badUse) with the column.
  static Filter parse(std::string_view text);

  bool passesAll() const { return nodes_.empty(); }

 private:
  friend class FilterParser;
  friend class FilterRun;
  /// One condition, or a combination of earlier nodes.
  struct Node {
    enum class Kind : std::uint8_t { term, both, either, negation } kind = Kind::term;
    std::int32_t left = -1, right = -1;
    Field field = Field::any;
    Comparison comparison = Comparison::matches;
    std::optional<TextPattern> pattern;
    bool isGlob = false;
    std::string text;         ///< of a word: shapes are read from it
    std::int64_t number = 0;  ///< bytes; saved and recomputed: 0 or 1
  };
  std::vector<Node> nodes_;
  std::int32_t root_ = -1;
};

/// A filter applied to the ops of one document. What it finds of a symbol, a module or a type holds for all ops that
/// share it, so that a trace takes time in proportion to its ops.
class FilterRun {
 public:
  /// `backward` names the saved values; null where there is none.
  FilterRun(const Document& document, const Filter& filter, const Trace* backward = nullptr);
  ~FilterRun();
  bool matches(BoundSymbolId op);
  /// The ops of a trace that match, in order.
  std::vector<BoundSymbolId> select(const Trace& trace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A name as a filter has to write it: in quotes where it would mean something else otherwise.
std::string filterWord(std::string_view text);

/// What could be at a place of a filter's text: the bytes [begin, end) are to be replaced by one of the candidates.
struct FilterCompletion {
  std::size_t begin = 0, end = 0;
  std::vector<std::string> candidates;  ///< sorted; at most 200
};
/// Fields where a word begins, values of the document's ops behind a field's ':'.
FilterCompletion completeFilter(const Document& document, const Trace& trace, std::string_view text,
                                std::size_t cursor);

}  // namespace retrograd
