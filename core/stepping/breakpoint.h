#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/tensor_statistics.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// When a run stops: at certain ops, or when what they make meets a condition.
struct Breakpoint {
  enum class Where : std::uint8_t { op, opKind, module, value, anywhere };
  enum class When : std::uint8_t {
    always,   ///< before the op runs
    nan,      ///< an output has a NaN
    bad,      ///< an output has a NaN or an infinity
    norm,     ///< an output's 2-norm is over `limit`
    largest,  ///< an output's largest absolute value is over `limit`
    meta      ///< an output's shape or dtype differs from what the trace says
  };
  Where where = Where::op;
  When when = When::always;
  BoundSymbolId op;  ///< Where::op
  std::string text;  ///< opKind: "aten.mm.default", or "mm"; module: its path, what is below included
  ValueId value;     ///< Where::value: at the op that makes it
  double limit = 0;
  std::int64_t skip = 0;  ///< hits to let pass before it stops
  bool enabled = true;

  bool operator==(const Breakpoint&) const = default;
};

/// What a run stopped at.
struct BreakpointHit {
  std::size_t index = 0;  ///< in the list that the run had at that moment
  Breakpoint breakpoint;
};

/// Parsed from words, as the command line and the panel write them:
/// `#12` or a value's name (the op that makes it), `kind mm`, `module layers.0`, `value t12`, `any`; then optionally
/// `if nan|inf|norm > X|max > X|meta`, and `after N`. Throws Error(badUse) that says what was expected, or what is not
/// there.
Breakpoint parseBreakpoint(const Analysis& analysis, std::string_view text);
/// The breakpoint with what `text` says after the place: `norm > 10 after 2`, with or without `if`; an empty text
/// means always. Throws as parseBreakpoint(), and walks no trace.
Breakpoint withCondition(const Analysis& analysis, Breakpoint breakpoint, std::string_view text);
/// The same in words again: `if norm > 10 after 2`, empty for always.
std::string describeCondition(const Breakpoint& breakpoint);
/// The whole breakpoint in words.
std::string describe(const Analysis& analysis, const Breakpoint& breakpoint);

/// Whether it concerns this op of a trace.
bool concerns(const Analysis& analysis, const Breakpoint& breakpoint, BoundSymbolId op);
/// Whether the condition looks at outputs (and the op has to run first).
inline bool looksAtOutputs(const Breakpoint& breakpoint) { return breakpoint.when != Breakpoint::When::always; }
/// Whether an output with these statistics meets the condition. `meta`: what it really is; `expected`: what the trace
/// says.
bool meets(const Breakpoint& breakpoint, const TensorStatistics& statistics, const TensorMeta& meta,
           const TensorMeta& expected);

}  // namespace retrograd
