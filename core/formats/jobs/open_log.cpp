#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/memory_account.h"
#include "core/base/number_text.h"
#include "core/formats/jobs/log_builder.h"

namespace retrograd::jobs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t looked = 256 * 1024;  // bytes in which a log has to show what it is

enum class Begins : std::uint8_t { other, structured, text };

Begins beginningOf(std::string_view text) {
  text = text.substr(0, looked);
  while (!text.empty()) {
    const auto line = takePart(text, '\n');
    const auto envelope = readEnvelope(line);
    if (!envelope) continue;
    if (envelope->content.starts_with("{\"")) return Begins::structured;
    if (readTextLine(line)) return Begins::text;
  }
  return Begins::other;
}

void addFile(const std::string& path, JobLog& log) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) == 0) {
    log.problems.push_back({Problem::Severity::warning, "an empty log: the process wrote nothing", path, -1});
    return;
  }
  log.files.push_back({path, mapFile(path)});
}

/// Log files of a folder and of a folder "trace" in it, in order of their names.
std::vector<std::string> logsIn(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const auto name = entry->path().filename().string();
    if (entry->is_regular_file(error) && (name.ends_with(".log") || name.ends_with(".txt")))
      found.push_back(entry->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool isTlparse(const std::string& folder) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->is_directory(error) && compileOfFolder(entry->path().filename().string())) return true;
  }
  return false;
}

std::string beginningOfFile(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) == 0 || error) return {};
  const auto region = mapFile(path);
  return std::string(region.text().substr(0, looked));
}

std::uint64_t bytesOf(const JobLog& log) {
  std::uint64_t bytes = 0;
  for (const auto& file : log.files) bytes += file.bytes.size;
  return bytes;
}

}  // namespace

bool looksLikeLog(std::string_view text) { return beginningOf(text) != Begins::other; }

bool isJobLog(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return looksLikeLog(beginningOfFile(path));
  if (isTlparse(path)) return true;
  for (const auto& folder : {path, path + "/trace"}) {
    const auto logs = logsIn(folder);
    if (std::any_of(logs.begin(), logs.end(), [](const auto& log) { return looksLikeLog(beginningOfFile(log)); }))
      return true;
  }
  return false;
}

JobLog openJobLog(const std::string& path, const Progress& progress) {
  JobLog log;
  log.path = path;
  LogBuilder builder(log);
  std::error_code error;
  const bool isFolder = fs::is_directory(path, error);
  if (isFolder && isTlparse(path)) {
    log.form = JobLog::Form::folder;
    openFolder(path, log, builder, progress);
  } else {
    auto paths = isFolder ? logsIn(path) : std::vector{path};
    if (isFolder) {
      for (auto& below : logsIn(path + "/trace")) paths.push_back(std::move(below));
    }
    for (const auto& file : paths) addFile(file, log);
    const ReadingScope scope(bytesOf(log));
    for (std::size_t i = 0; i < log.files.size(); ++i) {
      const auto begins = beginningOf(log.files[i].bytes.text());
      if (begins == Begins::other) {
        log.problems.push_back(
            {Problem::Severity::warning, "not a log of torch.compile; it is left out", log.files[i].path, -1});
        continue;
      }
      if (begins == Begins::text) log.form = JobLog::Form::text;
      begins == Begins::text ? scanText(log, i, builder, progress) : scanStructured(log, i, builder, progress);
    }
  }
  if (log.processes.empty()) {
    throw Error(ErrorCode::badInput,
                "no log of torch.compile: set TORCH_TRACE=FOLDER before the job starts and open FOLDER, or a file that "
                "TORCH_LOGS=aot_joint_graph,aot_graphs wrote",
                path);
  }
  builder.finish();
  return log;
}

std::string payloadText(const JobLog& log, const Payload& payload) {
  const auto all = log.files.at(payload.file).bytes.text();
  auto text = all.substr(std::min<std::uint64_t>(payload.offset, all.size()), payload.bytes);
  std::string out;
  if (payload.lines == Payload::Lines::plain) return std::string(text);
  out.reserve(text.size());
  std::string_view header;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (payload.lines == Payload::Lines::tabbed) {
      out.append(line.substr(std::min<std::size_t>(1, line.size()))).append(1, '\n');
      continue;
    }
    const auto read = readTextLine(line);
    if (!read) continue;
    if (header.empty()) header = read->header;
    if (read->header != header) continue;  // another process writes to the same log
    out.append(textOfLine(*read)).append(1, '\n');
  }
  return out;
}

std::string placeOf(const JobLog& log, const Payload& payload) {
  return fmt::format("{}:{}", log.files.at(payload.file).path, payload.line);
}

const GraphRecord* Attempt::find(GraphKind kind) const {
  const auto found =
      std::find_if(graphs.rbegin(), graphs.rend(), [&](const auto& graph) { return graph.kind == kind; });
  return found == graphs.rend() ? nullptr : &*found;
}

