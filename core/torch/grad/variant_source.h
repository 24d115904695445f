#pragma once
// What a rule keeps to derive backwards from, and how recorded ops become its own; only the .cpp files of grad/ that
// see ATen include this.
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include "core/base/error.h"
#include "core/torch/grad/derive.h"
#include "core/torch/tracing/recorder.h"

namespace retrograd {

/// What a rule keeps to derive backward variants from: LibTorch's autograd graph of the op, or a registered rule to run
/// again.
class VariantSource {
 public:
  explicit VariantSource(std::string op) : name(std::move(op)) {}
  virtual ~VariantSource() = default;
  /// The backward for cotangents with these metas. Throws what LibTorch throws; see backwardVariant().
  virtual BackwardVariant backward(Document& document, Rule& rule, const std::vector<MetaId>& cotangents,
                                   const std::vector<at::Tensor>& real) = 0;

  const std::string name;  ///< of the op
};

/// Sets autocast as the region says and restores it.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool active_;
  c10::DeviceType device_ = c10::kCPU;
  bool enabled_ = false;
  at::ScalarType dtype_ = at::kFloat;
};

/// LibTorch's op as a symbol of the document.
SymbolId internOperator(Document& document, const c10::OperatorHandle& op);

/// A recorded op and a recorded local as a rule holds them. The effects are what the schema and literals say and what
/// the recorder saw: whether an output really shares memory, whether data really decided.
RuleOp toRuleOp(Document& document, const Recorder& recorder, const RecordedOp& recorded);
RuleLocal toRuleLocal(Document& document, const RecordedLocal& local);

/// Sets RuleOp::gradientOf: for each op the least operand whose gradient it leads to, found by walking from the
/// gradients back.
void markWhoseGradient(BackwardVariant& variant, std::size_t localCount);

/// LibTorch's refusal as ours, naming the op.
Error refused(const c10::Error& e, const std::string& op);

/// The rule that request.rules registers for the op, else our own (own_rules.h), run once with all cotangents. Null
/// where there is none.
std::unique_ptr<Rule> deriveRegistered(Document& document, const RuleRequest& request);

}  // namespace retrograd
