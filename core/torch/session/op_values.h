#pragma once
#include <functional>
#include <memory>

#include "core/derivation/analysis.h"
#include "core/stepping/moment.h"

namespace retrograd {

class RunFollower;

struct OpValuesOptions {
  std::int64_t bytes = std::int64_t{2} << 30;  ///< that may be kept
  int threads = 0;                             ///< as SessionOptions has it
  bool statistics = false;                     ///< of each value as it is made, for news()
};

/// Values of any op, wherever a session is and without moving it. Ops that the session runs are taken over
/// (`follower()`); ops that it has not reached are run ahead here, apart from it; what was let go is made again from
/// what is kept. Contents put in by hand hold here as they do in the session.
///
/// All is as a session has it that stops there, bit for bit, but for memory that ops leave uninitialised. Lives on the
/// thread that owns LibTorch.
class OpValues {
 public:
  explicit OpValues(std::shared_ptr<const Analysis> analysis, OpValuesOptions options = {});
  ~OpValues();

  /// To be given to Session::setFollower() before the session's first step.
  RunFollower& follower();

  std::size_t size() const;
  /// Ops [0, known()) have been run, here or by the session.
  std::size_t known() const;
  /// Runs ahead, so that known() is at least `position`. Throws Error(execution) naming the op that fails,
  /// Error(cancelled); what ran until then is kept.
  void runAhead(std::size_t position, const Progress& progress = {});
  /// The op's operands and outputs; of an op of the computation, before the first and after the last forward op that
  /// comes from it. Throws as runAhead() for what runs before it. Where the op itself fails, its outputs say why.
  std::shared_ptr<const Moment> at(BoundSymbolId op, const Progress& progress = {});
  /// One value: as its op made it, or as it was given. Throws as runAhead().
  std::shared_ptr<const Moment> of(ValueId value, const Progress& progress = {});

  /// What became known since the last call.
  RunNews news();
  /// Called on this thread when there is news, also in the midst of a session's run.
  void setOnNews(std::function<void()> onNews);

  void setBytes(std::int64_t bytes);
  /// False where the memory is too small to keep anything: each answer then runs from the start.
  bool keeps() const;
  std::int64_t bytes() const;
  /// How many values were let go, and the seconds that making one again takes at most, as its ops were measured.
  std::size_t letGo() const;
  double longest() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace retrograd
