#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/trace/document.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// One dispatched op of a rule, over the rule's local values.
struct RuleOp {
  SymbolId symbol;
  PatternId pattern;
  std::vector<std::int32_t> operands;
  std::vector<std::int32_t> outputs;  ///< -1: undefined
  std::uint8_t effects = 0;
  std::int16_t gradientOf = -1;  ///< backward: the least forward operand whose gradient needs this op
  Role role = Role::none;        ///< backward: zero or accumulation where it is not a gradient
  bool zeroTensor = false;       ///< its result is a ZeroTensor in eager PyTorch (zero_tensors.h)
};

struct RuleLocal {
  static constexpr std::int32_t foreign = -2;

  MetaId meta;  ///< none: a number
  std::int32_t storage =
      -1;  ///< number within the rule; equal numbers share memory; foreign: of another variant, unused here
  std::int64_t storageBytes = 0;
};

/// Tensors that are literals inside a formula, by local.
using RuleConstants = std::vector<std::pair<std::int32_t, TensorData>>;

/// The backward of a rule for one set of defined cotangents. Locals continue the forward's numbering.
struct BackwardVariant {
  std::vector<RuleOp> ops;
  std::vector<RuleLocal> locals;         ///< from Rule::locals.size() on
  std::vector<std::int32_t> cotangents;  ///< local by flat output; -1 where none came
  std::vector<std::pair<std::int32_t, std::int32_t>>
      gradients;  ///< (tensor operand, local), in the order in which they are added
  RuleConstants constants;
  std::vector<std::string> dataDependent;
};

/// What backward variants are derived from when first needed (variant_source.h).
class VariantSource;
struct VariantSourceDeleter {
  void operator()(VariantSource*) const;
};

/// What an op becomes under given literals, operand shapes and requires_grad: the ops that LibTorch dispatches for it,
/// and the ops of its derivative. Locals [0, operandCount) are the tensor operands.
struct Rule {
  std::int32_t operandCount = 0;
  std::vector<RuleOp> forward;
  std::vector<RuleLocal> locals;
  std::vector<std::int32_t>
      outputs;  ///< local by flat output; -1 undefined; < operandCount: an operand returned as it is
  std::vector<std::optional<Argument>> numbers;  ///< flat outputs that are numbers
  std::vector<char> outputRequiresGrad;
  bool anyRequiresGrad = false;
  std::vector<std::pair<std::int32_t, std::int32_t>> written;  ///< (operand, local that holds its content afterwards)
  RuleConstants constants;
  bool noDerivative = false;               ///< LibTorch has no derivative for the op, and no rule is registered
  std::vector<std::string> dataDependent;  ///< ops of it whose result data decided; such a rule is not cached
  std::map<std::vector<std::int32_t>, BackwardVariant> variants;  ///< by cotangent MetaId, -1 where none
  std::unique_ptr<VariantSource, VariantSourceDeleter> variantSource;
};

/// Autocast as a region of the computation sets it.
struct AutocastState {
  bool active = false;  ///< a region sets it at all
  bool enabled = false;
  Device::Type device = Device::Type::cpu;
  std::optional<DType> dtype;
  bool operator==(const AutocastState&) const = default;
};

/// How the ops of a region run.
struct RegionState {
  bool gradMode = true;
  AutocastState autocast;
};

/// Sets a region's grad mode and restores it.
class GradModeScope {
 public:
  GradModeScope(RegionState& region, bool gradMode) : region_(region), before_(region.gradMode) {
    region.gradMode = gradMode;
  }
  ~GradModeScope() { region_.gradMode = before_; }
  GradModeScope(const GradModeScope&) = delete;
  GradModeScope& operator=(const GradModeScope&) = delete;

 private:
  RegionState& region_;
  bool before_;
};

/// Rules by signature: op, literals, per tensor operand its meta (dtype, sizes, strides, device, lazy bits) and
/// requires_grad; grad mode and autocast. Belongs to one Document, whose ids its rules use.
class RuleCache {
 public:
  using Key = std::vector<std::int32_t>;
  Rule* find(const Key& key) {
    const auto it = rules_.find(key);
    return it == rules_.end() ? nullptr : it->second.get();
  }
  Rule* insert(const Key& key, std::unique_ptr<Rule> rule) { return (rules_[key] = std::move(rule)).get(); }
  /// A rule that data decided: kept alive, never found again.
  Rule* keep(std::unique_ptr<Rule> rule) { return once_.emplace_back(std::move(rule)).get(); }
  std::size_t size() const { return rules_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::size_t h = key.size();
      for (auto k : key)
        h = (h ^ static_cast<std::size_t>(static_cast<std::uint32_t>(k))) * 0x9e3779b97f4a7c15ULL + (h >> 31);
      return h;
    }
  };
  std::unordered_map<Key, std::unique_ptr<Rule>, Hash> rules_;
  std::vector<std::unique_ptr<Rule>> once_;
};

}  // namespace retrograd
