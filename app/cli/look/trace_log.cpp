#include "app/cli/look/trace_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "app/cli/parsing/options.h"
#include "core/formats/files/mapped_file.h"
#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/input_sources.h"
#include "core/formats/jobs/job_log.h"
#include "core/formats/jobs/line_links.h"
#include "core/formats/kinds/file_kind.h"
#include "core/formats/listing/listing.h"
#include "core/formats/text/text_trace.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/print/json.h"
#include "core/trace/print/printer.h"

namespace retrograd::cli {
namespace {

struct Shown {
  TraceKind kind;
  jobs::GraphKind graph;
};
constexpr Shown all[] = {{TraceKind::computation, jobs::GraphKind::inference},
                         {TraceKind::joint, jobs::GraphKind::joint},
                         {TraceKind::forward, jobs::GraphKind::forward},
                         {TraceKind::backward, jobs::GraphKind::backward}};

/// A graph that was asked for by the name of its record, or the first of a compile that has no other.
const jobs::GraphRecord* otherGraph(const jobs::GraphChoice& choice) {
  if (choice.graph != nullptr) return choice.graph;
  const auto& graphs = choice.attempt->graphs;
  const auto isOther = [](const jobs::GraphRecord& graph) { return graph.kind == jobs::GraphKind::other; };
  return !graphs.empty() && std::all_of(graphs.begin(), graphs.end(), isOther) ? &graphs.front() : nullptr;
}

fx::Graph readRecord(const jobs::JobLog& log, const jobs::GraphRecord& record) {
  return fx::readGraph(jobs::payloadText(log, record.payload), jobs::placeOf(log, record.payload));
}

/// What to say where a compile lacks a graph that was asked for.
std::string whyMissing(const jobs::GraphChoice& choice, const std::string& show) {
  const auto compile = nameOf(*choice.compile);
  if (show != "computation" && choice.attempt->find(jobs::GraphKind::inference))
    return fmt::format(
        "this compile has no backward in the log: {} was compiled for inference, without gradients; --show computation "
        "prints its graph",
        compile);
  if (show == "computation")
    return fmt::format("compile {} has no inference graph in the log; choose joint, forward or backward with --show",
                       compile);
  const bool isAlone = choice.attempt->graphs.size() == 1 && choice.attempt->find(jobs::GraphKind::dynamo);
  return fmt::format(
      "compile {} has no {} graph in the log{}", compile, show,
      isAlone ? ", only Dynamo's: its backend made none, the compile failed, or its result came from a cache" : "");
}

/// How many outputs of joint or forward are the program's.
std::size_t resultsOf(const fx::Graph& graph, TraceKind kind, const fx::Graph* backward) {
  if (kind == TraceKind::forward) {
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      if (graph.outputs[i].descriptor.kind() == "SavedForBackwardsAOTOutput") return i;
    }
    const bool isDescribed = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                                         [](const auto& output) { return !output.descriptor.text.empty(); });
    if (isDescribed || backward == nullptr) return graph.outputs.size();
    std::size_t tangents = 0;
    for (const auto& input : backward->inputs) tangents += input.name.starts_with("tangents_");
    return graph.outputs.size() - std::min(graph.outputs.size(), backward->inputs.size() - tangents);
  }
  std::size_t primals = 0;
  for (const auto& input : graph.inputs)
    primals += !input.name.starts_with("tangents_") && input.descriptor.kind() != "TangentAOTInput";
  return graph.outputs.size() - std::min(graph.outputs.size(), primals);
}

