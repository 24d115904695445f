#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/formats/recording/recording.h"
#include "core/torch/steps/recomputed_ops.h"
#include "core/torch/steps/step_opinion.h"
#include "core/torch/steps/step_values.h"

namespace retrograd {

/// Which values of a recording lead to a trained parameter by way of floating-point numbers, whether or not autograd
/// saw the way.
class TrainedValues {
 public:
  explicit TrainedValues(const Analysis& analysis);
  bool has(ValueId value) const { return value && leads_[value]; }
  /// The parameter whose memory this is; null: of none.
  const std::string* parameter(ValueId value) const;
  /// Parameters that the value depends on.
  std::vector<std::string> behind(ValueId value) const;

 private:
  const Document& document_;
  const StepRecording& recording_;
  IdVector<ValueId, char> leads_;
  std::unordered_map<StorageId, const RecordedName*> names_;
  std::set<std::string> trained_;
};

/// One backward of a recording, from its end to its begin: each op's gradients are derived from the gradient that came
/// in as recorded, and met with those that the recorded backward used.
class BackwardWalk {
 public:
  BackwardWalk(const Analysis& analysis, const StepValues& values, const TrainedValues& trained,
               OpDerivatives& derivatives, const BackwardSpan& span, StepOpinion& opinion);
  void run();

 private:
  /// A term of a value's gradient.
  struct Part {
    at::Tensor tensor;
    bool sure = false;     ///< the recorded backward has it, bit for bit
    double noise = 0;      ///< how far rounding may move an element
    BoundSymbolId source;  ///< the op whose derivative it is
    BoundSymbolId cut;     ///< an op on the way that autograd does not know as such; none: it knows them all
    bool moved = false;    ///< between ranks or layouts on the way: what the others have of it is not known
  };
  /// A gradient that the recorded backward read.
  struct Candidate {
    at::Tensor tensor;
    ValueId value;
  };
  using Parts = std::vector<Part>;
  struct Sum {
    at::Tensor tensor;
    double noise = 0;
  };

  void index();
  void visit(std::size_t position);
  void finish(const std::string& parameter);
  Candidate accumulatedInAll(const std::string& parameter) const;
  void hookWrote(std::size_t position);
  void goOnWithoutOps(std::size_t position, const std::vector<at::Tensor>& cotangents, const Parts& parts);
  std::vector<Candidate> readBy(std::size_t forward) const;
  void collect(std::vector<Candidate>& found, std::size_t position, const std::set<std::int32_t>& without) const;
  at::Tensor settle(const Parts& parts, std::vector<Candidate>& candidates, ValueId value, std::size_t position);
  bool meets(const Sum& terms, const std::vector<Candidate>& candidates, std::size_t& which);
  bool splitAmongEqualViews(const Parts& parts, const std::vector<Candidate>& candidates, ValueId value,
                            std::size_t& which);
  ValueId equalViewBefore(ValueId value);
  void giveToWritten(std::size_t position);
  bool leaveOut(const Parts& parts, const std::vector<Candidate>& candidates, ValueId value, std::size_t& which);
  bool leaveOut(const Parts& parts, const std::vector<Candidate>& candidates, ValueId value, std::size_t& which,
                bool byCut);
  void blame(const Parts& parts, const Candidate& candidate, ValueId value);
  void pass(std::size_t position, const Parts& parts);
  void goThroughRanks(std::size_t position, std::vector<Parts> parts);
  void derive(std::size_t position, const std::vector<at::Tensor>& cotangents, const Parts* from);
  void goOnBehindAutograd(std::size_t position, std::vector<Parts> parts);
  void settleBeforeFunction(std::size_t position, Parts& parts, ValueId value);
  void addPart(ValueId value, Part part);
  void addCut(GradientCut::Kind kind, BoundSymbolId op, const at::Tensor& actual, const at::Tensor& expected,
              ValueId value, std::string because = {});
  GradientCut::Kind kindOf(BoundSymbolId cut) const;
  BoundSymbolId backwardOf(BoundSymbolId function) const;
  BoundSymbolId madeBy(BoundSymbolId function, const at::Tensor& gradient) const;
  StringId functionOf(BoundSymbolId op) const;
  bool isIntermediate(ValueId value) const;
  void markSaved(std::size_t position, ValueId value, Parts& parts) const;
  BoundSymbolId functionStart(std::size_t position) const;
  BoundSymbolId savedTensorHook(BoundSymbolId op) const;
  static Sum sumOf(const Parts& parts);
  static bool isGradient(const at::Tensor& tensor);
  static double largestOf(const at::Tensor& tensor);
  ValueId sameTensorBefore(BoundSymbolId op) const;
  bool isTainted(ValueId value, std::size_t position) const;
  bool isNode(std::size_t position) const;
  bool betweenRanks(std::size_t position) const;

  const Analysis& analysis_;
  const Document& document_;
  const StepRecording& recording_;
  const std::vector<BoundSymbolId>& ops_;
  const StepValues& values_;
  const TrainedValues& trained_;
  OpDerivatives& derivatives_;
  const BackwardSpan& span_;
  StepOpinion& opinion_;
  const RecomputedOps recomputed_;
  std::unordered_map<std::int32_t, std::vector<std::size_t>> linked_;  ///< by forward op: its backward ops
  std::map<std::string, std::vector<std::size_t>> accumulated_;        ///< by parameter
  std::unordered_set<std::int32_t> ofForward_;                         ///< values that it made of the forward's alone
  std::unordered_set<std::int32_t> ofOutside_;                         ///< values of Functions that others read
  std::unordered_set<std::uint64_t> made_;                             ///< hashes of all results of the backward
  std::unordered_map<std::int32_t, Parts> parts_;                      ///< by value
  std::map<std::tuple<StorageId, MetaId, std::int32_t>, std::vector<ValueId>> equalViews_;  ///< in their order
  std::map<std::string, Parts> leaves_;                                                     ///< by parameter
  std::map<std::string, ValueId> leafValues_;
};

}  // namespace retrograd
