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

  /// `ofOther`: what is expected was computed on another device than the analysis is for.
  Measure compare(const std::string& name, const TensorData& actual, const TensorData& expected,
                  bool anyFloatType = false, bool ofOther = false);

  bool isOnGpu() const { return analysis->device.type == Device::Type::cuda; }
  /// The same on the CPU, for a run on a GPU.
  OtherDevice& onCpu();

  std::shared_ptr<const Analysis> analysis;
  TensorMap run;
  Judge judge;
  const Progress& progress;

 private:
  std::string nonFinite(const std::string& name, const TensorData& tensor);

  std::optional<std::vector<Claim>> roots_;  ///< of NaN and infinities, once they are asked for
  std::optional<OtherDevice> cpu_;
};

}  // namespace retrograd
