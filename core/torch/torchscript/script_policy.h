#pragma once
// Only .cpp files of tracing include this: it shows LibTorch's types.
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace retrograd {

class ScriptCode;

/// What an opened TorchScript file may do. Everything that its code can reach is gone over before any of it runs: each
/// op of a graph, of its blocks and of the functions it calls has to be on the allow list, which is: ops of LibTorch's
/// dispatcher that a .pt2 file may name (op_table.h), ops on numbers, texts, lists and dicts, and control flow. Classes
/// of C++ are not.
class ScriptPolicy {
 public:
  /// `classes`: those of the module's objects, any of which may be behind an interface.
  ScriptPolicy(const ScriptCode& code, std::vector<c10::ClassTypePtr> classes)
      : code_(code), classes_(std::move(classes)) {}

  /// Compiles and checks `function` and all that it calls. Throws Error(badInput) naming the op, its place and what to
  /// do.
  void check(torch::jit::Function& function);

 private:
  void checkBlock(const torch::jit::Block& block);
  void checkNode(const torch::jit::Node& node);
  void checkOp(const torch::jit::Node& node) const;
  void checkType(const c10::TypePtr& type, const torch::jit::Node& node) const;
  void follow(const torch::jit::Node& node);
  void followMethod(const c10::TypePtr& type, const std::string& name, const torch::jit::Node& node);
  [[noreturn]] void refuse(const torch::jit::Node& node, const std::string& what) const;

  const ScriptCode& code_;
  std::vector<c10::ClassTypePtr> classes_;
  std::unordered_set<const torch::jit::Function*> seen_;
  std::vector<torch::jit::Function*> pending_;
};

/// Whether an op that only LibTorch's TorchScript knows ("aten::len", "prim::device") is on the allow list.
bool isAllowedScriptOp(std::string_view name);

/// The graph of a function of the file.
std::shared_ptr<torch::jit::Graph> graphOf(torch::jit::Function& function);

/// The function that a prim::CallFunction calls.
torch::jit::Function& calledFunction(const torch::jit::Node& call);

}  // namespace retrograd
