#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.h"

namespace retrograd {

struct ExportRequest;
class ExportSink;

enum class DrawingFormat : std::uint8_t { svg, png, pdf };

/// How the graph of a trace is drawn into a picture or a page.
struct GraphDrawing {
  bool dark = false;
  bool openAll = false;           ///< every group is open
  std::vector<std::string> open;  ///< paths of modules that are open, besides those that are open at first
  double scale = 1;               ///< pixels of a PNG for each of the canvas
};

/// Draws request.traces, which is one trace, as request.drawing says. Throws Error(badUse) for a module that is not
/// there and for a graph that is too large for the format, Error(cancelled).
using GraphRenderer = void (*)(const ExportRequest& request, DrawingFormat format, ExportSink& sink,
                               const Progress& progress);

/// Core has the formats and no painter: the window's part of a program brings one. Without it the formats are refused
/// with a reason.
void setGraphRenderer(GraphRenderer renderer);

}  // namespace retrograd
