#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace retrograd {

/// Keys that all ranks of a run see. Functions may throw when the rank that keeps them is gone.
class SharedKeys {
 public:
  virtual ~SharedKeys() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Sets the key where nobody has; returns what is there then.
  virtual std::string setOnce(const std::string& key, const std::string& value) = 0;
  virtual std::optional<std::string> find(const std::string& key) = 0;
  /// Values of keys that are all set.
  virtual std::vector<std::string> all(const std::vector<std::string>& keys) = 0;
};

/// Knows whether all ranks of a run are well. Each rank writes a sign of life twice a second and reads those of the
/// others, in threads of its own, so that a rank that computes for long counts as alive and one that was killed or
/// stopped does not. The first failure that is found or said is what every rank reports.
class Liveness {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// Gives this rank's first sign of life. Rank 0 keeps the keys. `silence`: for how long a rank may give none.
  Liveness(std::unique_ptr<SharedKeys> keys, int rank, int size, Milliseconds silence);
  ~Liveness();
  Liveness(const Liveness&) = delete;

  /// Begins to look after the others, all of whom have given their first sign.
  void watch();
  bool hasFailed() const;
  /// Says that `rank` failed, unless a failure is known already.
  void fail(int rank, const std::string& reason) noexcept;
  /// Why something that this rank waited for did not come: the failure that is known or becomes known within a moment,
  /// else `trouble`, which then is the failure that all hear of, of rank `suspect`. -1: it may be any rank, and time
  /// enough is given to notice a silent one.
  std::string explain(int suspect, const std::string& trouble);
  /// This rank is done: from now on it may be silent. A failure of its own is published first. Stays until the
  /// other ranks are done too or `linger` is over.
  void leave(Milliseconds linger);

  /// While it lives, `interrupt` is called, again and again, from the time at which a failure is known.
  class Interruption {
   public:
    Interruption(Liveness& liveness, std::function<void()> interrupt);
    ~Interruption();
    Interruption(const Interruption&) = delete;

   private:
    Liveness& liveness_;
    std::function<void()> interrupt_;
  };

 private:
  struct State;
  std::shared_ptr<State>
      state_;  // also the threads': one may hang in a request that nobody answers, and is then left behind
};

}  // namespace retrograd
