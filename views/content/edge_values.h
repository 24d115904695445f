#pragma once
#include <span>
#include <vector>

#include "core/layout/ways.h"

namespace retrograd::views {

/// The tensors that run along each line of a laid out graph, each once, ascending by id, and their bytes. Made on the
/// layout worker; never changed.
class EdgeValues {
 public:
  EdgeValues() = default;
  /// Linear in the ops' edges, but for one sort.
  explicit EdgeValues(const layout::Scene& scene, const Progress& progress = {});

  /// By edge of the scene. Empty for links to origins.
  std::span<const ValueId> of(std::int32_t line) const;
  std::int64_t bytes(std::int32_t line) const { return bytes_.empty() ? 0 : bytes_[line]; }

 private:
  std::vector<std::uint32_t> begin_;  ///< of each line's values, and the end of the last one's
  std::vector<ValueId> values_;
  std::vector<std::int64_t> bytes_;
};

}  // namespace retrograd::views
