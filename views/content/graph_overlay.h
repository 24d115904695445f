#pragma once
#include <QColor>
#include <QString>
#include <array>
#include <memory>
#include <vector>

#include "core/base/enum_array.h"
#include "core/layout/scene.h"
#include "views/content/node_stages.h"
#include "views/session/document_controller.h"
#include "views/theme/overlay_colors.h"

namespace retrograd::views {

/// The facts that the boxes of a graph show in addition.
enum class Overlay : std::uint8_t { role, time, bytes, saved, gradient, health, dtype, device, stage };
inline constexpr std::array overlays{Overlay::role,  Overlay::time,     Overlay::bytes,
                                     Overlay::saved, Overlay::gradient, Overlay::health,
                                     Overlay::dtype, Overlay::device,   Overlay::stage};
QString titleText(Overlay overlay);
QString toolTipText(Overlay overlay);
/// Whether it shows what a run measures or finds, and so is out of date when a run has gone on.
inline bool followsTheRun(Overlay overlay) {
  return overlay == Overlay::time || overlay == Overlay::gradient || overlay == Overlay::health;
}

/// One overlay over one graph: a colour and words for each box, so that it is never colour alone. Sums of groups are
/// made once.
class GraphOverlay {
 public:
  /// `cut`, which may be null, is for Overlay::stage.
  GraphOverlay(Overlay overlay, std::shared_ptr<const layout::GraphTree> tree,
               std::shared_ptr<const OpenDocument> document, const ExecutionState& execution, const RunNumbers& numbers,
               std::shared_ptr<const StageCut> cut, bool dark);

  Overlay kind() const { return kind_; }
  /// Instead of a box's second line; empty where there is nothing to show.
  QString text(std::int32_t node, layout::Lane lane) const;
  /// Invalid where the box keeps its own colour.
  QColor fill(std::int32_t node, layout::Lane lane) const;

  /// What an edge between two boxes of the scene takes over the border of a stage; empty for one that stays inside.
  QString edgeText(const layout::Scene& scene, std::int32_t edge) const;

  struct Entry {
    QColor color;
    QString text;
  };
  const std::vector<Entry>& legend() const { return legend_; }

 private:
  /// Of an op alone. For dtype its number, for device its place in `devices_`; -1 where it has none.
  double amountOf(BoundSymbolId op, const RunNumbers& numbers);
  /// Of a group, of which `amount` was known so far, with one more of its parts.
  double joined(double amount, double part) const;
  /// The amounts of all nodes.
  void sumUp(const ExecutionState& execution, const RunNumbers& numbers);
  void setSteps();
  int stepOf(double amount) const;
  std::vector<Entry> makeLegend() const;

  Overlay kind_;
  std::shared_ptr<const layout::GraphTree> tree_;
  std::shared_ptr<const OpenDocument> document_;
  OverlayColors colors_;
  std::set<ValueId> badValues_;
  std::set<BoundSymbolId> badOps_;
  std::vector<layout::LaneArray<double>> amounts_;
  double most_ = 0;                                   ///< of an op
  std::array<double, OverlayColors::steps> least_{};  ///< amount from which each step of colours is
  std::vector<Entry> legend_;
  std::vector<Device> devices_;  ///< that ops of the graph are on, in the order in which they are met
  std::shared_ptr<const StageCut> cut_;
  std::unique_ptr<NodeStages> stages_;  ///< for Overlay::stage, where there is a cut
};

}  // namespace retrograd::views
