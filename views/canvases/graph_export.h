#pragma once
#include <memory>

#include "core/export/export.h"
#include "views/canvases/graph_painter.h"
#include "views/canvases/graph_view.h"

namespace retrograd::views {

/// A graph to be drawn as a whole, with how it looks. Never changes once made, so it can be drawn off the UI thread.
struct GraphSheet {
  std::shared_ptr<const GraphPicture> picture;
  GraphLook look;
  QString title;
};

/// Boxes and lines at most of an SVG or a PDF: more make files that few programs open.
inline constexpr std::size_t mostDrawn = 60'000;
/// Pixels at most of a PNG. A larger graph is drawn smaller, down to `leastScale`, below which its text cannot be read.
inline constexpr double mostPixels = 64e6, leastScale = 0.3;

/// Lays out the trace of the request as its drawing says. Throws Error(badUse) for a module that the trace does not
/// have, Error(cancelled).
GraphSheet layOutSheet(const ExportRequest& request, const Progress& progress);
/// Draws it by the painter of the canvas, names of the lanes and the overlay's legend included. `scale`: pixels of a
/// PNG for each of the canvas. Throws Error(badUse), saying what to close or which format to take, for a graph that is
/// too large, Error(io) of the sink, Error(cancelled).
void drawSheet(const GraphSheet& sheet, DrawingFormat format, double scale, ExportSink& sink, const Progress& progress);

}  // namespace retrograd::views
