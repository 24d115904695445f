#pragma once
#include <QColor>

namespace retrograd::views {

/// The colour of a pipeline stage: neighbours differ in hue and in lightness. Next to each is the stage's number, so
/// it is never the only sign. Eight colours, then from the first again.
QColor stageColor(int stage, bool dark);
/// The same, faint enough to write on.
QColor stageFill(int stage, bool dark);

}  // namespace retrograd::views
