#include "core/questions/memory_join/job_step.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/op_name.h"
#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/input_sources.h"
#include "core/formats/jobs/job_log.h"
#include "core/formats/jobs/line_links.h"
#include "core/formats/listing/listing.h"
#include "core/questions/memory_join/output_code.h"

namespace retrograd {
namespace {

/// A graph of the job as its own text and as a trace.
struct JobGraph {
  fx::Graph text;
  jobs::Listing listing;
};

class JobStepBuilder {
 public:
  JobStepBuilder(const JobGraph& forward, const JobGraph& backward) : forward_(forward), backward_(backward) {}

  /// `code`: what Inductor wrote, by the names of its files.
  TracedStep run(const std::map<std::string, OutputCode>& code) {
    for (const auto& input : backward_.text.inputs) saved_.insert(input.name);
    for (const auto& output : forward_.listing.trace.outputs)
      if (output) results_.insert(forward_.listing.document->displayName(output));
    for (const auto& output : backward_.listing.trace.outputs)
      if (output) gradients_.insert(backward_.listing.document->displayName(output));
    step_.forwardCount = forward_.text.nodes.size();
    add(forward_, 0);
    add(backward_, 1);
    for (const auto& [file, what] : code) addCode(file, what);
    return std::move(step_);
  }

 private:
  std::size_t nodeOf(const JobGraph& graph, const std::unordered_map<std::string, std::size_t>& nodes,
                     BoundSymbolId op) const {
    const auto& document = *graph.listing.document;
    std::size_t first = graph.text.nodes.size();
    const auto see = [&](const std::string& name) {
      if (const auto found = nodes.find(name); found != nodes.end()) first = std::min(first, found->second);
    };
    see(std::string(document.text(document.boundSymbol(op).name)));
    for (const auto output : document.outputs(op)) see(document.displayName(output));
    return first;
  }

  /// The node itself where the op's results are taken out of it by nodes of their own.
  static std::size_t callOf(const fx::Graph& graph, std::size_t node) {
    while (node < graph.nodes.size()) {
      const auto& call = graph.nodes[node].call;
      if (call.kind != fx::Expression::Kind::item || call.items[0].kind != fx::Expression::Kind::value) break;
      const auto value = static_cast<std::size_t>(call.items[0].integer);
      if (value < graph.inputs.size() || value - graph.inputs.size() >= node) break;
      node = value - graph.inputs.size();
    }
    return node;
  }

  /// Memory of an input, of which the graph makes views.
  static bool isGiven(const Document& document, StorageId storage) {
    const auto first = document.storage(storage).first;
    return first && !document.value(first).producer;
  }

  void add(const JobGraph& graph, std::uint8_t which) {
    const auto& document = *graph.listing.document;
    std::unordered_map<std::string, std::size_t> nodes;
    for (std::size_t i = 0; i < graph.text.nodes.size(); ++i) nodes.emplace(graph.text.nodes[i].name, i);
    const auto base = which == 0 ? 0 : step_.forwardCount;
    IdVector<StorageId, std::int32_t> made(document.storageCount(), -1);
    for (const auto op : graph.listing.trace.ops) {
      const auto node = callOf(graph.text, nodeOf(graph, nodes, op));
      const auto name = shortOpName(document.opName(op));
      for (const auto operand : document.operands(op)) read(document, operand, name, base + node, made, which);
      for (const auto output : document.outputs(op)) {
        const auto storage = document.value(output).storage;
        if (!storage || document.storage(storage).external || isGiven(document, storage)) continue;
        if (made[storage] >= 0) {
          note(document, output, which, made[storage]);
          continue;
        }
        made[storage] = static_cast<std::int32_t>(step_.allocations.size());
        step_.allocations.push_back(allocationOf(graph, op, output, name, base + node, which));
        step_.allocations.back().node = static_cast<std::int32_t>(node);
        note(document, output, which, made[storage]);
      }
    }
  }

  /// The code is that of the graph with as many results, whose memory has the sizes of the results.
  void addCode(const std::string& file, const OutputCode& code) {
    for (const auto which : {0, 1}) {
      const auto& outputs = (which == 0 ? forward_ : backward_).listing.trace.outputs;
      if (outputs.size() != code.outputCount) continue;
      const auto& document = *(which == 0 ? forward_ : backward_).listing.document;
      TracedCode found{file, which == 1, {}};
      for (const auto& buffer : code.buffers) {
        TracedCode::Line line{buffer.line, TracedAllocation::none, false, buffer.op};
        if (!buffer.outputs.empty())
          if (const auto value = outputs[buffer.outputs.back()]; value && document.isTensor(value))
            if (const auto made = byName_[which].find(document.displayName(value)); made != byName_[which].end()) {
              line.allocation = made->second;
              line.isExact = !buffer.isReused && buffer.outputs.size() == 1;
            }
        found.lines.push_back(std::move(line));
      }
      std::ranges::stable_sort(found.lines, {}, &TracedCode::Line::line);
      step_.code.push_back(std::move(found));
      return;
    }
  }

