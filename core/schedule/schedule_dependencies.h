#pragma once
#include <cstdint>
#include <vector>

#include "core/schedule/schedule.h"

namespace retrograd {

/// What an action that has run completes: B does what I and W do together. Transfers count where they arrive or leave.
struct Fact {
  ActionKind kind;  ///< never backward or overlap
  std::int32_t stage, microbatch;

  std::uint64_t key() const {
    return static_cast<std::uint64_t>(kind) << 56 | static_cast<std::uint64_t>(stage) << 28 |
           static_cast<std::uint64_t>(microbatch + 1);
  }
};

/// What has to be done before an action of a schedule can start. In a schedule that has transfers, a stage waits for
/// the receipt on its own rank; in one that has none, for the other stage itself.
class ScheduleDependencies {
 public:
  /// `schedule` must outlive this.
  explicit ScheduleDependencies(const Schedule& schedule);

  /// What `action` needs, a forward's before a backward's; of an overlap, what its parts need from outside.
  std::vector<Fact> needs(const Action& action) const;
  /// The actions that are done when `action` is.
  static std::vector<Fact> does(const Action& action);
  bool hasTransfers() const { return hasTransfers_; }
  /// Stages that feed `stage`, and stages that it feeds.
  const std::vector<std::int32_t>& sources(std::int32_t stage) const { return sources_[stage]; }
  const std::vector<std::int32_t>& consumers(std::int32_t stage) const { return consumers_[stage]; }
  /// Whether both stages are on one rank, so that what one makes is there for the other.
  bool together(std::int32_t a, std::int32_t b) const;

 private:
  void addNeeds(const Action& action, std::vector<Fact>& needs) const;

  const Schedule& schedule_;
  std::vector<std::vector<std::int32_t>> sources_, consumers_;
  bool hasTransfers_ = false;
};

}  // namespace retrograd
