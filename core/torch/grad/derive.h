#pragma once
#include <ATen/core/Tensor.h>

#include "core/derivation/registry.h"
#include "core/torch/grad/rule.h"

namespace retrograd {

/// What a rule does with operands that its op writes.
enum class WriteMode : std::uint8_t {
  cloneMarked,  ///< those that the schema marks are cloned, so that the rule itself never writes to its operands;
                ///< running statistics of batch norm are written
  cloneAll,     ///< running statistics are cloned as well
  inPlace,      ///< none is cloned: the rule writes to its operands
};

/// An op to derive a rule for, by LibTorch's own decomposition and derivative formulas.
struct RuleRequest {
  std::string_view op;                    ///< "aten.linear.default"
  const CallPattern* pattern = nullptr;   ///< numbers already substituted; holes are tensors
  std::vector<MetaId> operands;           ///< by hole
  std::vector<char> requiresGrad;         ///< by hole
  std::vector<std::int64_t> memoryBytes;  ///< by hole: of the memory that the operand lies in, for ops that look beyond
                                          ///< it; empty: what it needs
  bool gradMode = true;
  WriteMode writes = WriteMode::cloneMarked;
  bool createGraph = false;  ///< the backward will be differentiated again: LibTorch then takes formulas that can be
  AutocastState autocast;
  std::vector<at::Tensor> real;         ///< real operands, for ops that data decide; empty: shapes alone
  const RuleRegistry* rules = nullptr;  ///< registered ones go before LibTorch's own; may be null
  bool runReal = false;                 ///< trace on the real operands throughout (sparse results)
};

/// Runs the op once on hollow tensors under interception. Throws NeedsData when data decide and `real` is empty;
/// Error(unsupportedOp) naming the op when LibTorch refuses it.
std::unique_ptr<Rule> deriveRule(Document& document, const RuleRequest& request);

/// The rule's backward for cotangents with these metas (none: no cotangent came); made on first use.
/// `real`: the cotangents' data, where the formula reads data (the rule was then derived with real operands too).
/// Throws as deriveRule().
const BackwardVariant& backwardVariant(Document& document, Rule& rule, const std::vector<MetaId>& cotangents,
                                       const std::vector<at::Tensor>& real = {});

/// One call of a decomposition. Tensors are numbered over the whole of it: the op's operands first, then outputs as
/// they come.
struct DecomposedCall {
  std::string op;
  std::vector<Argument> arguments;
  std::vector<Argument> outputs;
};
struct Decomposed {
  std::vector<DecomposedCall> calls;
  std::vector<Argument> outputs;  ///< of the op: tensors by number, literals
};

/// What a registered decomposition makes of the op under these operands. Throws as deriveRule().
Decomposed decompose(Document& document, const RuleRequest& request, const Decomposition& decomposition);

}  // namespace retrograd
