#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "core/base/tensor_statistics.h"
#include "core/derivation/analysis.h"
#include "core/stepping/breakpoint.h"
#include "core/stepping/moment.h"

namespace retrograd {

class RunFollower;

struct SessionOptions {
  /// What stepping back may keep, beyond what the run itself holds at its position; 0: a step back runs from the start.
  std::int64_t historyBytes = std::int64_t{1} << 30;
  int threads = 0;          ///< of LibTorch's kernels, throughout; 0: as the session file says, else as they are now
  bool synchronous = true;  ///< on a GPU: wait for each op, so that a failure is reported for the op that caused it
};

/// Runs an Analysis op by op, forward and then backward, in both directions. The one API under the window, `retrograd
/// run` and `retrograd check`. Lives on one thread (the one that owns LibTorch); not copyable.
///
/// The program is forward.ops followed by backward.ops; position p in [0, size()] means that ops [0, p) have run.
/// Values are released after their last use; parameters, inputs and the results stay. Loaded weights are never written:
/// the first write to one copies it. The session owns its generator, seeded with Analysis::seed, so two sessions do not
/// disturb each other.
class Session {
 public:
  /// Throws Error(badUse) where the analysis is for a GPU that is not there (torch/execution/device.h).
  explicit Session(std::shared_ptr<const Analysis> analysis, SessionOptions options = {});
  /// Throws as the constructor does where a weight or the device is missing, and makes nothing.
  static void requireRunnable(const Analysis& analysis);
  ~Session();

  const Analysis& analysis() const;
  std::size_t size() const;
  std::size_t forwardSize() const;  ///< the border: positions below run in the forward
  std::size_t position() const;
  BoundSymbolId opAt(std::size_t position) const;  ///< the op that runs next at `position`
  std::optional<std::size_t> positionOf(BoundSymbolId op) const;

  /// Runs one op. Throws Error(execution) naming the op; the position is then unchanged.
  StopReason step();
  /// Undoes one op: values, released values, in-place writes and the generator are as they were, bit for bit.
  /// Within `historyBytes` that may take running ops again: those that make what was let go or, where even that is too
  /// little, all from the start.
  StopReason stepBack(const Progress& progress = {});
  StopReason runTo(std::size_t position, const Progress& progress = {});  ///< either direction, breakpoints ignored
  /// Either direction, up to the first breakpoint or bad number that is met on the way, the one at the goal included.
  StopReason continueTo(std::size_t position, const Progress& progress = {});
  StopReason continueForward(const Progress& progress = {}) { return continueTo(size(), progress); }
  StopReason continueBackward(const Progress& progress = {}) { return continueTo(0, progress); }
  void restart();

  /// Replaces those set before; one that was there already, enabled or not, keeps its hits. Both directions stop at
  /// them: at an unconditional one before its op, at a conditional one right after the op that meets it. May be called
  /// by any thread: a run that goes on heeds it before its next op.
  void setBreakpoints(std::vector<Breakpoint> breakpoints);
  /// What the last continueTo() stopped at; nullopt where it stopped for another reason.
  const std::optional<BreakpointHit>& hitBreakpoint() const;
  /// How often each was met in this run, those let pass included.
  const std::vector<std::int64_t>& breakpointHits();
  /// Stop after an op that makes NaN, or Inf that the model does not mean (questions/intended_infinities.h); by any
  /// thread, as setBreakpoints().
  void setBreakOnBadNumber(bool on);

  ValueState state(ValueId value) const;
  /// Throws Error(badUse) where the value is not present.
  TensorStatistics statistics(ValueId value) const;
  /// A contiguous copy on the CPU. Throws as statistics().
  TensorData contents(ValueId value) const;
  /// Counts of `bins` equal cells between the least and the greatest finite element.
  std::vector<std::int64_t> histogram(ValueId value, int bins) const;
  /// Counts by power of two: zeros, subnormal numbers, 2^e <= |x| < 2^(e + 1) for e from -64 to 63 (the outermost also
  /// hold what lies beyond), infinities, NaN.
  std::vector<std::int64_t> magnitudes(ValueId value) const;

  /// Puts another content into a value that is present, its views included; what runs from here on sees it, and a step
  /// back over this place takes it back, as restart() does. Memory of the file is not written. Throws Error(badUse)
  /// where it is not present or shape or dtype differ.
  void setContents(ValueId value, const TensorData& contents);

  std::int64_t liveBytes() const;
  std::int64_t peakBytes() const;                  ///< highest liveBytes so far in this run
  const std::vector<OpMeasure>& measures() const;  ///< by position; those not run are zero

  /// What is kept for stepping back.
  struct HistoryState {
    std::int64_t bytes = 0, budget = 0;
    std::size_t entries = 0;
    std::size_t reruns = 0;  ///< ops that one step back runs again at most
  };
  HistoryState history() const;
  /// Another budget from here on; one that is smaller lets go of what is too much.
  void setHistoryBytes(std::int64_t bytes);
  int threads() const;  ///< that this session's ops run on

  /// Hears of what is run from here on (run_follower.h); null: nobody. It must live as long as the session, or until
  /// another is set.
  void setFollower(RunFollower* follower);

  /// After the end: gradients as "in.<user input>" and "p.<parameter>"; absent where there is none. A tied parameter's
  /// gradient is under its first name.
  TensorMap gradients() const;
  /// User outputs in order; nullopt for None, numbers, and before they are computed.
  std::vector<std::optional<TensorData>> results() const;
  TensorMap mutated() const;  ///< "b.<buffer>" and "in.<input>" that were written to

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace retrograd
