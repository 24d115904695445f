#include "core/split/op_cost.h"

#include <algorithm>
#include <array>

namespace retrograd {
namespace {

constexpr std::int64_t operationsPerByte = 4, costlyFunctionOperations = 16;

/// An op belongs to the first family one of whose texts its name starts with or, with a leading '*', contains. Names come without
/// "aten." and leading underscores.
struct FamilyName {
  std::string_view text;
  OpFamily family;
};
constexpr std::array<FamilyName, 52> familyNames{{
    {"*attention", OpFamily::attention},
    {"fused_sdp", OpFamily::attention},
    {"convolution", OpFamily::convolution},
    {"conv1d", OpFamily::convolution},
    {"conv2d", OpFamily::convolution},
    {"conv3d", OpFamily::convolution},
    {"conv_", OpFamily::convolution},
    {"*_conv", OpFamily::convolution},
    {"mm", OpFamily::matrixProduct},
    {"addmm", OpFamily::matrixProduct},
    {"bmm", OpFamily::matrixProduct},
    {"baddbmm", OpFamily::matrixProduct},
    {"addbmm", OpFamily::matrixProduct},
    {"*_mm", OpFamily::matrixProduct},
    {"*_addmm", OpFamily::matrixProduct},
    {"matmul", OpFamily::matrixProduct},
    {"linear", OpFamily::matrixProduct},
    {"mkldnn_linear", OpFamily::matrixProduct},
    {"mv", OpFamily::matrixProduct},
    {"addmv", OpFamily::matrixProduct},
    {"addr", OpFamily::matrixProduct},
    {"ger", OpFamily::matrixProduct},
    {"outer", OpFamily::matrixProduct},
    {"dot", OpFamily::matrixProduct},
    {"vdot", OpFamily::matrixProduct},
    {"inner", OpFamily::matrixProduct},
    {"tensordot", OpFamily::matrixProduct},
    {"einsum", OpFamily::matrixProduct},
    {"trilinear", OpFamily::matrixProduct},
    {"bilinear", OpFamily::matrixProduct},
    {"chain_matmul", OpFamily::matrixProduct},
    {"sampled_addmm", OpFamily::matrixProduct},
    {"cdist", OpFamily::matrixProduct},
    {"pdist", OpFamily::matrixProduct},
    {"euclidean_dist", OpFamily::matrixProduct},
    {"*rnn", OpFamily::recurrent},
    {"*lstm", OpFamily::recurrent},
    {"*gru", OpFamily::recurrent},
    {"linalg_", OpFamily::solver},
    {"cholesky", OpFamily::solver},
    {"triangular_solve", OpFamily::solver},
    {"lu_", OpFamily::solver},
    {"ormqr", OpFamily::solver},
    {"geqrf", OpFamily::solver},
    {"fft_", OpFamily::solver},
    {"sort", OpFamily::sorting},
    {"argsort", OpFamily::sorting},
    {"topk", OpFamily::sorting},
    {"kthvalue", OpFamily::sorting},
    {"median", OpFamily::sorting},
    {"mode", OpFamily::sorting},
    {"unique", OpFamily::sorting},
}};

/// Ops with an exponential, a root or the like per element.
constexpr std::array<std::string_view, 14> costlyFunctions{"exp", "log", "softmax", "gelu", "silu", "tanh", "sigmoid",
                                                           "erf", "sin", "cos",     "pow",  "norm", "mish", "softplus"};

/// "conv_" means "conv_transpose2d" and the like; "mm" is "mm" and not "mmul": a text without a trailing '_' must be the whole name
/// or the start of it up to an underscore.
bool matches(std::string_view name, std::string_view text) {
  if (text.front() == '*') return name.find(text.substr(1)) != std::string_view::npos;
  if (!name.starts_with(text)) return false;
  return text.back() == '_' || name.size() == text.size() || name[text.size()] == '_';
}

std::int64_t bytesOf(const Document& document, ValueId value) {
  return value && document.isTensor(value) ? document.meta(document.value(value).meta).bytes() : 0;
}
std::int64_t elementsOf(const Document& document, ValueId value) {
  return value && document.isTensor(value) ? document.meta(document.value(value).meta).elements() : 0;
}

/// Multiplications for one element of the output: the length of the inner dimension, or the elements a filter reads.
std::int64_t innerLength(const Document& document, BoundSymbolId op, OpFamily family) {
  std::int64_t length = 1;
  for (auto operand : document.operands(op)) {
    if (!operand || !document.isTensor(operand)) continue;
    const auto& sizes = document.meta(document.value(operand).meta).sizes;
    if (sizes.size() < 2) continue;
    const auto elements = document.meta(document.value(operand).meta).elements();
    length = std::max(length, family == OpFamily::convolution ? elements / std::max<std::int64_t>(sizes[0], 1) : sizes.back());
  }
  return length;
}

}  // namespace

OpFamily familyOf(std::string_view opName) {
  if (opName.starts_with("aten.")) opName.remove_prefix(5);
  while (opName.starts_with('_')) opName.remove_prefix(1);
  const auto name = opName.substr(0, opName.find('.'));
  for (const auto& entry : familyNames)
    if (matches(name, entry.text)) return entry.family;
  return OpFamily::other;
}

std::int64_t opCost(const Document& document, BoundSymbolId op) {
  const std::string_view name = document.symbol(document.boundSymbol(op).symbol).name;
  std::int64_t bytes = 0, elements = 0;
  for (auto operand : document.operands(op)) bytes += bytesOf(document, operand);
  for (auto output : document.outputs(op)) {
    bytes += bytesOf(document, output);
    elements += elementsOf(document, output);
  }
  const auto family = familyOf(name);
  const bool costly =
      std::any_of(costlyFunctions.begin(), costlyFunctions.end(), [&](std::string_view text) { return name.find(text) != std::string_view::npos; });
  const auto operations = isHeavy(family) ? 2 * elements * innerLength(document, op, family) : costly ? costlyFunctionOperations * elements : elements;
  return std::max<std::int64_t>(1, bytes + operations / operationsPerByte);
}

}  // namespace retrograd
