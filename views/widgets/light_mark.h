#pragma once
#include <QPainter>

#include "views/findings/verdict_line.h"
#include "views/theme/theme.h"

namespace retrograd::views {

/// A disc with a cross, a triangle, a disc with a tick or a ring: shape and colour say the same.
void paintLight(QPainter& painter, const QRectF& area, Light light, const Colors& colors);
/// The colour of the mark, and the ground that the text next to it is read on.
QColor markColor(Light light, const Colors& colors);
QColor groundColor(Light light, const Colors& colors);

}  // namespace retrograd::views
