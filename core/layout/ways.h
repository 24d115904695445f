#pragma once
#include "core/layout/scene.h"

namespace retrograd::layout {

/// What is tied to a box: the lines that its values run along to and from it, through the frames they cross, and the
/// boxes at their ends.
struct Reach {
  std::vector<std::int32_t> edges;  ///< of the scene, ascending
  std::vector<std::int32_t> boxes;  ///< closed ones, ascending; the box itself is not among them
};

/// Op-exact: of what a frame's merged lines carry, only what this box makes or reads. Looks at `most` values at most.
Reach reachOf(const Scene& scene, std::int32_t box, std::size_t most = 4000);

/// Leads from the values that ops make for one another to the lines that they run along, of which a scene has one for
/// many. Holds for one scene. Made in time linear in its lines.
class LineIndex {
 public:
  explicit LineIndex(const Scene& scene);
  /// Calls `line(i)` for each line of the scene that the value of this edge runs along; through closed groups none
  /// runs.
  template <class Line>
  void forEachLine(const OpEdge& edge, const Line& line) const;
  /// Bytes of the values that run along each line, each value once; 0 for origin links. Linear in the ops' edges.
  std::vector<std::int64_t> bytes(const Progress& progress = {}) const;

 private:
  struct Key {
    std::int32_t group, from, to;
    std::uint8_t lane, kind;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      auto mix = static_cast<std::size_t>(key.group);
      for (auto part : {static_cast<std::size_t>(key.from), static_cast<std::size_t>(key.to),
                        static_cast<std::size_t>(key.lane * 8 + key.kind)})
        mix = mix * 0x9e3779b97f4a7c15ull + part + (mix >> 29);
      return mix;
    }
  };
  void find(const Key& key, std::vector<std::int32_t>& lines) const {
    const auto [begin, end] = lines_.equal_range(key);
    for (auto it = begin; it != end; ++it) lines.push_back(it->second);
  }
  std::vector<std::int32_t> linesOf(const OpEdge& edge) const;

  const Scene& scene_;
  std::unordered_multimap<Key, std::int32_t, Hash> lines_;
};

template <class Line>
void LineIndex::forEachLine(const OpEdge& edge, const Line& line) const {
  for (auto i : linesOf(edge)) line(i);
}

/// All ways along values from these ops to those, tree nodes both: the lines, and the closed boxes on them, those at
/// the ends among them. Empty where there is none. Linear in ops and edges.
Reach waysBetween(const Scene& scene, const std::vector<std::int32_t>& from, const std::vector<std::int32_t>& to);

}  // namespace retrograd::layout