const GraphRecord* Attempt::findRecord(std::string_view record) const {
  const auto found = std::find_if(graphs.begin(), graphs.end(), [&](const auto& graph) {
    return graph.kind == GraphKind::other && graph.record == record;
  });
  return found == graphs.end() ? nullptr : &*found;
}

std::string nameOf(const GraphRecord& graph) {
  return graph.kind == GraphKind::other ? graph.record : std::string(name(graph.kind));
}

std::pair<int, int> placeAmongRecompiles(const Process& process, const Compile& compile) {
  int place = 0, count = 0;
  if (!compile.id.frame) return {1, 1};
  for (const auto& other : process.compiles) {
    if (other.id.frame != compile.id.frame || other.id.compiledAutograd != compile.id.compiledAutograd ||
        other.occurrence != compile.occurrence)
      continue;
    ++count;
    if (&other <= &compile) ++place;
  }
  return {place, count};
}

std::size_t JobLog::graphCount() const {
  std::size_t count = 0;
  for (const auto& process : processes) {
    for (const auto& compile : process.compiles) {
      for (const auto& attempt : compile.attempts) count += attempt.graphs.size();
    }
  }
  return count;
}

std::string toString(const CompileId& id) {
  const auto part = [](const auto& number) { return number ? std::to_string(*number) : std::string("-"); };
  std::string text;
  if (id.compiledAutograd) text = "!" + part(id.compiledAutograd);
  if (id.compiledAutograd && !id.frame) return text;
  return text + (text.empty() ? "" : "/") + part(id.frame) + "/" + part(id.compile);
}

std::string nameOf(const Compile& compile) {
  return toString(compile.id) + (compile.occurrence > 1 ? "#" + std::to_string(compile.occurrence) : "");
}

namespace {

bool isUsable(const Attempt& attempt) {
  return attempt.find(GraphKind::joint) || attempt.find(GraphKind::forward) || attempt.find(GraphKind::inference) ||
         attempt.find(GraphKind::dynamo) || attempt.find(GraphKind::other);
}

bool hasOps(const Attempt& attempt) {
  return attempt.find(GraphKind::forward) || attempt.find(GraphKind::joint) || attempt.find(GraphKind::inference);
}

/// The last attempt with ATen graphs, else the last with any.
const Attempt* lastUsable(const Compile& compile) {
  const Attempt* any = nullptr;
  for (auto attempt = compile.attempts.rbegin(); attempt != compile.attempts.rend(); ++attempt) {
    if (!isUsable(*attempt)) continue;
    if (hasOps(*attempt)) return &*attempt;
    if (any == nullptr) any = &*attempt;
  }
  return any;
}

std::string listOf(const JobLog& log, std::optional<std::int64_t> rank) {
  std::string list;
  for (const auto& process : log.processes) {
    if (rank && process.rank != rank) continue;
    for (const auto& compile : process.compiles) {
      if (lastUsable(compile) == nullptr) continue;
      if (!list.empty()) list += ", ";
      list += nameOf(compile) + (process.rank && !rank ? fmt::format(" of rank {}", *process.rank) : "");
    }
  }
  return list.empty() ? "none" : list;
}

}  // namespace

GraphChoice chooseCompile(const JobLog& log, const std::string& id, std::optional<std::int64_t> rank) {
  const auto underscore = id.rfind('_');
  const auto number = underscore == std::string::npos
                          ? std::nullopt
                          : numberIn<std::int64_t>(std::string_view(id).substr(underscore + 1));
  const auto wantedAttempt = number.value_or(-1);
  const auto wanted = number ? id.substr(0, underscore) : id;
  GraphChoice other;  // where nothing was asked for: of Dynamo's graph alone
  for (const auto& process : log.processes) {
    if (rank && process.rank != rank) continue;
    for (const auto& compile : process.compiles) {
      for (const auto& attempt : compile.attempts)
        if (const auto* graph = attempt.findRecord(id)) return {&process, &compile, &attempt, graph};
      if (!wanted.empty() && nameOf(compile) != wanted) continue;
      const auto* attempt = lastUsable(compile);
      if (number) {
        const auto found = std::find_if(compile.attempts.begin(), compile.attempts.end(),
                                        [&](const auto& a) { return a.number == wantedAttempt && isUsable(a); });
        attempt = found == compile.attempts.end() ? nullptr : &*found;
      }
      if (attempt == nullptr) continue;
      if (!id.empty() || hasOps(*attempt)) return {&process, &compile, attempt};
      if (other.attempt == nullptr) other = {&process, &compile, attempt};
    }
  }
  if (other.attempt != nullptr) return other;
  throw Error(ErrorCode::badUse,
              fmt::format("no graphs {}{}; compiles with graphs: {}",
                          wanted.empty() ? std::string("of any compile") : "of compile " + id,
                          rank ? fmt::format(" of rank {}", *rank) : "", listOf(log, rank)),
              log.path);
}

}  // namespace retrograd::jobs
