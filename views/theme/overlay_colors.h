#pragma once
#include <QColor>

#include "core/base/tensor_meta.h"

namespace retrograd::views {

/// Grounds of the graph's boxes under an overlay: each light enough, or dark enough, for the text that is on it.
class OverlayColors {
 public:
  static constexpr int steps = 5;

  explicit OverlayColors(bool dark) : dark_(dark) {}

  /// From little (0) to much (steps - 1).
  QColor ramp(int step) const;
  QColor dtype(DType dtype) const;
  /// Of a pipeline stage, or a device.
  QColor stage(int number) const;
  /// Where the overlay has nothing to show.
  QColor none() const { return dark_ ? 0x22252a : 0xffffff; }
  /// What the backward computes again.
  QColor recomputed() const { return dark_ ? 0x173a34 : 0xd8f3ea; }
  /// A NaN or Inf was seen.
  QColor bad() const { return dark_ ? 0x6a2450 : 0xf7cfe6; }

 private:
  bool dark_;
};

}  // namespace retrograd::views
