#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// One place that has to do with a value.
struct ValueReference {
  enum class Kind : std::uint8_t {
    producer,      ///< the op that makes it
    user,          ///< an op of the computation or the forward that reads it
    savedFor,      ///< a backward op that reads it though the forward made it: why it is saved
    backwardUser,  ///< a backward op that reads what the backward made
    gradient,      ///< the op that makes its gradient; the last of several sums them up
    gradientOf,    ///< the value whose gradient it is, at the op that makes that value
    result         ///< it is a result of the trace
  };
  Kind kind = Kind::user;
  TraceKind trace = TraceKind::computation;  ///< computation or joint
  BoundSymbolId op;                          ///< none for an input's producer and for results
  std::size_t operand = 0;                   ///< user kinds: which operand
  std::string argument;                      ///< user kinds: the schema's name for it: "mat2"
  ValueId value;                             ///< gradient, gradientOf: that value
};
std::string_view name(ValueReference::Kind);

/// Cross references of a value, in the order of Kind and within it of the trace. O(ops). A value that is written in
/// place has new content under a new id: uses after the write are those of the new one.
std::vector<ValueReference> referencesOf(const Analysis& analysis, ValueId value);

/// The schema's name of the argument that holds this operand; empty where the op has no schema.
std::string argumentName(const Document& document, BoundSymbolId op, std::size_t operand);

}  // namespace retrograd
