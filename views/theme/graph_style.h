#pragma once
#include <QColor>
#include <QPen>

#include "core/base/enum_array.h"
#include "core/layout/scene.h"

namespace retrograd::views {

/// Colours of the graph. Forward is blue and backward orange, apart for every kind of colour blindness; place, title
/// and dashes say as much.
struct GraphColors {
  QColor canvas, text, faint, frame, frameLine, frameText, shadow;
  struct Fill {
    QColor fill, line, accent;
  };
  Fill forward, backward, accumulation, recompute;
  EnumArray<layout::EdgeKind, QColor, layout::edgeKindCount> edge;
  QColor lit, selected, badge, badgeText;
};
/// With high contrast, boxes have the canvas's colour and strong lines.
GraphColors graphColors(bool dark, bool highContrast = false);

/// How a box of this role is filled.
const GraphColors::Fill& fillOf(const GraphColors& colors, Role role, layout::Lane lane);

/// The pen of an edge kind at a width in screen pixels: distinguished by dashes as well as by colour.
QPen edgePen(const GraphColors& colors, layout::EdgeKind kind, qreal width);
QString titleText(layout::EdgeKind kind);

}  // namespace retrograd::views
