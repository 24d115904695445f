#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/base/progress.h"
#include "core/torch/judging/noise.h"

namespace retrograd {

/// A model that was derived for one device, on another, with the same inputs, cotangents and seed.
class OtherDevice {
 public:
  /// Derives it there from the model that `here` was derived from. Throws Error(execution) where that fails.
  OtherDevice(const Analysis& here, Device device, const Progress& progress);

  /// The results of a run there, by the names that they have here (named_results.h): what is derived again gives the
  /// cotangents of a second derivative new names.
  TensorMap run(const Progress& progress) const;

  /// How far the two devices may be apart in a tensor though both are right: the distance of LibTorch's own runs on
  /// them, as kernels of a device may be less precise (hardswish on GPUs), and four times the rounding there, which
  /// alone makes up a gradient that is zero but for it. `eager`: LibTorch's own run here, null where it refuses. In the
  /// tensor's unit; 0 where nothing is known.
  double apart(const std::string& name, const TensorMap* eager);

 private:
  std::string thereName(const std::string& name) const;

  std::shared_ptr<const Analysis> there_;
  std::map<std::string, std::string> names_;  // there, by the name here, of those that differ
  Noise noise_;
};

/// Whether a run on a GPU draws other numbers than the one that a reference is of, or the other way round: then only
/// shapes can be compared.
bool drawsElsewhere(const Analysis& analysis, bool drawnOnGpu);

/// Why CUDA's libraries refuse the model whatever its numbers are; nothing where they do not. So far: FFTs of float16
/// and complex32 of a size that is not a power of two.
std::optional<std::string> refusedByCuda(const Analysis& analysis);

}  // namespace retrograd