  /// Values of one storage share what is known of its use.
  void note(const Document& document, ValueId value, std::uint8_t which, std::int32_t at) {
    const auto name = document.displayName(value);
    byName_[which].emplace(name, at);
    auto& allocation = step_.allocations[at];
    if (which == 0 && saved_.contains(name)) {
      allocation.use = TracedAllocation::Use::saved;
      savedAs_.emplace(name, at);
    } else if (which == 0 && results_.contains(name) && allocation.use == TracedAllocation::Use::temporary) {
      allocation.use = TracedAllocation::Use::result;
    }
    if (which == 1 && gradients_.contains(name)) allocation.use = TracedAllocation::Use::gradient;
  }

  void read(const Document& document, ValueId operand, const std::string& op, std::size_t position,
            const IdVector<StorageId, std::int32_t>& made, std::uint8_t which) {
    if (!document.isTensor(operand) || !document.value(operand).storage) return;
    auto at = made[document.value(operand).storage];
    if (at < 0 && which == 1) {
      const auto first = document.storage(operand).first;
      const auto found = savedAs_.find(document.displayName(first ? first : operand));
      if (found != savedAs_.end()) at = found->second;
    }
    if (at < 0) return;
    auto& allocation = step_.allocations[at];
    allocation.lastRead = position;
    allocation.lastReader = op;
    if (which == 0) allocation.lastForward = position;
    else if (!allocation.backward && allocation.firstBackward == 0) allocation.firstBackward = position;
    if (which == 1 && !allocation.backward && allocation.reader.empty() && op != "aten.view" && op != "aten.t" &&
        op != "aten.detach" && op != "aten.transpose.int")
      allocation.reader = op;
  }

  TracedAllocation allocationOf(const JobGraph& graph, BoundSymbolId op, ValueId output, const std::string& name,
                                std::size_t position, std::uint8_t which) const {
    const auto& document = *graph.listing.document;
    TracedAllocation allocation;
    allocation.bytes = static_cast<std::uint64_t>(document.storage(output).bytes);
    allocation.op = name;
    allocation.name = document.displayName(output);
    if (const auto& stack = document.source(document.boundSymbol(op).source); !stack.empty()) {
      const auto& file = stack.back().file;
      const auto slash = file.rfind('/');
      allocation.line =
          file.substr(slash == std::string::npos ? 0 : slash + 1) + ":" + std::to_string(stack.back().line);
    }
    allocation.position = allocation.lastRead = position;
    allocation.backward = which == 1;
    return allocation;
  }

  const JobGraph &forward_, &backward_;
  TracedStep step_;
  std::set<std::string> saved_, results_, gradients_;
  std::unordered_map<std::string, std::int32_t> byName_[2];  // which allocation each value is in
  std::map<std::string, std::int32_t> savedAs_;              // the name under which the backward gets it
};

}  // namespace

void showJobMakersIn(TracedStep& step, const Analysis& shown) {
  const auto& document = *shown.document;
  std::unordered_map<std::string, BoundSymbolId> makers;
  for (const auto op : shown.computation().trace.ops) {
    const auto derived = shown.links.derived(op);
    if (derived.empty()) continue;
    makers.emplace(document.text(document.boundSymbol(op).name), derived.front());
    for (const auto output : document.outputs(op)) makers.emplace(document.displayName(output), derived.front());
  }
  for (auto& allocation : step.allocations)
    if (const auto found = makers.find(allocation.name); found != makers.end() && !allocation.backward)
      allocation.maker = found->second;
}

TracedStep jobStep(const std::string& path, const SymbolLookup& lookup, const Progress& progress,
                   const std::string& compile, std::optional<std::int64_t> rank) {
  const auto log = jobs::openJobLog(path, progress);
  const auto choice = jobs::chooseCompile(log, compile, rank);
  const auto* forward = choice.attempt->find(jobs::GraphKind::forward);
  const auto* backward = choice.attempt->find(jobs::GraphKind::backward);
  if (forward == nullptr || backward == nullptr)
    badInput("has no forward and backward graph to join a snapshot with", path);
  const auto read = [&](const jobs::GraphRecord& record, TraceKind kind, const JobGraph* before) {
    JobGraph graph;
    graph.text = fx::readGraph(jobs::payloadText(log, record.payload), jobs::placeOf(log, record.payload));
    jobs::ListingOptions options;
    options.kind = kind;
    for (const auto& [name, value] : jobs::sizeHints(log, *choice.attempt)) options.sizes[name] = value;
    if (kind == TraceKind::backward)
      options.origins = jobs::linksByLine(before->text, before->text.nodes.size(), graph.text);
    graph.listing = jobs::listingOf(graph.text, lookup, options);
    return graph;
  };
  const auto forwardGraph = read(*forward, TraceKind::forward, nullptr);
  const auto backwardGraph = read(*backward, TraceKind::backward, &forwardGraph);
  std::map<std::string, OutputCode> code;
  for (const auto& record : choice.attempt->code)
    code[record.file] = readOutputCode(jobs::payloadText(log, record.payload));
  return JobStepBuilder(forwardGraph, backwardGraph).run(code);
}

}  // namespace retrograd
