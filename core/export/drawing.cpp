// The graph as a picture: SVG, PNG, PDF, by the painter of the window where there is one.
#include "core/export/drawing.h"

#include "core/export/export.h"

namespace retrograd {
namespace {

GraphRenderer& renderer() {
  static GraphRenderer set = nullptr;
  return set;
}

template <DrawingFormat format>
void draw(const ExportRequest& request, ExportSink& sink, const Progress& progress) {
  if (!renderer())
    throw Error(ErrorCode::badUse,
                "pictures of the graph need the program built with its window (Qt); this one has none. --format dot "
                "writes the graph for Graphviz",
                "export");
  if (request.traces.size() != 1)
    throw Error(ErrorCode::badUse, "a picture shows one trace; name one with --show", "export");
  renderer()(request, format, sink, progress);
}

ExportFormat drawing(const char* name, const char* description,
                     void (*write)(const ExportRequest&, ExportSink&, const Progress&)) {
  return {.name = name,
          .description = description,
          .suffix = std::string(".") + name,
          .traces = {TraceKind::joint},
          .run = ExportFormat::Run::none,
          .writesBeside = false,
          .write = write,
          .isDrawing = true};
}

const ExportRegistration svg(drawing("svg", "the graph as a picture of lines and text", draw<DrawingFormat::svg>));
const ExportRegistration png(drawing("png", "the graph as a picture of pixels", draw<DrawingFormat::png>));
const ExportRegistration pdf(drawing("pdf", "the graph as a page", draw<DrawingFormat::pdf>));

}  // namespace

void setGraphRenderer(GraphRenderer set) { renderer() = set; }

}  // namespace retrograd
