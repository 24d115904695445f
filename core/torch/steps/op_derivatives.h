#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "core/torch/grad/rule.h"

namespace retrograd {

/// An op that ran, with what it read and made.
struct OpTensors {
  std::vector<at::Tensor> operands, outputs;  ///< by hole; flat. Undefined where there is none
};

/// Derivatives of single ops on the tensors of a run, by the rules of core/torch/grad. A rule is derived once for each
/// signature.
class OpDerivatives {
 public:
  explicit OpDerivatives(const Document& document) : document_(document) {}

  struct Gradients {
    std::vector<at::Tensor> byOperand;  ///< undefined where none flows
    bool passes = false;                ///< the formula has no op: what came in goes on unchanged
  };
  /// `wanted`: by operand. `cotangents`: by flat output, undefined where none came. None: the op has no derivative that
  /// can be had here, and `refusal` says why.
  std::optional<Gradients> of(BoundSymbolId op, const OpTensors& tensors, const std::vector<char>& wanted,
                              const std::vector<at::Tensor>& cotangents);
  const std::string& refusal() const { return refusal_; }

 private:
  using Locals = std::vector<c10::IValue>;
  struct Prepared {
    Rule* rule;
    const BackwardVariant* variant;
  };
  std::optional<Gradients> derive(BoundSymbolId op, const OpTensors& tensors, const std::vector<char>& wanted,
                                  const std::vector<at::Tensor>& cotangents);
  Prepared prepare(BoundSymbolId op, const OpTensors& tensors, const std::vector<char>& wanted,
                   const std::vector<at::Tensor>& cotangents);
  Rule* ruleFor(BoundSymbolId op, const OpTensors& tensors, const std::vector<char>& wanted, bool withData);
  void bindForward(const Rule& rule, const BackwardVariant& variant, const OpTensors& tensors, Locals& locals);
  void runOp(const RuleOp& op, Locals& locals) const;

  Document document_;  ///< a copy, which grows by what rules need
  RuleCache rules_;
  std::string refusal_;
};

}  // namespace retrograd
