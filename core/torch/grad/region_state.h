#pragma once
#include "core/torch/grad/rule.h"

namespace retrograd {

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

}  // namespace retrograd
