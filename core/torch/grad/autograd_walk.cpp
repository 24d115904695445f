#include "core/torch/grad/autograd_walk.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <torch/csrc/autograd/engine.h>

#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace retrograd {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

class Walk {
 public:
  explicit Walk(const std::vector<Edge>& leaves) : results_(leaves.size()) {
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].is_valid()) leafIndex_[leaves[i].function.get()] = i;
  }

  std::vector<at::Tensor> run(const std::vector<Edge>& roots, const std::vector<at::Tensor>& cotangents) {
    countDependencies(roots);
    for (std::size_t i = 0; i < roots.size(); ++i)
      if (roots[i].is_valid()) accumulate(roots[i], cotangents[i]);
    std::unordered_set<Node*> pushed;
    for (const auto& root : roots)
      if (root.is_valid() && dependencies_[root.function.get()] == 0 && pushed.insert(root.function.get()).second)
        ready_.push(root.function.get());
    while (!ready_.empty()) {
      Node* node = ready_.top();
      ready_.pop();
      visit(node);
    }
    return std::move(results_);
  }

 private:
  struct Earlier {
    bool operator()(const Node* a, const Node* b) const { return a->sequence_nr() < b->sequence_nr(); }
  };

  void countDependencies(const std::vector<Edge>& roots) {
    std::unordered_set<Node*> seen;
    std::vector<Node*> stack;
    const auto discover = [&](const Edge& edge) {
      if (edge.is_valid() && seen.insert(edge.function.get()).second) stack.push_back(edge.function.get());
    };
    for (const auto& root : roots) discover(root);
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (const auto& edge : node->next_edges()) {
        if (edge.is_valid()) ++dependencies_[edge.function.get()];
        discover(edge);
      }
    }
  }

  void accumulate(const Edge& edge, const at::Tensor& gradient) {
    auto& buffer = buffers_[edge.function.get()];
    if (buffer.size() < edge.function->num_inputs()) buffer.resize(edge.function->num_inputs());
    if (!gradient.defined()) return;
    auto& slot = buffer[edge.input_nr];
    slot = slot.defined() ? at::add(slot, gradient) : gradient;
  }

  void visit(Node* node) {
    auto inputs = std::move(buffers_[node]);
    buffers_.erase(node);
    inputs.resize(node->num_inputs());
    if (auto leaf = leafIndex_.find(node); leaf != leafIndex_.end()) {
      results_[leaf->second] = inputs[0];
      return;
    }
    if (node->next_edges().empty()) return;  // the accumulator of a leaf nobody asked for
    bool any = false;
    for (const auto& input : inputs) any |= input.defined();
    variable_list outputs(node->num_outputs());
    if (any) {
      outputs = (*node)(std::move(inputs));
      torch::autograd::validate_outputs(node->next_edges(), outputs,
                                        [&](const std::string& message) { return node->name() + ": " + message; });
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Edge& edge = node->next_edges()[i];
      if (!edge.is_valid()) continue;
      accumulate(edge, outputs[i]);
      if (--dependencies_[edge.function.get()] == 0) ready_.push(edge.function.get());
    }
  }

  std::unordered_map<Node*, std::size_t> leafIndex_;
  std::unordered_map<Node*, int> dependencies_;
  std::unordered_map<Node*, variable_list> buffers_;
  std::priority_queue<Node*, std::vector<Node*>, Earlier> ready_;
  std::vector<at::Tensor> results_;
};

}  // namespace

std::vector<at::Tensor> walkBackward(const std::vector<Edge>& roots, const std::vector<at::Tensor>& cotangents,
                                     const std::vector<Edge>& leaves, bool createGraph) {
  at::AutoGradMode gradMode(createGraph);
  return Walk(leaves).run(roots, cotangents);
}

}  // namespace retrograd
