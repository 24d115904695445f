#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/derivation/analysis.h"
#include "core/stepping/moment.h"

namespace retrograd {

/// Where an export goes, piece by piece, so that no format holds a large trace as one text.
class ExportSink {
 public:
  virtual ~ExportSink() = default;
  virtual void write(std::string_view text) = 0;
};

/// How the graph of a trace is drawn into a picture or a page.
struct GraphDrawing {
  bool dark = false;
  bool openAll = false;           ///< every group is open
  std::vector<std::string> open;  ///< paths of modules that are open, besides those that are open at first
  double scale = 1;               ///< pixels of a PNG for each of the canvas
};

/// What is exported. The analysis has traces of all kinds that `traces` lists.
struct ExportRequest {
  const Analysis& analysis;
  std::vector<const Trace*> traces;  ///< those to be shown, in order
  std::vector<OpMeasure> measures;   ///< of a run, by position of the joint; empty: none was made
  std::string path;                  ///< of the file to be written; empty: a stream, which has no file next to it
  GraphDrawing drawing;              ///< for the formats that are pictures
};

/// A format of `retrograd export`. A file of core/export/ adds one by a file-scope ExportRegistration.
struct ExportFormat {
  enum class Run : std::uint8_t {
    none,    ///< shows traces only
    wanted,  ///< has times where there was a run
    needed
  };
  std::string name;  ///< "csv", as in --to
  std::string description;
  std::string suffix;             ///< ".csv", from which a file name gives the format; empty: it does not
  std::vector<TraceKind> traces;  ///< those shown where none are asked for
  Run run = Run::none;
  bool writesBeside = false;  ///< needs a file's name: it writes another file next to it
  void (*write)(const ExportRequest&, ExportSink&, const Progress&) = nullptr;
  bool isDrawing = false;  ///< a picture of the graph: shows one trace, heeds ExportRequest::drawing
};

/// All formats, by name.
const std::vector<ExportFormat>& exportFormats();
/// Null where there is none of this name.
const ExportFormat* findExportFormat(std::string_view name);
/// The format that a file name's suffix names; null where none does.
const ExportFormat* exportFormatOf(const std::string& path);

struct ExportRegistration {
  explicit ExportRegistration(ExportFormat format);
};

/// The traces of these kinds that the analysis has, in the order computation, joint, forward, backward. Throws
/// Error(badUse) where it has none of them, because nothing could be derived.
std::vector<const Trace*> tracesOf(const Analysis& analysis, const std::vector<TraceKind>& kinds);

/// Writes `request.path` whole or not at all. Throws Error(io) naming the file and the reason, a full disk for one,
/// Error(badUse) where the format lacks what it needs (a run, a file name), Error(cancelled).
void exportFile(const ExportFormat& format, const ExportRequest& request, const Progress& progress = {});
/// Calls `write` with a sink for this file, which appears whole or not at all. Throws Error(io), and what `write`
/// throws.
void writeWhole(const std::string& path, const std::function<void(ExportSink&)>& write);
/// The same as exportFile() to a stream.
void exportTo(ExportSink& sink, const ExportFormat& format, const ExportRequest& request,
              const Progress& progress = {});

enum class DrawingFormat : std::uint8_t { svg, png, pdf };

/// Draws request.traces, which is one trace, as request.drawing says. Throws Error(badUse) for a module that is not
/// there and for a graph that is too large for the format, Error(cancelled).
using GraphRenderer = void (*)(const ExportRequest& request, DrawingFormat format, ExportSink& sink,
                               const Progress& progress);

/// Core has the formats and no painter: the window's part of a program brings one. Without it the formats are refused
/// with a reason.
void setGraphRenderer(GraphRenderer renderer);

}  // namespace retrograd
