#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/trace/diff/trace_diff.h"

namespace retrograd {

/// "train.py:12 in forward": the line that an op, or the op that it comes from, was called in; empty where it is not
/// known.
std::string codeLine(const Document& document, BoundSymbolId op);

/// One side of a row as a printed line without indentation: the op with type, origin and, where the row differs,
/// the line of code, `x: "cpu f32[8, 10]"` of an
/// input, `return t5` of a result; empty where the side has none. `comment` false: the call alone.
std::string diffLine(const TraceDiff& diff, const DiffRow& row, Side side, bool comment = true);
/// In what the two sides of a row differ, one text each: "dtype: f32 -> f64", "arguments: t5 -> bw_t5", "moved to line
/// 20". Empty for a row without a partner.
std::vector<std::string> describeChanges(const TraceDiff& diff, const DiffRow& row);
/// Names of the bits of a row's changes: "dtype", "saved".
std::vector<std::string_view> changeNames(std::uint16_t changes);
/// "12 changed, 3 only in the first, 1 only in the second, 2 moved, 517 the same"
std::string summaryOf(const TraceDiff& diff);

struct DiffTextOptions {
  std::string left, right;  ///< what the sides are called
  std::size_t context = 3;  ///< equal rows around what differs
  std::size_t width = 160;  ///< columns, for sideBySideText()
};
/// Like `diff -u`: " " both, "-" the first alone, "+" the second alone; what is changed is on both sides, with a
/// line "~" that says how.
std::string unifiedText(const TraceDiff& diff, const DiffTextOptions& options);
/// Like `diff -y`: "|" changed, "<" and ">" on one side alone, "<~" moved from here, "~>" moved here.
std::string sideBySideText(const TraceDiff& diff, const DiffTextOptions& options);
/// Counts and all rows that differ (docs/diff.schema.json).
nlohmann::ordered_json diffJson(const TraceDiff& diff, const DiffTextOptions& options);

/// Runs of rows to show, [begin, end): what differs and `context` rows around it.
std::vector<std::pair<std::size_t, std::size_t>> hunksOf(const TraceDiff& diff, std::size_t context);

}  // namespace retrograd
