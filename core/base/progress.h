#pragma once
#include <functional>
#include <stop_token>
#include <string_view>

#include "core/base/error.h"

namespace retrograd {

/// Handed into everything that can take more than 100 ms. Reports how far it is and carries the wish to stop.
/// `report` is called on the working thread with a stage's name and a fraction from 0 to 1.
class Progress {
 public:
  using Report = std::function<void(std::string_view stage, double fraction)>;

  Progress() = default;
  Progress(std::stop_token stop, Report report) : stop_(std::move(stop)), report_(std::move(report)) {}

  /// Throws Error(cancelled) when a stop was asked for; cheap enough for a loop over ops.
  void check() const {
    if (stop_.stop_requested()) throw Error(ErrorCode::cancelled, "cancelled");
  }
  void at(std::string_view stage, double fraction) const {
    check();
    if (report_) report_(stage, fraction);
  }
  bool stopRequested() const { return stop_.stop_requested(); }

 private:
  std::stop_token stop_;
  Report report_;
};

}  // namespace retrograd
