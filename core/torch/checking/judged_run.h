#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/base/progress.h"
#include "core/derivation/analysis.h"
#include "core/torch/checking/check.h"
#include "core/torch/judging/judge.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/judging/other_device.h"

namespace retrograd {

/// A run of an analysis, and what judges it. Running throws what LibTorch throws, as Error.
struct JudgedRun {
  JudgedRun(std::shared_ptr<const Analysis> analysis, const CheckOptions& options, const Progress& progress);

  /// The verdict is named `prefix` + `name`. `ofOther`: what is expected was computed on another device than the
  /// analysis is for.
  TensorVerdict compare(const std::string& prefix, const std::string& name, const TensorData& actual,
                        const TensorData& expected, bool anyFloatType = false, bool ofOther = false);

  bool isOnGpu() const { return analysis->device.type == Device::Type::cuda; }
  /// The same on the CPU, for a run on a GPU.
  OtherDevice& onCpu();

  std::shared_ptr<const Analysis> analysis;
  TensorMap run;
  Judge judge;
  const Progress& progress;

 private:
  std::string nonFinite(const TensorData& tensor);

  std::optional<std::string> origin_;  ///< of the first NaN or infinity, once it is asked for
  std::optional<OtherDevice> cpu_;
};

}  // namespace retrograd
