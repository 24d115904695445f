#pragma once
#include <atomic>
#include <chrono>
#include <map>
#include <memory>

#include "core/stepping/run_breakpoints.h"
#include "views/engine/engine.h"

namespace retrograd::views {

/// A hand-made analysis: `layers` times linear and relu, with joint, forward and backward. Forward: t, addmm, relu per
/// layer; backward, in reverse: threshold_backward, mm, t, mm, sum per layer.
std::shared_ptr<const Analysis> syntheticAnalysis(int layers);

/// Runs nothing, but keeps a position and invents contents: enough for the window.
class FakeRunner : public Runner {
 public:
  explicit FakeRunner(std::shared_ptr<const Analysis> analysis)
      : analysis_(std::move(analysis)), breakpoints_(*analysis_) {}
  std::size_t position() const override { return position_; }
  StopReason runTo(std::size_t position, const Progress& progress) override;
  StopReason continueTo(std::size_t position, const Progress& progress) override;
  void restart() override { position_ = 0; }
  void setBreakpoints(std::vector<Breakpoint> breakpoints) override { breakpoints_.set(std::move(breakpoints)); }
  std::optional<Breakpoint> hitBreakpoint() const override {
    return breakpoints_.hit() ? std::optional(breakpoints_.hit()->breakpoint) : std::nullopt;
  }
  std::vector<std::int64_t> breakpointHits() override { return breakpoints_.hits(); }
  void setBreakOnBadNumber(bool on) override { breakOnBad_ = on; }
  ValueState state(ValueId value) const override;
  TensorStatistics statistics(ValueId value) const override;
  TensorData contents(ValueId value) const override;
  std::vector<std::int64_t> histogram(ValueId value, int bins) const override;
  void fill(ValueId value, double number) override { filled_[value] = number; }
  std::map<ValueId, double> fills() const override { return filled_; }
  std::vector<OpMeasure> measures() const override { return {}; }
  std::int64_t liveBytes() const override { return static_cast<std::int64_t>(position_) * 400; }
  std::int64_t peakBytes() const override { return 9000; }
  Session::HistoryState history() const override {
    return {static_cast<std::int64_t>(position_) * 100, historyBytes_, position_, 1};
  }
  void setHistoryBytes(std::int64_t bytes) override { historyBytes_ = bytes; }
  std::shared_ptr<const Moment> at(BoundSymbolId op, const Progress& progress) override;

  /// Position after which a NaN appears; -1: none.
  std::int64_t badAt = -1;
  /// How long one op of continueTo() takes, forward, and each of the 100 that at() makes again.
  std::chrono::milliseconds opTime{0};

 private:
  std::size_t size() const { return analysis_->forward.ops.size() + analysis_->backward.ops.size(); }
  BoundSymbolId opAt(std::size_t position) const;

  std::shared_ptr<const Analysis> analysis_;
  std::size_t position_ = 0;
  RunBreakpoints breakpoints_;  ///< those with a condition never stop
  std::int64_t historyBytes_ = SessionOptions().historyBytes;
  std::map<ValueId, double> filled_;
  std::atomic<bool> breakOnBad_ = false;
};

/// Opens "synthetic:<layers>"; other names are errors. A path that starts with "block" waits until it is cancelled.
class FakeEngine : public Engine {
 public:
  std::shared_ptr<const Analysis> open(const OpenRequest& request, const Progress& progress,
                                       const OnRead& onRead) override;
  std::vector<DeviceStatus> devices() override { return deviceList; }
  std::unique_ptr<Runner> run(std::shared_ptr<const Analysis> analysis) override;
  /// Values that ops from `badAt` on make are bad, in every element.
  RunRecord record(const Analysis& analysis, const std::map<ValueId, double>& fills, const Progress& progress) override;
  /// The same analysis under the other partition; each name in `recompute` saves 320 bytes.
  WhatIf whatIf(const Analysis& analysis, const PartitionOptions& partition, const std::vector<OpMeasure>& measures,
                const Progress& progress) override;

  /// One row for the first op: right, unless the range has more than three ops.
  GradientCheck checkGradients(const Analysis& analysis, const std::vector<BoundSymbolId>& ops,
                               const Progress& progress) override;
  /// A peak of 5000 bytes at the third op, a workspace of 600 at the fifth; fails where there are fewer.
  AllocatorPeak measureMemory(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) override;
  /// A row for each op of the joint; from the sixth on they differ where the counterpart is in another precision.
  /// Another file is an error.
  RunComparison compare(const Analysis& analysis, const Counterpart& counterpart, double tolerance,
                        const Progress& progress) override;

  std::int64_t badAt = -1;
  std::chrono::milliseconds opTime{0};
  std::vector<DeviceStatus> deviceList{{Device(), true, {}, {}}};
  std::vector<std::optional<Device>> asked;  ///< devices of the requests to open, in order
  std::vector<Counterpart> compared;         ///< of the comparisons, in order
};

}  // namespace retrograd::views
