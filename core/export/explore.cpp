// The graph as one page to be explored without Retrograd: groups fold, text is found, backward ops lead to their
// origins.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/export/export.h"
#include "core/export/op_facts.h"
#include "core/export/page_text.h"
#include "core/layout/labels.h"
#include "core/trace/print/printer.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

using layout::GraphTree;
using layout::Lane;
using layout::TreeNode;

/// A JSON value that may be inside <script>: ASCII alone, and no "<" that could end it.
std::string scriptText(std::string_view text) {
  auto json = nlohmann::json(std::string(text)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string safe;
  for (const char c : json) safe += c == '<' ? "\\u003c" : std::string(1, c);
  return safe;
}

/// Numbers the texts that many ops share, such as paths of modules and lines of source.
class Texts {
 public:
  std::size_t number(std::string_view text) {
    const auto [at, isNew] = numbers_.emplace(text, all_.size());
    if (isNew) all_.push_back(at->first);
    return at->second;
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::map<std::string, std::size_t, std::less<>> numbers_;
  std::vector<std::string> all_;
};

class GraphData {
 public:
  GraphData(const ExportRequest& request, ExportSink& sink, const Progress& progress)
      : document_(*request.analysis.document),
        facts_(request.analysis),
        sink_(sink),
        progress_(progress),
        tree_(layout::buildTree(document_, *request.traces.front(), &request.analysis.computation(), progress)) {}

  void write(const std::string& title) {
    sink_.write(fmt::format("const graph = {{title: {}, trace: {}, ladder: {},\n", scriptText(title),
                            scriptText(name(tree_.kind())), tree_.ladder()));
    // Kind, parent, lane, ops of the forward, ops of the backward, title.
    list("nodes", tree_.size(), [&](std::int32_t i) {
      const auto& node = tree_.node(i);
      return fmt::format("[{},{},{},{},{},{}]", static_cast<int>(node.kind), node.parent, static_cast<int>(node.lane),
                         node.ops[Lane::forward], node.ops[Lane::backward], scriptText(title_(i)));
    });
    // Node, id, call, shape, role, module, node of the origin or -1, place in the source; the last three by number of
    // their text.
    std::vector<std::int32_t> ops;
    for (std::int32_t i = 0; i < tree_.size(); ++i)
      if (tree_.node(i).kind == TreeNode::Kind::op) ops.push_back(i);
    list("ops", static_cast<std::int32_t>(ops.size()), [&](std::int32_t i) { return op(ops[i]); });
    const auto& edges = tree_.edges();
    list("edges", static_cast<std::int32_t>(edges.size()), [&](std::int32_t i) {
      const auto& edge = edges[i];
      return fmt::format("[{},{},{},{}]", edge.from, edge.to, static_cast<int>(edge.kind),
                         scriptText(document_.displayName(edge.value)));
    });
    list("texts", static_cast<std::int32_t>(texts_.all().size()),
         [&](std::int32_t i) { return scriptText(texts_.all()[i]); });
    sink_.write("};\n");
  }

 private:
  template <class Item>
  void list(std::string_view name, std::int32_t count, const Item& item) {
    sink_.write(fmt::format("{}: [", name));
    for (std::int32_t i = 0; i < count; ++i) {
      if (i % 1024 == 0) progress_.check();
      sink_.write(item(i));
      sink_.write(i + 1 < count ? ",\n" : "");
    }
    sink_.write("],\n");
  }

  std::string title_(std::int32_t i) const {
    const auto& node = tree_.node(i);
    if (node.kind == TreeNode::Kind::root) return "model";
    return layout::boxText(tree_, i,
                           node.ops[Lane::forward] > 0 || node.lane == Lane::forward ? Lane::forward : Lane::backward)
        .title;
  }

  std::string op(std::int32_t node) {
    const auto op = tree_.node(node).op;
    std::string shape;
    for (auto output : document_.outputs(op))
      if (output) shape += (shape.empty() ? "" : "  ") + shortType(document_, output);
    const auto origin = facts_.forwardOf(op);
    return fmt::format("[{},{},{},{},{},{},{},{}]", node, op.index, scriptText(printCall(document_, op)),
                       scriptText(shape), texts_.number(facts_.role(op)), texts_.number(facts_.module(op)),
                       origin ? tree_.nodeOf(origin) : -1, texts_.number(source(op)));
  }

  std::string source(BoundSymbolId op) const {
    const auto* frame = shownFrame(sourceOf(document_, op));
    return frame ? fmt::format("{}:{}", frame->file, frame->line) : std::string();
  }

  const Document& document_;
  OpFacts facts_;
  ExportSink& sink_;
  const Progress& progress_;
  GraphTree tree_;
  Texts texts_;
};

void writeExplore(const ExportRequest& request, ExportSink& sink, const Progress& progress) {
  if (request.traces.size() != 1) badUse("the page shows one trace; name it with --show", "explore");
  const auto file = std::string_view(request.analysis.file.path);
  const auto title = std::string(file.substr(file.rfind('/') + 1));
  sink.write(exploreHead());
  sink.write("<title>" + htmlText(title) + "</title>\n");
  sink.write(exploreBody());
  GraphData(request, sink, progress).write(title);
  sink.write(exploreScript());
}

const ExportRegistration registrationExplore(
    {.name = "explore",
     .description = "the graph as one page to explore in a browser: folds, search, jump to the origin",
     .traces = {TraceKind::joint},
     .write = writeExplore});

}  // namespace
}  // namespace retrograd
