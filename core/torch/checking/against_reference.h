#pragma once
#include <optional>
#include <string>

#include "core/torch/checking/check.h"
#include "core/torch/checking/judged_run.h"
#include "core/torch/checking/tensor_claims.h"
#include "core/torch/judging/reference.h"

namespace retrograd {

/// Holds a model's run to a reference, tensor by tensor: the claims go to `claims`, what could not be compared and how
/// it was compared to `report`. All four outlive this.
class AgainstReference {
 public:
  /// `lacksGradients`: PyTorch computed none for the reference, so that a missing one is not a difference.
  AgainstReference(JudgedRun& written, const LeftOutNames& leftOut, TensorClaims& claims, Report& report,
                   bool lacksGradients)
      : written_(written), leftOut_(leftOut), claims_(claims), report_(report), lacksGradients_(lacksGradients) {}

  /// By their elements. `isOfGpu`: the reference was computed on a GPU.
  void compareNumbers(const TensorMap& expected, bool isOfGpu);
  /// By shape and dtype: the results depend on draws. `isDrawnElsewhere`: on those of another kind of device.
  void compareShapes(const TensorMap& expected, bool isDrawnElsewhere);
  /// Of a derivative's derivative: the reference's outputs and gradients are all outputs of what was differentiated
  /// again. What it has in float64 is held to the tolerance of the file's own precision.
  void compareFirstOrder(const Reference& reference);
  /// The run in double precision. `pinned`: the cast that keeps the graph in float32, where there is one.
  void compareInDouble(JudgedRun& inDouble, const Expected& expected, const std::optional<std::string>& pinned);

 private:
  TensorData fitUnits(const Analysis& analysis, const std::string& name, TensorData actual, const TensorMeta& expected);
  std::optional<TensorData> actualFor(const JudgedRun& judged, const std::string& name, const TensorData& expected);
  template <class Compare>
  void compareEach(JudgedRun& judged, Producer by, const TensorMap& expected, Compare&& compare);
  NotJudged notCompared(Producer by, const std::string& name) const;

  JudgedRun& written_;
  const LeftOutNames& leftOut_;
  TensorClaims& claims_;
  Report& report_;
  bool lacksGradients_;
};

}  // namespace retrograd
