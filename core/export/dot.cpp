// A graph for Graphviz: modules as clusters, forward and backward in colours, dashed edges from forward ops to backward
// ops that come from them.
#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "core/base/module_path.h"
#include "core/export/export.h"
#include "core/questions/op_facts.h"
#include "core/trace/python_text.h"

namespace retrograd {
namespace {

/// A quoted string of the DOT language, in which only '"' ends it and a backslash begins what labels know ("\n").
std::string dotText(std::string_view text) {
  std::string out = "\"";
  for (const char c : oneLine(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// Lines of a label, each escaped.
std::string label(const std::vector<std::string>& lines) {
  std::string out = "\"";
  for (const auto& line : lines) {
    if (out.size() > 1) out += "\\n";
    const auto one = dotText(line);
    out.append(one, 1, one.size() - 2);
  }
  return out + '"';
}

class DotWriter {
 public:
  DotWriter(const ExportRequest& request, ExportSink& sink, const Progress& progress)
      : request_(request),
        document_(*request.analysis.document),
        facts_(request.analysis),
        sink_(sink),
        progress_(progress) {}

  void write() {
    sink_.write(
        "digraph retrograd {\n  graph [rankdir=TB, fontname=\"Helvetica\", compound=true];\n"
        "  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10];\n"
        "  edge [fontname=\"Helvetica\", fontsize=8];\n");
    for (const auto* trace : request_.traces)
      for (auto op : trace->ops)
        if (shown_.insert(op).second) ops_.push_back(op);
    inputs();
    std::vector<std::vector<std::string_view>> modules;
    for (auto op : ops_) modules.push_back(partsOf(facts_.module(op), mostModules));
    group(modules);
    for (auto op : ops_) edges(op);
    outputs();
    sink_.write("}\n");
  }

 private:
  /// A module is one cluster, wherever its ops are: Graphviz draws a cluster around nodes, not around a part of the
  /// listing.
  struct Module {
    std::vector<std::string_view> names;
    std::unordered_map<std::string_view, std::size_t> children;
    std::vector<std::size_t> order;
    std::vector<BoundSymbolId> ops;
  };

  void group(const std::vector<std::vector<std::string_view>>& paths) {
    std::vector<Module> tree(1);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      std::size_t at = 0;
      for (auto part : paths[i]) {
        const auto [child, added] = tree[at].children.try_emplace(part, tree.size());
        const auto next = child->second;
        if (added) {
          tree[at].order.push_back(next);
          tree[at].names.push_back(part);
          tree.emplace_back();
        }
        at = next;
      }
      tree[at].ops.push_back(ops_[i]);
    }
    cluster(tree, 0, 1);
  }

  void cluster(const std::vector<Module>& tree, std::size_t at, std::size_t depth) {
    const std::string indent(2 * depth, ' ');
    for (auto op : tree[at].ops) node(op, indent);
    for (std::size_t i = 0; i < tree[at].order.size(); ++i) {
      const auto child = tree[at].order[i];
      sink_.write(fmt::format("{}subgraph cluster_{} {{\n{}  label={}; color=gray60; fontsize=10;\n", indent, child,
                              indent, dotText(tree[at].names[i])));
      cluster(tree, child, depth + 1);
      sink_.write(indent + "}\n");
    }
  }

  void node(BoundSymbolId op, const std::string& indent) {
    progress_.check();
    std::vector<std::string> lines{shortOpName(document_.symbol(op).name)};
    for (auto output : document_.outputs(op))
      if (output) lines.push_back(document_.displayName(output) + ": " + shortType(document_, output));
    const bool isSaved = facts_.savesOutput(op);
    if (isSaved) lines.emplace_back("saved");
    sink_.write(fmt::format("{}op{} [label={}, fillcolor=\"{}\"{}];\n", indent, op.index, label(lines), colour(op),
                            isSaved ? ", penwidth=2" : ""));
  }

  const char* colour(BoundSymbolId op) const {
    const auto& bound = document_.boundSymbol(op);
    if (bound.recomputed) return "#fff2cc";
    return bound.origin.role == Role::none || bound.origin.role == Role::forward ? "#dbe9f9" : "#fbe0d6";
  }

  void inputs() {
    for (const auto* trace : request_.traces)
      for (auto input : trace->inputs) {
        if (!input || !inputs_.insert(input).second) continue;
        const auto& producer = document_.value(input).producer;
        if (producer && shown_.contains(producer)) continue;  // saved values of a backward shown next to its forward
        sink_.write(fmt::format("  value{} [shape=ellipse, fillcolor=\"#eeeeee\", label={}];\n", input.index,
                                label({document_.displayName(input), shortType(document_, input)})));
        source_[input] = fmt::format("value{}", input.index);
      }
    for (auto op : ops_)
      for (auto output : document_.outputs(op))
        if (output) source_[output] = fmt::format("op{}", op.index);
  }

  void edges(BoundSymbolId op) {
    std::set<ValueId> drawn;
    for (auto operand : document_.operands(op)) {
      const auto from = operand ? source_.find(operand) : source_.end();
      if (from != source_.end() && drawn.insert(operand).second)
        sink_.write(fmt::format("  {} -> op{};\n", from->second, op.index));
    }
    if (const auto forward = facts_.forwardOf(op); forward && shown_.contains(forward))
      sink_.write(fmt::format("  op{} -> op{} [style=dashed, color=\"#b05030\", constraint=false, arrowhead=open];\n",
                              forward.index, op.index));
  }

  void outputs() {
    std::set<ValueId> drawn;
    for (const auto* trace : request_.traces)
      for (std::size_t i = 0; i < trace->outputs.size(); ++i) {
        const auto output = trace->outputs[i];
        const auto from = output ? source_.find(output) : source_.end();
        const bool isSaved = trace->kind == TraceKind::forward && i >= trace->resultCount;
        if (from == source_.end() || isSaved || !drawn.insert(output).second) continue;
        sink_.write(fmt::format(
            "  result{} [shape=ellipse, style=filled, fillcolor=\"#d9ead3\", label={}];\n  {} -> result{};\n",
            output.index, label({document_.displayName(output)}), from->second, output.index));
      }
  }

  const ExportRequest& request_;
  const Document& document_;
  OpFacts facts_;
  ExportSink& sink_;
  const Progress& progress_;
  std::vector<BoundSymbolId> ops_;
  std::set<BoundSymbolId> shown_;
  std::set<ValueId> inputs_;
  std::unordered_map<ValueId, std::string> source_;
};

void writeDot(const ExportRequest& request, ExportSink& sink, const Progress& progress) {
  DotWriter(request, sink, progress).write();
}

const ExportRegistration registrationDot(
    {.name = "dot",
     .description = "a graph for Graphviz, modules as clusters, forward and backward in colours",
     .suffix = ".dot",
     .traces = {TraceKind::joint},
     .write = writeDot});

}  // namespace
}  // namespace retrograd
