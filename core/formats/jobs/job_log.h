#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/formats/files/mapped_file.h"

namespace retrograd::jobs {

/// Which graph of a compile a record holds, in the order in which torch.compile makes them.
enum class GraphKind : std::uint8_t {
  dynamo,  ///< dynamo_output_graph: calls of torch functions
  beforePreGrad,
  afterPreGrad,
  joint,      ///< aot_joint_graph: ATen ops, forward and backward in one
  inference,  ///< aot_inference_graph: no backward is wanted
  forward,
  backward,
  runnable,  ///< fx_graph_runnable: a repro script
  beforePostGrad,
  postGrad,
  other  ///< any other record whose text is a graph: a pass of a training framework ("before_bucketing")
};
/// "joint", "forward", ..., as the command line takes and prints it.
std::string_view name(GraphKind kind);

/// Which compile a record is of: PyTorch's "0/0", "!1/0/0" with compiled autograd; "-/-" of graphs that belong to none.
struct CompileId {
  std::optional<std::int64_t> compiledAutograd, frame, compile;
  auto operator<=>(const CompileId&) const = default;
};
std::string toString(const CompileId& id);

/// Where the lines of a payload lie in a file, and what precedes each of them.
struct Payload {
  enum class Lines : std::uint8_t { plain, tabbed, prefixed };
  std::size_t file = 0;  ///< into JobLog::files
  std::uint64_t offset = 0, bytes = 0;
  Lines lines = Lines::plain;
  int line = 1;  ///< of its first line, in the file
};

struct GraphRecord {
  GraphKind kind = GraphKind::dynamo;
  std::string record{};  ///< of kind other: what its record is called, "make_fx_graph_traced"
  Payload payload;
  std::int64_t ops = 0;  ///< of the graph as it is read, without those of its bodies
  bool damaged = false;  ///< cut off, or not what was written: its checksum differs
};

/// Code that Inductor wrote for a graph, in a file of its own.
struct OutputCodeRecord {
  std::string file;  ///< its name, without folders
  Payload payload;
};

/// One try of a compile: Dynamo starts again where it meets what it cannot trace.
struct Attempt {
  std::int64_t number = 0;
  std::string time;                 ///< "1122 08:20:21.133000" of its first record; empty where it is not recorded
  std::vector<GraphRecord> graphs;  ///< in the order of the log
  std::vector<OutputCodeRecord> code;
  std::vector<std::uint64_t>
      descriptions;  ///< offsets of describe_tensor, describe_source and create_symbol records in `file`
  std::size_t file = 0;
  std::string failType, failReason;           ///< as its metrics say; empty where it did not fail
  std::vector<std::string> restarts;          ///< why Dynamo started again, first lines
  std::string graphBreak;                     ///< why the graph ends early, first line
  std::vector<std::string> recompileReasons;  ///< why the function was compiled again: the guards of earlier compiles
                                              ///< that failed, first lines
  std::optional<double> seconds, backendSeconds, backwardSeconds;  ///< of the compile

  const GraphRecord* find(GraphKind kind) const;                 ///< the last of that kind; null where there is none
  const GraphRecord* findRecord(std::string_view record) const;  ///< the first of kind other that is called so
};

struct Compile {
  CompileId id;
  int occurrence = 1;          ///< 2 and up where the process counted from 0 once more (torch._dynamo.reset())
  std::string function, file;  ///< of the Python function that is compiled
  int line = 0;
  std::vector<Attempt> attempts;
};

/// What one process wrote.
struct Process {
  std::optional<std::int64_t> rank;
  std::string pid;
  std::size_t file = 0;
  std::string torchVersion;
  std::vector<Compile> compiles;
  std::size_t records = 0;
  std::vector<Problem> problems;  ///< what is missing or cannot be read, each with its line
};

struct LogFile {
  std::string path;
  ByteRegion bytes;
};

/// The logs of a job as a tree of processes, compiles, attempts and graphs. Payloads stay in their files.
struct JobLog {
  enum class Form : std::uint8_t { structured, text, folder };
  std::string path;
  Form form = Form::structured;
  std::vector<LogFile> files;
  std::vector<Process> processes;  ///< by rank, those without one first
  std::vector<Problem> problems;

  std::size_t graphCount() const;
};

/// Whether these bytes begin as a structured trace log, or a text log with graphs, does.
bool looksLikeLog(std::string_view text);
/// Whether opening `path` as a log makes sense: a file that looksLikeLog(), or a folder that holds one, or that tlparse
/// wrote. Cheap.
bool isJobLog(const std::string& path);

/// Opens a log, a folder of logs (one a process), or a folder that tlparse wrote. Reads each file once; memory does not
/// grow with the payloads. What cannot be read is a Problem and the rest is there. Throws Error(badInput) where nothing
/// is a log, Error(cancelled).
JobLog openJobLog(const std::string& path, const Progress& progress = {});

/// The text of a graph.
std::string payloadText(const JobLog& log, const Payload& payload);
/// "dedicated_log.log:351", for errors.
std::string placeOf(const JobLog& log, const Payload& payload);

/// A graph within the tree.
struct GraphChoice {
  const Process* process = nullptr;
  const Compile* compile = nullptr;
  const Attempt* attempt = nullptr;
  const GraphRecord* graph = nullptr;  ///< where one of kind other was asked for by the name of its record
};

/// "joint", and of kind other the name of its record.
std::string nameOf(const GraphRecord& graph);
/// How often the function of this compile was compiled in its process, and the place of this one among them, from 1.
std::pair<int, int> placeAmongRecompiles(const Process& process, const Compile& compile);

/// "0/0", "0/0#2" for its second occurrence.
std::string nameOf(const Compile& compile);

/// The attempt that `id` names ("0/0", "0/0#2", "0/0_1" for an attempt, "make_fx_graph_traced" for a graph of kind
/// other; empty: the first compile with a joint, inference or forward graph, else the first with any), of the process
/// of `rank` (absent: the first that has it). Without an attempt it is the last that has graphs. Throws Error(badUse)
/// listing what there is.
GraphChoice chooseCompile(const JobLog& log, const std::string& id, std::optional<std::int64_t> rank = {});

}  // namespace retrograd::jobs
