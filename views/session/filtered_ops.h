#pragma once
#include "core/base/enum_array.h"
#include "core/trace/filter/filter.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// Which lines of a trace pass a filter. Counting those of a range takes no walk, so that a header knows how many pass
/// below it.
class PassingLines {
 public:
  PassingLines() = default;
  explicit PassingLines(const std::vector<bool>& passes);

  std::int32_t lines() const { return static_cast<std::int32_t>(before_.size()) - 1; }
  /// Of the lines [begin, end).
  std::int32_t count(std::int32_t begin, std::int32_t end) const { return before_[end] - before_[begin]; }
  std::int32_t count() const { return before_.back(); }
  bool passes(std::int32_t line) const { return count(line, line + 1) > 0; }

 private:
  std::vector<std::int32_t> before_{0};  ///< how many of the lines before this one pass
};

/// What a filter lets through of an open document; never changes once made.
struct FilteredOps {
  std::shared_ptr<const OpenDocument> document;
  std::vector<bool> passes;                     ///< by bound symbol
  EnumArray<TraceKind, PassingLines, 4> lines;  ///< by TraceKind

  const PassingLines& trace(TraceKind kind) const { return lines[kind]; }
};

/// Applies the filter to every line of the four traces. Throws Error(cancelled).
std::shared_ptr<const FilteredOps> filterOps(std::shared_ptr<const OpenDocument> document, const Filter& filter,
                                             const Progress& progress = {});

/// Words of a filter that lets through what is like an op: the same op, the same module, all that comes from the same
/// operation. Empty where there is no such thing.
QString sameOpWords(const Document& document, BoundSymbolId op);
QString sameModuleWords(const Document& document, BoundSymbolId op);
QString sameOriginWords(const Document& document, BoundSymbolId op);

}  // namespace retrograd::views
