#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/derivation/registry.h"
#include "core/torch/grad/rule.h"
#include "core/trace/trace.h"

namespace at {
class Tensor;
}

namespace retrograd {

/// Real tensors for what data decide (item, nonzero, cond's predicate): runs the joint emitted so far, on demand.
class RealValues {
 public:
  virtual ~RealValues() = default;
  /// The value after all of `emitted` ran; the same list, only longer, comes with each call.
  virtual at::Tensor value(const std::vector<BoundSymbolId>& emitted, ValueId value) = 0;
  /// `id` is the cotangent of the computation's output at this position.
  virtual void addCotangent(ValueId id, std::size_t output) = 0;
  /// A literal tensor of a formula was made.
  virtual void addConstant(ValueId id, const TensorData& data) = 0;
};

struct TransformOptions {
  std::vector<char> differentiate;  ///< by computation input
  std::vector<std::optional<TensorMeta>>
      inputMetas;                       ///< by computation input: what will really flow in; absent: as in the file
  std::map<ValueId, Argument> numbers;  ///< inputs that are numbers
  std::function<bool(std::size_t output)> hasCotangent;  ///< absent: every differentiable user output has one
  bool createGraph = false;             ///< the joint will be differentiated again (RuleRequest::createGraph)
  std::map<ValueId, ValueId> readLate;  ///< JointResult::readLate of the joint that the computation was
  std::map<ValueId, std::vector<std::int64_t>> gradientSizes;  ///< the same of JointResult::gradientSizes
  const RuleRegistry* rules = nullptr;                         ///< registered rules; may be null
  RealValues* realValues = nullptr;                            ///< absent: an op that data decide is an error
};

struct JointResult {
  /// inputs: the computation's, then one cotangent per output (none where it has none).
  /// outputs: the computation's (resultCount of them), then one gradient per computation input (none where there is
  /// none).
  Trace joint;
  std::map<ValueId, TensorData> constants;  ///< literals inside formulas
  std::map<std::size_t, ValueId> mutated;   ///< computation input -> the value its in-place writes leave
  std::map<ValueId, ValueId>
      gradients;  ///< value of the forward -> its gradient, all terms added; another value's, where it passes unchanged
  /// Values whose memory was written behind autograd's back (through _unsafe_view) -> what a backward reads in their
  /// place. Second derivatives of the forward's ops read it, too.
  std::map<ValueId, ValueId> readLate;
  std::set<std::pair<BoundSymbolId, BoundSymbolId>>
      lateReads;  ///< ops of the computation: one whose backward reads such memory, the last one that wrote there
  /// Inputs that got other sizes in place, under no_grad, before a recorded op used them -> the sizes in which autograd
  /// gives their gradients.
  std::map<ValueId, std::vector<std::int64_t>> gradientSizes;
  std::map<std::size_t, BoundSymbolId>
      refused;  ///< computation input whose gradient would pass through an opaque op -> that op of the computation
  std::vector<std::string> dataDependent;  ///< why the joint holds for these inputs only
  std::vector<Problem> problems;
};

/// Thrown when the computation writes to an input that is differentiated, which eager PyTorch refuses: to be derived
/// again without it.
struct WritesToLeaf {
  std::size_t input;  ///< position among the computation's inputs
};

/// The grad transform: computation to joint trace. Each op becomes the ops LibTorch dispatches for it (subsymbols of
/// the computation op), then, in reverse order of the computation, each op's backward group; gradients that meet are
/// added, the cotangent or the earlier one on the left. Every bound symbol of the result has an origin. In-place ops
/// are made functional: a write to a view is written through to its base, and what is written to inputs and buffers is
/// copied there at the end of the forward. The document grows; the computation does not change. Throws
/// Error(unsupportedOp, needsData, cancelled), WritesToLeaf.
JointResult gradTransform(Document& document, const Computation& computation, const TransformOptions& options,
                          RuleCache& cache, const Progress& progress = {});

}  // namespace retrograd
