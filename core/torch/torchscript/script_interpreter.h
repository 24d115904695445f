#pragma once
// Only .cpp files of tracing include this: it shows LibTorch's types.
#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "core/torch/torchscript/script_module.h"
#include "core/torch/tracing/computation_recorder.h"

namespace retrograd {

/// Runs functions of a TorchScript module node by node, as LibTorch's own interpreter does without its optimiser, with
/// the ops they call recorded: control flow follows the values, numbers and containers are evaluated, calls of modules
/// inform the recorder where it is. The recorder has to be installed above autograd (AboveAutograd).
class ScriptInterpreter {
 public:
  /// Nodes that may run: a loop over numbers alone would else never be seen to be endless.
  static constexpr std::size_t maxSteps = 100'000'000;

  ScriptInterpreter(ScriptModule& module, ComputationRecorder& recorder, Document& document, const Progress& progress)
      : module_(module), recorder_(recorder), document_(document), progress_(progress) {}

  /// Throws Error(execution) naming op and place for what fails, the model's own exceptions included; Error(cancelled).
  c10::IValue call(torch::jit::Function& function, torch::jit::Stack arguments);

 private:
  using Values = std::unordered_map<const torch::jit::Value*, c10::IValue>;
  struct Frame {
    torch::jit::Function* function;
    Values values;
    const torch::jit::Node* at = nullptr;
    StringId module;
  };

  void runBlock(const torch::jit::Block& block);
  void run(const torch::jit::Node& node);
  void execute(const torch::jit::Node& node);
  void runIf(const torch::jit::Node& node);
  void runLoop(const torch::jit::Node& node);
  void runOp(const torch::jit::Node& node);
  c10::IValue callMethod(const c10::IValue& self, const std::string& name, torch::jit::Stack arguments);
  c10::IValue construct(const torch::jit::Node& node);
  void unpack(const torch::jit::Node& node);
  void addNumber(const at::Tensor& tensor);
  bool isAboutNumbers(const torch::jit::Node& node, const torch::jit::Stack& stack) const;

  c10::IValue& value(const torch::jit::Value* v);
  c10::IValue input(const torch::jit::Node& node, std::size_t i) { return value(node.input(i)); }
  torch::jit::Stack inputs(const torch::jit::Node& node);
  void set(const torch::jit::Value* v, c10::IValue value);
  void tellPlace();
  SourceStack sourceStack();
  const SourceStack& originOf(const torch::jit::Node& node);
  std::string placeText();

  ScriptModule& module_;
  ComputationRecorder& recorder_;
  Document& document_;
  const Progress& progress_;
  std::vector<Frame> frames_;
  std::unordered_map<const torch::jit::Node*, torch::jit::Operation> operations_;
  std::unordered_map<const torch::jit::Node*, SourceStack> origins_;
  std::unordered_map<const at::TensorImpl*, at::Tensor> numbers_;  // 0-dim: literals, and what tracing made of sizes
  std::size_t steps_ = 0;
};

}  // namespace retrograd
