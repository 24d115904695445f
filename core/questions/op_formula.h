#pragma once
#include <string_view>
#include <vector>

namespace retrograd {

/// What an op of the backward computes, as expressions over the arguments of its schema, in the notation of PyTorch
/// without `torch.`: "grad_output * output * (1 - output)".
struct OpFormula {
  std::string_view op;                    ///< without its overload: "aten.sigmoid_backward"
  std::vector<std::string_view> results;  ///< one for each result
  std::vector<std::string_view> names;    ///< of parts that results share, in order: "x = (input - mean) * rstd"
  std::string_view where;                 ///< for which arguments this holds; empty: for all
};

/// Ops that are no more than their name says (mm, mul, sum) have none.
const std::vector<OpFormula>& opFormulas();

/// The formula of the op of this name ("aten.sigmoid_backward.default"); null where there is none.
const OpFormula* formulaOf(std::string_view op);

}  // namespace retrograd
