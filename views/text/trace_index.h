#pragma once
#include <QString>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/questions/why.h"

namespace retrograd::views {

inline constexpr std::array traceKinds{TraceKind::computation, TraceKind::joint, TraceKind::forward,
                                       TraceKind::backward};

/// How listings fold.
enum class Grouping : std::uint8_t { operation, module, none };

/// A header row: a run of ops that belong together.
struct OutlineHeader {
  BoundSymbolId operation;  ///< computation op whose ops are below; none for a module
  StringId module;  ///< for a module header: path of its first op, of which it represents the first `moduleParts` parts
  std::int32_t moduleParts = 0;
  std::int32_t subgraph = -1;  ///< body of a higher-order op; -1 for others
  BoundSymbolId section;       ///< the first op of a part of a recorded step; none for others
  std::string title;           ///< of that part: "step 0, backward"
  std::int32_t ops = 0;        ///< ops below, at any depth
  bool backward = false;       ///< the ops below come from the operation and run in the backward
  bool recompute = false;      ///< of these, they are its forward ops once more
};

/// Rows of a listing as a tree in preorder, in integer vectors: 1,000,000 rows are made in milliseconds.
struct Outline {
  std::vector<std::int32_t> item;    ///< >= 0: line of the trace; < 0: ~index into headers
  std::vector<std::int32_t> end;     ///< one past the last row below this one
  std::vector<std::int32_t> parent;  ///< row; -1 at the top
  std::vector<std::uint8_t> depth;
  std::vector<std::int32_t> rowOfLine;
  std::vector<OutlineHeader> headers;

  std::int32_t rows() const { return static_cast<std::int32_t>(item.size()); }
  bool foldable(std::int32_t row) const { return end[row] > row + 1; }
  bool isHeader(std::int32_t row) const { return item[row] < 0; }
  const OutlineHeader& header(std::int32_t row) const {
    const std::int32_t index = ~item[row];
    return headers[index];
  }
};

const Trace& traceOf(const Analysis& analysis, TraceKind kind);

/// What a listing needs to know of a trace, made once off the UI thread and never changed.
struct TraceIndex {
  std::shared_ptr<const Analysis> analysis;
  TraceKind kind = TraceKind::computation;
  std::vector<BoundSymbolId> lines;  ///< the ops; for the computation with the bodies of higher-order ops
  std::vector<std::int32_t> lineOf;  ///< by bound symbol; -1: not in this trace

  const Document& document() const { return *analysis->document; }
  const Trace& trace() const { return traceOf(*analysis, kind); }
  std::int32_t line(BoundSymbolId op) const {
    return op && static_cast<std::size_t>(op.index) < lineOf.size() ? lineOf[op.index] : -1;
  }
  /// How its rows fold; made when it is asked for first, on whatever thread that is, in milliseconds.
  const Outline& outline(Grouping grouping) const;

 private:
  mutable std::array<std::once_flag, 3> made_;
  mutable std::array<Outline, 3> outlines_;  ///< by Grouping
};

/// "Joint": the trace's name for people.
QString titleText(TraceKind kind);
/// True for what runs in the backward: gradients, accumulations, recomputed ops and so on.
bool isBackwardRole(Role role);

/// With the outline that listings begin with. Throws Error(cancelled).
std::shared_ptr<const TraceIndex> indexTrace(std::shared_ptr<const Analysis> analysis, TraceKind kind,
                                             const Progress& progress = {});

}  // namespace retrograd::views
