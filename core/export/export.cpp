#include "core/export/export.h"

#include <algorithm>
#include <filesystem>

#include "core/formats/files/atomic_file.h"

namespace retrograd {
namespace {

std::vector<ExportFormat>& table() {
  static std::vector<ExportFormat> all;
  return all;
}

/// Collects small pieces, so that a line is not a system call.
class FileSink final : public ExportSink {
 public:
  explicit FileSink(const std::string& path) : file_(path) {}
  void write(std::string_view text) override {
    constexpr std::size_t most = std::size_t{1} << 18;
    pending_ += text;
    if (pending_.size() >= most) flush();
  }
  void commit() {
    flush();
    file_.commit();
  }

 private:
  void flush() {
    file_.write(pending_);
    pending_.clear();
  }
  AtomicFile file_;
  std::string pending_;
};

}  // namespace

ExportRegistration::ExportRegistration(ExportFormat format) {
  auto& all = table();
  const auto place = std::find_if(all.begin(), all.end(), [&](const ExportFormat& f) { return format.name < f.name; });
  all.insert(place, std::move(format));
}

const std::vector<ExportFormat>& exportFormats() { return table(); }

const ExportFormat* findExportFormat(std::string_view name) {
  for (const auto& format : table())
    if (format.name == name) return &format;
  return nullptr;
}

const ExportFormat* exportFormatOf(const std::string& path) {
  const auto suffix = std::filesystem::path(path).extension().string();
  for (const auto& format : table())
    if (!suffix.empty() && format.suffix == suffix) return &format;
  return nullptr;
}

std::vector<const Trace*> tracesOf(const Analysis& analysis, const std::vector<TraceKind>& kinds) {
  std::vector<const Trace*> found;
  const auto add = [&](TraceKind kind, const Trace& trace) {
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) found.push_back(&trace);
  };
  add(TraceKind::computation, analysis.computation().trace);
  if (analysis.derived()) {
    add(TraceKind::joint, analysis.joint);
    add(TraceKind::forward, analysis.forward);
    add(TraceKind::backward, analysis.backward);
  }
  if (found.empty())
    badUse("nothing was derived from the computation (see its problems); --show computation exports it",
           analysis.file.path);
  return found;
}

void exportTo(ExportSink& sink, const ExportFormat& format, const ExportRequest& request, const Progress& progress) {
  if (format.run == ExportFormat::Run::needed && request.measures.empty())
    badUse("the format shows a run, and none was made", format.name);
  if (format.writesBeside && request.path.empty())
    badUse("the format writes a second file next to the first and needs a file name (-o FILE)", format.name);
  format.write(request, sink, progress);
}

void writeWhole(const std::string& path, const std::function<void(ExportSink&)>& write) {
  FileSink sink(path);
  write(sink);
  sink.commit();
}

void exportFile(const ExportFormat& format, const ExportRequest& request, const Progress& progress) {
  writeWhole(request.path, [&](ExportSink& sink) {
    exportTo(sink, format, request, progress);
    progress.check();  // who cancels late gets no file either
  });
}

namespace {

GraphRenderer& renderer() {
  static GraphRenderer set = nullptr;
  return set;
}

template <DrawingFormat format>
void draw(const ExportRequest& request, ExportSink& sink, const Progress& progress) {
  if (!renderer())
    badUse(
        "pictures of the graph need the program built with its window (Qt); this one has none. --format dot "
        "writes the graph for Graphviz",
        "export");
  if (request.traces.size() != 1) badUse("a picture shows one trace; name one with --show", "export");
  renderer()(request, format, sink, progress);
}

ExportFormat drawing(const char* name, const char* description,
                     void (*write)(const ExportRequest&, ExportSink&, const Progress&)) {
  return {.name = name,
          .description = description,
          .suffix = std::string(".") + name,
          .traces = {TraceKind::joint},
          .write = write,
          .isDrawing = true};
}

const ExportRegistration svg(drawing("svg", "the graph as a picture of lines and text", draw<DrawingFormat::svg>));
const ExportRegistration png(drawing("png", "the graph as a picture of pixels", draw<DrawingFormat::png>));
const ExportRegistration pdf(drawing("pdf", "the graph as a page", draw<DrawingFormat::pdf>));

}  // namespace

void setGraphRenderer(GraphRenderer set) { renderer() = set; }

}  // namespace retrograd
