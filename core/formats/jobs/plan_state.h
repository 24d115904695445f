#pragma once
// Working state of savePlanOf(); only save_plan*.cpp and plan_state.cpp include this.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/formats/jobs/equal_layers.h"
#include "core/formats/jobs/job_graphs.h"
#include "core/formats/jobs/save_plan.h"

namespace retrograd {

/// The facts that the text of one graph gives about its values, which have indices.
class ValueFacts {
 public:
  ValueFacts(const fx::Graph& graph, const SizeBindings& bindings);

  const fx::Graph& graph() const { return graph_; }
  std::size_t inputs() const { return graph_.inputs.size(); }
  std::size_t count() const { return graph_.valueCount(); }
  std::optional<std::size_t> named(std::string_view name) const;

  const fx::Type* type(std::size_t value) const;  ///< null where the text has none
  bool isTensor(std::size_t value) const;
  const fx::Node* node(std::size_t value) const;      ///< null for an input
  const fx::Source* source(std::size_t value) const;  ///< null where there is none
  std::string_view policy(std::size_t value) const;
  /// "torch.ops.aten.mm.default", of an item that of the op it is a result of; empty for what is not a result of an op.
  std::string_view target(std::size_t value) const;
  /// The value that has the storage which `value` is in: itself, unless it is a view.
  std::size_t root(std::size_t value) const { return roots_[value]; }
  bool isInput(std::size_t value) const { return roots_[value] < inputs(); }
  std::vector<std::int64_t> sizes(std::size_t value) const;  ///< -1 for a size that is not known
  /// Elements that differ, times the size of one: a dimension of stride 0 has one. Nothing for other values, or with
  /// a size that is not known.
  std::optional<std::int64_t> bytes(std::size_t value) const;

 private:
  std::size_t producer(std::size_t value) const;
  std::size_t viewed(std::size_t value) const;

  const fx::Graph& graph_;
  const SizeBindings& bindings_;
  std::unordered_map<std::string_view, std::size_t> named_;
  std::vector<std::size_t> roots_;
};

/// Which of the equal layers a value is in, and where in it.
struct LayerPlace {
  std::optional<std::size_t> layer;
  std::string slot;
};

/// The graphs of a compile, laid over one another and divided in layers.
class PlanState {
 public:
  explicit PlanState(const JobGraphs& graphs);

  const JobGraphs& graphs;
  const ValueFacts forward, whole;  ///< whole: the joint graph, else the forward
  const std::size_t border;         ///< values of `whole` below it are the forward's
  std::vector<std::size_t> saved;   ///< values of the forward graph, in the order of its outputs
  std::vector<PlanLayer> layers;
  std::vector<jobs::LayerGroup> groups;
  std::vector<LayerPlace> places;                 ///< by value of `whole`
  std::vector<std::vector<std::size_t>> readers;  ///< by value of `whole` the values that are computed from it
  std::vector<char> isResult;                     ///< by value of `whole`: the program returns it

  std::size_t layerIndex(std::size_t group, std::size_t number) const { return firstLayer_[group] + number; }
  Fate fate(const std::string& name) const;
  /// As the forward graph has it, where PyTorch adds tags of its own; of ops that only the backward runs as the joint
  /// graph has it.
  std::string policy(std::size_t value) const;

 private:
  void findReaders();
  void findLayers();
  void placeInput(std::size_t input);
  void placeOfBackward(std::size_t value);
  void nameModules();

  std::unordered_set<std::string_view> savedNames_, backwardNames_;
  std::vector<std::size_t> firstLayer_;  ///< by group, into `layers`
  std::unordered_map<std::string, std::size_t> slotCounts_;
};

/// Where equal layers are treated differently.
std::vector<PlanDifference> differencesOf(const PlanState& state);

}  // namespace retrograd
