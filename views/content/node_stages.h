#pragma once
#include <QString>
#include <map>
#include <vector>

#include "core/base/enum_array.h"
#include "core/layout/scene.h"
#include "views/stages/stage_cut.h"

namespace retrograd::views {

/// The pipeline stages of the boxes of one graph, groups included.
class NodeStages {
 public:
  NodeStages(const layout::GraphTree& tree, const StageCut& cut);

  /// The stage that all ops of a box in this lane are in; -1 where they are in several, or in none.
  int only(std::int32_t node, layout::Lane lane) const;
  /// "stage 2", "stages 0 to 2"; empty where no op is in a stage.
  QString text(std::int32_t node, layout::Lane lane) const;
  /// "0 \u25b8 1: 3.1 MiB" for an edge between boxes of two stages; empty for all others. Found once an edge of a
  /// scene.
  QString edgeText(const layout::Scene& scene, std::int32_t edge) const;

 private:
  struct Range {
    int first = -1, last = -1;
    void add(const Range& other);
  };
  const Range& range(std::int32_t node, layout::Lane lane) const { return ranges_[node][lane]; }
  QString makeEdgeText(const layout::Scene& scene, const layout::SceneEdge& edge) const;

  const layout::GraphTree& tree_;
  std::vector<layout::LaneArray<Range>> ranges_;
  mutable const layout::Scene* scene_ = nullptr;  ///< whose edges the texts are of
  mutable std::map<std::int32_t, QString> edgeTexts_;
};

}  // namespace retrograd::views
