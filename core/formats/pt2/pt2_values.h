#pragma once
#include <string>
#include <string_view>

#include "core/base/tensor_meta.h"
#include "core/formats/json/json_tree.h"
#include "core/trace/argument.h"

namespace retrograd::pt2 {

/// Codes of torch/_export/serde/schema.py; an unknown one is an Error(badInput).
DType dtypeOf(std::int64_t code);
Layout layoutOf(std::int64_t code);
std::int64_t memoryFormatOf(std::int64_t code);  ///< as Argument::Kind::memoryFormat counts
/// {"type": "cuda", "index": 0} as "cuda:0"
std::string deviceOf(const Json& device);

/// A size, stride or offset: a number, or an expression with a hint.
struct SymbolicInt {
  std::int64_t value = 0;  ///< the hint where there is an expression; 1 where it has none
  std::string expression;  ///< empty: a plain number
};
SymbolicInt readSymbolicInt(const Json& value);

/// Shape, strides and dtype as a graph or a weights config gives them. Checked: nothing negative, sizes and strides of
/// one length, bytes of the elements and of the storage within int64.
TensorMeta readMeta(const Json& meta);

/// sympy's srepr in short: "Mul(Integer(2), Symbol('s0', positive=True))" is "2*s0". What cannot be parsed is returned
/// as it is.
std::string shortExpression(std::string_view srepr);

}  // namespace retrograd::pt2