/// The listing of a graph, with how its links were found in the notes.
jobs::Listing listingOf(const jobs::JobLog& log, const jobs::Attempt& attempt, const Shown& shown,
                        const jobs::GraphRecord& record) {
  const auto graph = readRecord(log, record);
  std::vector<std::string> notes;
  const auto* forwardRecord = attempt.find(jobs::GraphKind::forward);
  const auto* backwardRecord = attempt.find(jobs::GraphKind::backward);
  jobs::ListingOptions options;
  options.kind = shown.kind;
  for (const auto& [name, value] : jobs::sizeHints(log, attempt)) options.sizes[name] = value;
  if (shown.kind == TraceKind::joint) {
    options.backwardFrom = jobs::backwardBorder(graph);
    options.origins = jobs::linksByLine(graph, options.backwardFrom, graph);
  }
  if (shown.kind == TraceKind::backward && forwardRecord != nullptr) {
    const auto forward = readRecord(log, *forwardRecord);
    options.origins = jobs::linksByLine(forward, forward.nodes.size(), graph);
  }
  if (!options.origins.empty())
    notes.emplace_back("links from backward to forward are by line of Python: the text has no better ones");
  std::optional<fx::Graph> backward;
  if (shown.kind == TraceKind::forward && backwardRecord != nullptr) backward = readRecord(log, *backwardRecord);
  options.results = resultsOf(graph, shown.kind, backward ? &*backward : nullptr);
  auto listing = jobs::listingOf(graph, lookupSymbol, options);
  notes.insert(notes.end(), listing.notes.begin(), listing.notes.end());
  if (!options.sizes.empty()) {
    std::string sizes;
    for (const auto& [name, value] : options.sizes)
      sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", name, value);
    notes.push_back("sizes are those of the job: " + sizes);
  }
  listing.notes = std::move(notes);
  return listing;
}

/// What to print besides the traces.
struct About {
  std::string path, torchVersion;
  const Computation* computation = nullptr;  ///< null: the traces have none
  std::vector<Problem> problems;
  std::vector<std::string> notes;
};

/// Prints traces as text or as JSON.
void printTraces(const Document& document, const std::vector<const Trace*>& traces, const About& about, bool plain,
                 const std::string& format) {
  if (format == "json") {
    const Computation none;
    TraceDocumentInfo info{about.path, about.torchVersion, about.computation ? about.computation : &none,
                           nullptr,    about.problems,     about.notes};
    std::puts(dumpJson(traceDocument(document, traces, info)).c_str());
  } else {
    for (const auto& note : about.notes) fmt::print("# {}\n", note);
    PrintOptions printing;
    printing.source = !plain;
    printing.del = !plain;
    for (const auto* trace : traces) fmt::print("{}\n", printTrace(document, *trace, printing));
  }
  reportProblems(about.problems);
}

}  // namespace

bool traceDerivedText(const std::string& path, const std::string& show, bool plain, const std::string& format,
                      const Progress& progress) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const auto bytes = mapFile(path);
  const auto text = bytes.text();
  if (!looksLikeTraces(bytes) || text.starts_with("def computation(") || text.find("\ndef computation(") != text.npos)
    return false;
  const auto traces = readTextTraces(text, path, lookupSymbol, TextParts::all, progress);
  std::vector<const Trace*> list;
  for (const auto& trace : traces.derived)
    if (show == "all" || show == name(trace.kind)) list.push_back(&trace);
  if (list.empty()) badUse(fmt::format("the text has no {} trace", show), path);
  printTraces(*traces.document, list, {path, {}, nullptr, traces.problems, {}}, plain, format);
  return true;
}

int traceLog(const std::string& path, const std::string& compile, std::optional<std::int64_t> rank,
             const std::string& show, bool plain, const std::string& format, const Progress& progress) {
  const auto log = jobs::openJobLog(path, progress);
  const auto choice = jobs::chooseCompile(log, compile, rank);
  const auto* other = otherGraph(choice);
  bool any = false;
  for (const auto& shown : all) {
    if (show != "all" && show != name(shown.kind)) continue;
    const auto* record =
        shown.kind == TraceKind::computation && other != nullptr ? other : choice.attempt->find(shown.graph);
    if (choice.graph != nullptr && record != choice.graph) record = nullptr;
    if (record == nullptr) {
      if (show == "all") continue;
      badUse(whyMissing(choice, show), path);
    }
    const auto listing = listingOf(log, *choice.attempt, shown, *record);
    const bool isComputation = shown.kind == TraceKind::computation;
    const auto file = isComputation ? jobs::modelOf(listing, path) : ModelFile();
    printTraces(*listing.document, {&listing.trace},
                {path, choice.process->torchVersion, isComputation ? &file.computation : nullptr, listing.problems,
                 listing.notes},
                plain, format);
    any = true;
  }
  if (!any) badUse(whyMissing(choice, "ATen"), path);
  return allWell;
}

}  // namespace retrograd::cli
