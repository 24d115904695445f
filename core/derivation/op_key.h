#pragma once
#include <string>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// Names an op so that the name survives reading the file again: the computation op by its name in the file, then role,
/// operand, output, and how many of the same key are before it. Ids do not survive.
struct OpKey {
  std::string operation;     ///< node name of the computation op; empty where there is none
  int operationOrdinal = 0;  ///< among computation ops of that name (or without one)
  Role role = Role::none;
  int operand = -1, output = -1;
  int ordinal = 0;
  bool operator==(const OpKey&) const = default;
};

/// The key of an op of the analysis.
OpKey keyOf(const Analysis& analysis, BoundSymbolId op);
/// The ops the keys name, in their order; an invalid id for one that is no longer there.
std::vector<BoundSymbolId> findKeys(const Analysis& analysis, const std::vector<OpKey>& keys);

/// Names a value in the same way: by the op that makes it and the number of its output, or an input by its name.
struct ValueKey {
  OpKey maker;
  std::size_t output = 0;
  std::string input;  ///< name of an input; empty for what an op makes
  bool operator==(const ValueKey&) const = default;
};
ValueKey keyOf(const Analysis& analysis, ValueId value);
/// The values the keys name, in their order; an invalid id for one that is no longer there.
std::vector<ValueId> findKeys(const Analysis& analysis, const std::vector<ValueKey>& keys);

}  // namespace retrograd
