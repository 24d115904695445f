#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/judge/report.h"
#include "core/questions/memory_join/traced_step.h"
#include "core/questions/run_record.h"
#include "core/questions/update_numbers.h"
#include "core/stepping/moment.h"
#include "core/torch/execution/device.h"
#include "core/torch/experiments/compare_runs.h"
#include "core/torch/experiments/counterpart.h"
#include "core/torch/experiments/grad_check.h"
#include "core/torch/experiments/passes.h"
#include "core/torch/experiments/what_if.h"
#include "core/torch/opening/open_model.h"
#include "core/torch/session/allocator_peak.h"

namespace retrograd::views {

class PipelineEngine;

/// A debugging session as the window needs it: the functions of Session of the same names. Lives on the worker; what
/// stops it may be set by any thread, as there.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::size_t position() const = 0;
  virtual StopReason runTo(std::size_t position, const Progress&) = 0;
  virtual StopReason continueTo(std::size_t position, const Progress&) = 0;
  virtual void restart() = 0;
  virtual void setBreakpoints(std::vector<Breakpoint> breakpoints) = 0;
  virtual std::optional<Breakpoint> hitBreakpoint() const = 0;
  virtual std::vector<std::int64_t> breakpointHits() = 0;
  virtual void setBreakOnBadNumber(bool on) = 0;
  virtual ValueState state(ValueId) const = 0;
  virtual TensorStatistics statistics(ValueId) const = 0;
  virtual TensorData contents(ValueId) const = 0;
  virtual std::vector<std::int64_t> histogram(ValueId, int bins) const = 0;
  /// As setContents(), with the same number in every element.
  virtual void fill(ValueId, double number) = 0;
  /// What was filled on the way to the present position.
  virtual std::map<ValueId, double> fills() const = 0;
  virtual std::vector<OpMeasure> measures() const = 0;
  virtual std::int64_t liveBytes() const = 0;
  virtual std::int64_t peakBytes() const = 0;
  virtual Session::HistoryState history() const = 0;
  virtual void setHistoryBytes(std::int64_t bytes) = 0;

  // As OpValues: what is not known of the run is run ahead, apart from the position. By default there is only what is
  // there at the present position.
  virtual std::shared_ptr<const Moment> at(BoundSymbolId op, const Progress& progress);
  virtual std::shared_ptr<const Moment> of(ValueId value, const Progress& progress);
  /// Runs ahead until it is known up to `position`. `memory`: bytes that ops may take meanwhile; 0: all that there is.
  virtual void runAhead(std::size_t /*position*/, std::int64_t /*memory*/, const Progress&) {}
  /// Ops [0, known()) of the run are known.
  virtual std::size_t known() const { return 0; }
  virtual RunNews news() { return {}; }
  /// Called on the worker whenever there is news, also in the midst of a run.
  virtual void setOnNews(std::function<void()>) {
  }  // NOLINT(performance-unnecessary-value-param): who overrides it keeps it
  virtual void setKeptBytes(std::int64_t) {}
  virtual std::int64_t keptBytes() const { return 0; }
};

/// Two tensors element by element, in double precision, over elements that are finite in both.
struct ValueDifference {
  std::string failure;           ///< why they cannot be compared: "shapes differ"; empty where they can
  bool identical = false;        ///< bit for bit
  std::int64_t different = 0;    ///< elements
  std::int64_t oneFinite = 0;    ///< elements that are finite in one only
  double largest = 0, mean = 0;  ///< of |a - b|
  double relative = 0;           ///< `largest` by the greatest magnitude of either
  double cosine = 0;             ///< of the angle between them
  std::int64_t place = -1;       ///< index of the element that differs most, row by row
};

/// What is behind the window: opens files and runs them. Called on the worker only. Tests put their own in its
/// place.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual ValueDifference compareValues(const TensorData&, const TensorData&) {
    return {.failure = "nothing can be compared here"};
  }
  /// Bytes that this process may still take; 0 where that is not known.
  virtual std::int64_t freeMemory() const { return 0; }
  /// Nothing was asked for a while: memory that is only kept for the next run goes back to the system.
  virtual void rest() {}
  /// Reports on the worker what was read, before anything is derived from it; its argument grows afterwards.
  using OnRead = retrograd::OnRead;
  /// Throws Error as openModel() does. `onRead` may be empty, and is not called where a file brings what was derived
  /// along.
  virtual std::shared_ptr<const Analysis> open(const OpenRequest&, const Progress&, const OnRead& onRead) = 0;
  /// As saveSession(), with the notes that are kept for `opened`, the file that the analysis was read from. `embed`:
  /// the weights go into the file.
  virtual void save(const Analysis&, const std::string& /*opened*/, const std::string& path, bool /*embed*/,
                    const Progress&) {
    throw Error(ErrorCode::badUse, "nothing can be saved here", path);
  }
  /// Where models can be run, and why not elsewhere; the CPU first. May take a second: it asks the driver.
  virtual std::vector<DeviceStatus> devices() { return {{Device(), true, {}, {}}}; }
  /// Throws Error where the analysis cannot be run.
  virtual std::unique_ptr<Runner> run(std::shared_ptr<const Analysis>) = 0;
  /// As recordRun(): a run of its own, not the Runner's, with these values filled as soon as they are there.
  virtual RunRecord record(const Analysis&, const std::map<ValueId, double>& fills, const Progress&) = 0;
  /// As the function of this name.
  virtual WhatIf whatIf(const Analysis&, const PartitionOptions&, const std::vector<OpMeasure>&, const Progress&) = 0;
  /// Times of one run of its own from start to end, by position of the joint.
  virtual std::vector<OpMeasure> measure(const std::shared_ptr<const Analysis>& analysis, const Progress&) {
    throw Error(ErrorCode::badUse, "nothing can be run here", analysis->file.path);
  }
  /// As passesOf().
  virtual PassTraces passes(const Analysis& analysis, const Progress&) {
    throw Error(ErrorCode::badUse, "nothing can be derived here", analysis.file.path);
  }
  virtual GradientCheck checkGradients(const Analysis&, const std::vector<BoundSymbolId>& ops, const Progress&) = 0;
  /// As the functions of these names, of a recorded step.
  virtual Report judgeStep(const std::shared_ptr<const Analysis>&, const Progress&) { return {}; }
  virtual std::map<std::string, UpdateNumbers> lastUpdates(const std::shared_ptr<const Analysis>&, const Progress&) {
    return {};
  }
  /// As allocatorPeak().
  virtual AllocatorPeak measureMemory(const std::shared_ptr<const Analysis>&, const Progress&) = 0;
  /// What a step of the document allocates on a GPU, whatever it is run on: a log's own graphs, or a derivation for
  /// CUDA. Here it is the open analysis'.
  virtual TracedStep gpuStep(const Analysis& analysis, const OpenRequest&, const Progress&) {
    return tracedStep(analysis);
  }
  /// As compareRuns(), with the counterpart opened for it.
  virtual RunComparison compare(const Analysis&, const Counterpart&, double tolerance, const Progress&) = 0;
  /// Runs pipeline stages (pipeline_engine.h); null where nothing can.
  virtual PipelineEngine* pipelines() { return nullptr; }
};

/// The engine over LibTorch, with registered gradient rules where there are some; in a build without LibTorch, one
/// whose open() throws Error(badUse) saying so.
std::shared_ptr<Engine> liveEngine(std::shared_ptr<const RuleRegistry> rules = {});

}  // namespace retrograd::views
