#pragma once
#include <optional>
#include <vector>

#include "views/engine/engine.h"

namespace retrograd::views {

/// What is known of one operand or output of an op at a position.
struct ValueRow {
  ValueId value;
  bool output = false;
  bool after = false;                          ///< an operand that the op writes, once more: as it is then
  std::string label;                           ///< name in the schema, "weight"; else "operand 1"
  ValueState state;                            ///< at the op
  std::string absentNow;                       ///< why it is not there at the present position; empty where it is
  std::optional<TensorStatistics> statistics;  ///< of a tensor that is present
};

/// The elements of one value, for histogram and table.
struct ValueDetail {
  ValueId value;
  bool after = false;   ///< as ValueRow has it
  std::string reason;   ///< why it is not present
  TensorData contents;  ///< a contiguous copy; data is null where the value is not present
  std::vector<std::int64_t> histogram;
  TensorStatistics statistics;
  std::string badPlaces;  ///< "nan at [0, 3], [2, 1]": of NaN and infinities, as core/stepping/bad_places.h has it
};

/// The reply to Questions::requestValues.
struct ValueReport {
  BoundSymbolId op;
  std::size_t position = 0;
  std::vector<ValueRow> rows;
  std::optional<ValueDetail> detail;
  std::optional<ValueDetail>
      beside;  ///< of the gradient that belongs to it, or the value a gradient belongs to, where that was asked for
};

/// Rows of the op's operands and outputs without touching data; the labels come from the op's schema. `bothSides`:
/// operands that the op writes have two.
std::vector<ValueRow> valueRows(const Document& document, BoundSymbolId op, bool bothSides = false);
/// State and statistics of one value, without a label. On the worker; `runner` may be null.
ValueRow reportValue(const Runner* runner, const Document& document, ValueId value);
/// The gradient of a value of the forward, or the value that a gradient belongs to; none where there is neither.
ValueId besideOf(const Analysis& analysis, ValueId value);
/// What is asked of an op's values.
struct ValueRequest {
  BoundSymbolId op;
  ValueId detail;       ///< its elements too
  bool after = false;   ///< as ValueRow has it, of `detail`
  bool beside = false;  ///< with its gradient, or what it is the gradient of
};

/// States and statistics of the op's values as they were at it, and elements of one. On the worker.
ValueReport reportValues(Runner& runner, const Analysis& analysis, const ValueRequest& request,
                         const Progress& progress);

}  // namespace retrograd::views
