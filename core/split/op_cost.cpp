#include "core/split/op_cost.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

namespace retrograd {
namespace {

constexpr std::int64_t operationsPerByte = 4, costlyFunctionOperations = 16;

/// An op belongs to the first family one of whose texts its name starts with or, with a leading '*', contains. Names
/// come without "aten." and leading underscores.
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

/// "conv_" means "conv_transpose2d" and the like; "mm" is "mm" and not "mmul": a text without a trailing '_' must be
/// the whole name or the start of it up to an underscore.
bool matches(std::string_view name, std::string_view text) {
  if (text.front() == '*') return name.find(text.substr(1)) != std::string_view::npos;
  if (!name.starts_with(text)) return false;
  return text.back() == '_' || name.size() == text.size() || name[text.size()] == '_';
}

std::int64_t bytesOf(const Document& document, ValueId value) {
  return value && document.isTensor(value) ? document.meta(value).bytes() : 0;
}
std::int64_t elementsOf(const Document& document, ValueId value) {
  return value && document.isTensor(value) ? document.meta(value).elements() : 0;
}

/// Of the op's operands, tensors of at least two dimensions.
std::vector<std::span<const std::int64_t>> matrixSizes(const Document& document, BoundSymbolId op) {
  std::vector<std::span<const std::int64_t>> found;
  for (auto operand : document.operands(op))
    if (operand && document.isTensor(operand))
      if (const auto& sizes = document.meta(operand).sizes; sizes.size() >= 2) found.emplace_back(sizes);
  return found;
}

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// Multiplications for one element of the output: the length of the inner dimension, the elements that a filter reads,
/// or the keys that a query meets.
std::int64_t innerLength(const Document& document, BoundSymbolId op, OpFamily family) {
  const auto matrices = matrixSizes(document, op);
  if (matrices.empty()) return 1;
  std::int64_t length = 1;
  switch (family) {
    case OpFamily::matrixProduct:
      return matrices[matrices.size() < 2 ? 0 : matrices.size() - 2]
          .back();  // the left factor's; a bias comes before it
    case OpFamily::convolution: return product(matrices.back().subspan(1));  // the filter comes last
    case OpFamily::attention:
      for (auto sizes : matrices) length = std::max(length, 2 * sizes[sizes.size() - 2]);
      return length;
    default:
      for (auto sizes : matrices) length = std::max(length, sizes.back());
      return length;
  }
}

/// Elements that are computed of sums of products. Each gradient of a convolution takes as many products as the
/// convolution, whose output's gradient is the first operand.
std::int64_t summedElements(const Document& document, BoundSymbolId op, OpFamily family, std::string_view name) {
  const auto outputs = document.outputs(op), operands = document.operands(op);
  std::int64_t elements = 0;
  const bool isBackward =
      family == OpFamily::convolution && name.find("backward") != std::string_view::npos && !operands.empty();
  for (auto output : outputs) {
    if (!isBackward) elements += elementsOf(document, output);
    else if (output && document.isTensor(output) && document.meta(output).sizes.size() >= 2)
      elements += elementsOf(document, operands[0]);
  }
  return elements;
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
  const std::string_view name = document.symbol(op).name;
  std::int64_t bytes = 0;
  for (auto operand : document.operands(op)) bytes += bytesOf(document, operand);
  for (auto output : document.outputs(op)) bytes += bytesOf(document, output);
  const auto family = familyOf(name);
  const auto elements = summedElements(document, op, family, name);
  const bool costly = std::any_of(costlyFunctions.begin(), costlyFunctions.end(),
                                  [&](std::string_view text) { return name.find(text) != std::string_view::npos; });
  const auto operations = isHeavy(family) ? 2 * elements * innerLength(document, op, family)
                          : costly        ? costlyFunctionOperations * elements
                                          : elements;
  return std::max<std::int64_t>(1, bytes + operations / operationsPerByte);
}

double estimatedSeconds(const Document& document, const Trace& joint) {
  constexpr double secondsForEachOp = 15e-6, bytesInASecond = 4e9;
  double bytes = 0;
  for (auto op : joint.ops) bytes += static_cast<double>(opCost(document, op));
  return static_cast<double>(joint.ops.size()) * secondsForEachOp + bytes / bytesInASecond;
}

}  // namespace retrograd
