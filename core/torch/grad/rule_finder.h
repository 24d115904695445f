#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/torch/grad/derive.h"
#include "core/torch/grad/transform.h"

namespace retrograd {

/// A rule applied: from its locals to the joint's values.
struct Instance {
  Rule* rule = nullptr;         ///< null: the gradient of `to` passes unchanged to `from`
  BoundSymbolId op;             ///< computation op
  std::size_t localsBegin = 0;  ///< among JointWriter::locals()
  ValueId from, to;
  SymbolId symbol;  ///< what the rule was made for, to derive it again with data
  PatternId pattern;
  std::int32_t autocast = 0;
  bool withData = false;  ///< the rule was derived with real operands
  WriteMode writes = WriteMode::cloneMarked;
  std::vector<std::pair<std::int32_t, ValueId>>
      readInstead;  ///< locals in whose place the backward reads another value
  bool writesView =
      false;  ///< in place: eager then copies the gradients that pass (CopySlices), and none stays a ZeroTensor
  BoundSymbolId opaque;  ///< of an opaque op: its op in the joint; it has no rule
};

/// Finds the rule of a call and its backward: one that was derived before, or a new one, on shapes alone where these
/// are enough and with real tensors where data decide.
class RuleFinder {
 public:
  /// `region` and `emitted` (the joint so far, which real values are computed by) are read at each call. What data
  /// decided is added to `dataDependent`.
  RuleFinder(Document& document, const TransformOptions& options, RuleCache& cache, const RegionState& region,
             const std::vector<BoundSymbolId>& emitted, std::vector<std::string>& dataDependent)
      : document_(document),
        options_(options),
        cache_(cache),
        region_(region),
        emitted_(emitted),
        dataDependent_(dataDependent) {}

  struct Found {
    Rule* rule;
    bool withData;  ///< data decided it
  };
  /// Throws Error(needsData, unsupportedOp, unknownOp).
  Found find(SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors,
             WriteMode writes = WriteMode::cloneMarked);
  /// The backward for cotangents with these metas (none: no cotangent came). Where it has to read data, the instance
  /// gets another rule that was derived with real operands. Throws as find().
  const BackwardVariant& backward(Instance& instance, std::span<const ValueId> operands,
                                  const std::vector<MetaId>& metas, const std::vector<ValueId>& cotangents);
  /// What a rule is derived from, in the region as it is.
  RuleRequest request(const std::string& symbol, const CallPattern& pattern, std::span<const ValueId> tensors,
                      WriteMode writes) const {
    return request(symbol, pattern, tensors, writes, region_);
  }
  /// The value's data. Throws Error(needsData) where there are no inputs to compute it from.
  at::Tensor real(ValueId value);
  /// Number of the region's autocast state; 0 where none is active.
  std::int32_t autocastIndex();

 private:
  RuleRequest request(const std::string& symbol, const CallPattern& pattern, std::span<const ValueId> tensors,
                      WriteMode writes, const RegionState& region) const;
  std::unique_ptr<Rule> deriveWithData(RuleRequest request, std::span<const ValueId> tensors, bool runReal = false);
  const BackwardVariant& backwardWithData(Instance& instance, std::span<const ValueId> operands,
                                          const std::vector<MetaId>& metas, const std::vector<ValueId>& cotangents,
                                          bool runReal);

  Document& document_;
  const TransformOptions& options_;
  RuleCache& cache_;
  const RegionState& region_;
  const std::vector<BoundSymbolId>& emitted_;
  std::vector<std::string>& dataDependent_;
  std::vector<AutocastState> autocasts_;  // distinct states met; a rule's key holds the index
  RuleCache::Key keyScratch_;             // reused, as it is needed once per op
};

}  // namespace retrograd
