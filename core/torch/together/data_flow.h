#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/questions/ranks/meetings.h"

namespace retrograd {

/// What memory depends on, op by op. Weights depend on nothing: they are where a step begins.
class DataFlow {
 public:
  explicit DataFlow(const RankStep& step);

  /// Whether a tensor that the op at this position reads depends on a collective of numbers that depend on the batch.
  bool isMixed(std::size_t position) const { return mixed_[position]; }
  /// Collectives of forwards whose operands depend on the batch, if the loss depends on such.
  const std::vector<std::size_t>& mixing() const { return mixing_; }

 private:
  static constexpr char ofData = 1, ofRanks = 2;

  std::vector<char> mixed_;
  std::vector<std::size_t> mixing_;
};

/// The collectives that memory goes through, from an op to another one, both positions of the run.
std::vector<std::size_t> collectivesBetween(const RankStep& step, ValueId from, std::size_t begin, std::size_t end);

}  // namespace retrograd
