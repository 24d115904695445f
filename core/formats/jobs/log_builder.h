#pragma once
// Working state of the readers of logs; only core/formats/jobs includes this.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/formats/jobs/job_log.h"
#include "core/formats/json/json_tree.h"

namespace retrograd::jobs {

/// Counts the ops of a graph by its lines, without reading it: cheap enough for a gigabyte. The number is the one that
/// the graph has when it is read: lines that name a result of another op, a constant, a body or a size are none, and
/// the ops of a body belong to the body.
class OpCounter {
 public:
  void line(std::string_view text);
  std::int64_t ops() const { return ops_; }

 private:
  /// Whether what is behind "=" is an op.
  bool makesOp(std::string_view right, std::string_view type) const;

  bool inClass_ = false;
  std::int64_t ops_ = 0;
  std::unordered_set<std::string>
      several_;  ///< nodes without a type: calls of several results, whose items are named below
};

/// What precedes a line of a log: "V1122 08:20:21.133000 11938 path.py:1850] ".
struct Envelope {
  std::optional<std::int64_t> rank;  ///< of "[rank0]:" in text logs
  std::string_view time, pid;
  std::string_view all;      ///< the envelope itself
  std::string_view content;  ///< behind it
};
std::optional<Envelope> readEnvelope(std::string_view line);

/// Whether a line is the first of a graph's text: "class GraphModule(torch.nn.Module):".
bool beginsGraph(std::string_view line);
/// What a record "recompile_reasons" says: one reason as text, or several as a list in JSON. First lines.
std::vector<std::string> recompileReasonsOf(std::string_view text);

/// Puts records into the tree of a log.
class LogBuilder {
 public:
  explicit LogBuilder(JobLog& log) : log_(log) {}

  /// The process that wrote with this id into this file.
  Process& process(std::size_t file, std::string_view pid);
  Attempt& attempt(Process& process, const CompileId& id, std::int64_t number);
  void addGraph(Process& process, const CompileId& id, std::int64_t attempt, const GraphRecord& graph);

  /// A record of a structured log. `payload`: its lines, where it has any.
  void addRecord(Process& process, const Json& record, std::uint64_t offset, std::string_view time);
  /// Which graph the payload of a record is; nullopt for other records.
  static std::optional<GraphKind> graphOf(const Json& record);
  static CompileId idOf(const Json& record);
  static std::int64_t attemptOf(const Json& record);
  void addCode(Process& process, const Json& record, OutputCodeRecord code);
  void addBreakReason(Process& process, const Json& record, std::string_view firstLine);
  void addRecompileReasons(Process& process, const CompileId& id, std::int64_t attempt, std::string_view text);

  /// Says what is missing; to be called once, at the end.
  void finish();

 private:
  Compile& compile(Process& process, const CompileId& id, bool starts);
  void addMetrics(Process& process, const Json& record, const Json& metrics, bool isBackward);
  void addStart(Process& process, const Json& record, const Json& start);

  JobLog& log_;
  std::map<std::pair<std::size_t, std::string>, std::size_t, std::less<>> processes_;
  std::map<std::pair<std::size_t, CompileId>, std::size_t> compiles_;           ///< of a process: its last of that id
  std::map<std::size_t, std::unordered_map<std::int64_t, std::string>> names_;  ///< "str" records of a process
};

/// Readers of the three forms. Each adds to `builder` what is in file number `file` of `log`.
void scanStructured(const JobLog& log, std::size_t file, LogBuilder& builder, const Progress& progress);
void scanText(const JobLog& log, std::size_t file, LogBuilder& builder, const Progress& progress);
void openFolder(const std::string& path, JobLog& log, LogBuilder& builder, const Progress& progress);

/// The compile that tlparse names a folder after ("-_0_0_0"), with the number of its attempt; nullopt for other names.
std::optional<std::pair<CompileId, std::int64_t>> compileOfFolder(std::string_view name);
/// The kind of graph by the name of its record ("aot_joint_graph").
std::optional<GraphKind> graphKindOfRecord(std::string_view name);

/// A line of a text log that belongs to an artifact: "... file.py:1844] [0/0] [__aot_joint_graph] TEXT".
struct TextLine {
  std::optional<std::int64_t> rank;
  std::string_view time, pid, compile;
  std::string_view header;  ///< all up to the artifact's "]": equal for the lines of one record
  std::string_view content;
};
/// nullopt for any other line.
std::optional<TextLine> readTextLine(std::string_view line);

/// The content as a line of the graph: "path/_lazy_graph_module.py class inner_f(torch.nn.Module):" has the name of a
/// file in front.
inline std::string_view textOfLine(const TextLine& line) {
  if (!line.content.ends_with("(torch.nn.Module):")) return line.content;
  const auto at = line.content.find("class ");
  const bool isHead = at != std::string_view::npos && line.content.find_first_not_of(' ') < at;
  return isHead ? line.content.substr(at) : line.content;
}

}  // namespace retrograd::jobs
