// A folder that tlparse made: payloads as files, in a folder for each compile; raw.jsonl has the records without them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/base/memory_account.h"
#include "core/base/number_text.h"
#include "core/formats/files/reading_limit.h"
#include "core/formats/jobs/log_builder.h"

namespace retrograd::jobs {
namespace {

namespace fs = std::filesystem;

struct GraphFile {
  std::int64_t number = 0;  ///< counts all artifacts of the folder, in the log's order
  GraphKind kind = GraphKind::dynamo;
  std::string record;  ///< what it is called
  std::string path;
};

bool holdsGraph(const fs::path& path) {
  requireReadable(path.string());
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && beginsGraph(line);
}

/// "aot_joint_graph_5.txt"; any other whose text is a graph.
std::optional<GraphFile> graphFileOf(const fs::path& path) {
  auto stem = path.stem().string();
  if (path.extension() != ".txt") return std::nullopt;
  const auto underscore = stem.rfind('_');
  if (underscore == std::string::npos) return std::nullopt;
  const auto number = numberIn<std::int64_t>(std::string_view(stem).substr(underscore + 1));
  const auto record = stem.substr(0, underscore);
  const auto kind = graphKindOfRecord(record);
  if (!number || (!kind && !holdsGraph(path))) return std::nullopt;
  return GraphFile{*number, kind.value_or(GraphKind::other), kind ? std::string() : record, path.string()};
}

std::vector<fs::path> entriesOf(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    paths.push_back(entry->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// "recompile_reasons_3.json"
void addRecompileReasons(const fs::path& folder, const CompileId& id, std::int64_t attempt, LogBuilder& builder) {
  for (const auto& path : entriesOf(folder)) {
    std::error_code error;
    if (!path.filename().string().starts_with("recompile_reasons_") || fs::file_size(path, error) == 0 || error)
      continue;
    builder.addRecompileReasons(builder.process(0, "-"), id, attempt, mapFile(path.string()).text());
  }
}

void addGraphs(const fs::path& folder, const CompileId& id, std::int64_t attempt, JobLog& log, LogBuilder& builder) {
  std::vector<GraphFile> files;
  for (const auto& path : entriesOf(folder)) {
    if (auto file = graphFileOf(path)) files.push_back(std::move(*file));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  for (const auto& file : files) {
    std::error_code error;
    if (fs::file_size(file.path, error) == 0 || error) {
      log.problems.push_back({Problem::Severity::warning, "an empty file instead of a graph", file.path, -1});
      continue;
    }
    log.files.push_back({file.path, mapFile(file.path)});
    const auto text = log.files.back().bytes.text();
    OpCounter counter;
    for (auto left = text; !left.empty();) counter.line(takePart(left, '\n'));
    GraphRecord graph;
    graph.kind = file.kind;
    graph.record = file.record;
    graph.payload = {log.files.size() - 1, 0, text.size(), Payload::Lines::plain, 1};
    graph.ops = counter.ops();
    builder.addGraph(builder.process(0, "-"), id, attempt, graph);
  }
}

void readRecords(JobLog& log, std::size_t file, LogBuilder& builder, const Progress& progress) {
  const auto all = log.files[file].bytes.text();
  std::size_t unreadable = 0;
  const ReadingScope scope(all.size());
  for (std::size_t at = 0; at < all.size();) {
    const auto end = std::min(all.find('\n', at), all.size());
    const auto line = all.substr(at, end - at);
    const auto offset = at;
    at = end + 1;
    progress.check();
    if (line.empty()) continue;
    try {
      const JsonTree tree(line);
      if (!tree.root().isObject()) continue;
      builder.addRecord(builder.process(file, "-"), tree.root(), offset, tree.root().textAt("timestamp"));
    } catch (const Error& e) {
      if (e.code() != ErrorCode::badInput) throw;
      ++unreadable;
    }
  }
  if (unreadable > 0)
    log.problems.push_back({Problem::Severity::warning,
                            fmt::format("{} lines are not whole JSON; they are left out", unreadable),
                            log.files[file].path, -1});
}

}  // namespace

void openFolder(const std::string& path, JobLog& log, LogBuilder& builder, const Progress& progress) {
  const auto records = fs::path(path) / "raw.jsonl";
  std::error_code error;
  if (fs::is_regular_file(records, error) && fs::file_size(records, error) > 0) {
    log.files.push_back({records.string(), mapFile(records.string())});
    readRecords(log, 0, builder, progress);
  } else {
    log.problems.push_back(
        {Problem::Severity::note, "no raw.jsonl: times, failures and the names of inputs are unknown", path, -1});
  }
  for (const auto& entry : entriesOf(path)) {
    progress.check();
    const auto id = compileOfFolder(entry.filename().string());
    if (!id || !fs::is_directory(entry, error)) continue;
    addGraphs(entry, id->first, id->second, log, builder);
    addRecompileReasons(entry, id->first, id->second, builder);
  }
}

}  // namespace retrograd::jobs
