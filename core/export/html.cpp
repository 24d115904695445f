// One self-contained HTML page: each value and op is an anchor, a backward op links to its forward op and back, modules
// fold.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_array.h"
#include "core/base/id_vector.h"
#include "core/base/module_path.h"
#include "core/export/export.h"
#include "core/export/op_facts.h"
#include "core/export/page_text.h"
#include "core/trace/implied.h"
#include "core/trace/print/call_text.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

/// Walks a list of ops in order and reports where modules begin and end, as brackets: a module's ops that are not
/// together come in several brackets. `modules`: path by op. `visitor` has enter(name, path, first, last), op(i) and
/// leave().
template <class Visitor>
void forEachInModules(const std::vector<std::vector<std::string_view>>& modules, Visitor& visitor) {
  struct Walk {
    const std::vector<std::vector<std::string_view>>& modules;
    Visitor& visitor;
    bool within(std::size_t i, std::size_t depth, std::string_view part) const {
      return modules[i].size() > depth && modules[i][depth] == part;
    }
    void run(std::size_t first, std::size_t last, std::size_t depth) {
      for (auto i = first; i < last;) {
        if (modules[i].size() <= depth) {
          visitor.op(i++);
          continue;
        }
        auto end = i + 1;
        while (end < last && within(end, depth, modules[i][depth])) ++end;
        visitor.enter(modules[i][depth], depth, i, end);
        run(i, end, depth + 1);
        visitor.leave();
        i = end;
      }
    }
  };
  Walk{modules, visitor}.run(0, modules.size(), 0);
}

/// Which sections show an op, so that a link leads to one that is there.
class Places {
 public:
  explicit Places(const ExportRequest& request) : document_(*request.analysis.document) {
    for (const auto* trace : request.traces) {
      auto& ops = shown_[trace->kind];
      ops.resize(document_.boundSymbolCount());
      for (auto op : trace->ops) mark(ops, op);
    }
  }
  bool shows(TraceKind kind, BoundSymbolId op) const {
    const auto& ops = shown_[kind];
    return ops.contains(op) && ops[op];
  }
  /// Address of the op: in the section `from` if it is there, else in another one; empty where none shows it.
  std::string link(BoundSymbolId op, TraceKind from) const {
    for (auto kind : {from, TraceKind::forward, TraceKind::backward, TraceKind::joint, TraceKind::computation})
      if (shows(kind, op)) return fmt::format("#{}-op{}", name(kind), op.index);
    return {};
  }

 private:
  void mark(IdVector<BoundSymbolId, bool>& ops, BoundSymbolId op) {
    ops[op] = true;
    forEachBody(document_, op, [&](SubgraphId body) {
      for (auto inner : document_.subgraph(body).ops) mark(ops, inner);
    });
  }
  const Document& document_;
  EnumArray<TraceKind, IdVector<BoundSymbolId, bool>, 4> shown_;
};

/// Values are links to where they are made; what is made is an anchor, unless it was made before (an operand returned
/// as it is).
class HtmlCall final : public CallText {
 public:
  HtmlCall(const Document& document, TraceKind kind)
      : CallText(document), section_(retrograd::name(kind)), made_(document.valueCount()) {}

  /// An anchor for what flows in.
  std::string define(ValueId id) {
    if (made_[id]) return value(id);
    made_[id] = true;
    return anchor(id);
  }
  /// Around call(): what the op makes is an anchor in its own line and a link afterwards.
  void begin(BoundSymbolId op) {
    fresh_.clear();
    for (auto output : document().outputs(op))
      if (output && !made_[output]) fresh_.push_back(output);
  }
  void end() {
    for (auto id : fresh_) made_[id] = true;
  }
  std::string link(ValueId id) const { return value(id); }

 protected:
  std::string value(ValueId id) const override {
    if (!id) return "None";
    const auto text = htmlText(document().displayName(id));
    if (!made_[id]) return fmt::format("<span title=\"{}\">{}</span>", type(id), text);
    return fmt::format("<a href=\"#{}-value{}\" title=\"{}\">{}</a>", section_, id.index, type(id), text);
  }
  std::string made(ValueId id) const override {
    if (std::find(fresh_.begin(), fresh_.end(), id) == fresh_.end()) return value(id);
    return anchor(id);
  }
  std::string literal(const Argument& argument) const override { return htmlText(CallText::literal(argument)); }
  std::string name(std::string_view text) const override { return htmlText(text); }

 private:
  std::string anchor(ValueId id) const {
    return fmt::format("<span class=\"made\" id=\"{}-value{}\" title=\"{}\">{}</span>", section_, id.index, type(id),
                       htmlText(document().displayName(id)));
  }
  std::string type(ValueId id) const { return htmlText(shortType(document(), id)); }

  std::string section_;
  IdVector<ValueId, bool> made_;
  std::vector<ValueId> fresh_;
};

/// One trace as a section.
class SectionWriter {
 public:
  SectionWriter(const ExportRequest& request, const OpFacts& facts, const Places& places, const Trace& trace,
                ExportSink& sink, const Progress& progress)
      : document_(*request.analysis.document),
        facts_(facts),
        places_(places),
        trace_(trace),
        sink_(sink),
        progress_(progress),
        call_(document_, trace.kind) {}

  void write() {
    const auto kind = name(trace_.kind);
    sink_.write(fmt::format("<section id=\"{}\">\n<h2>{} <span class=\"notes\">{} ops</span></h2>\n", kind, kind,
                            trace_.ops.size()));
    sink_.write("<details open><summary>inputs</summary>\n");
    for (std::size_t i = 0; i < trace_.inputs.size(); ++i) input(i);
    sink_.write("</details>\n");
    std::vector<std::vector<std::string_view>> modules;
    for (auto op : trace_.ops) modules.push_back(partsOf(facts_.module(op), mostModules));
    forEachInModules(modules, *this);
    results();
    sink_.write("</section>\n");
  }

  void enter(std::string_view part, std::size_t, std::size_t first, std::size_t last) {
    border(first);
    sink_.write(fmt::format("<details open><summary>{} <span class=\"notes\">{} op{}</span></summary>\n",
                            htmlText(part), last - first, last - first == 1 ? "" : "s"));
  }
  void leave() { sink_.write("</details>\n"); }
  void op(std::size_t i) {
    border(i);
    writeOp(trace_.ops[i]);
  }

 private:
  /// Between forward and backward of a joint trace; inside a module that goes on over the border, in it.
  void border(std::size_t i) {
    if (trace_.kind != TraceKind::joint || hasBorder_ || i < trace_.forwardCount) return;
    hasBorder_ = true;
    sink_.write("<div class=\"border\">backward</div>\n");
  }

  void input(std::size_t i) {
    const auto id = trace_.inputs[i];
    if (!id) return;
    const bool isSaved = trace_.kind == TraceKind::backward && i < trace_.savedCount;
    const auto& value = document_.value(id);
    sink_.write(fmt::format("<div class=\"value\">{}: <span class=\"type\">{}</span> <span class=\"notes\">{}</span>",
                            call_.define(id), htmlText(shortType(document_, id)), name(value.kind)));
    if (isSaved) {
      sink_.write(" <span class=\"saved\">saved</span>");
      if (const auto link = value.producer ? places_.link(value.producer, TraceKind::forward) : std::string();
          !link.empty())
        sink_.write(fmt::format(" <span class=\"origin\">made by <a href=\"{}\">{}</a></span>", link,
                                htmlText(opName(value.producer))));
    }
    sink_.write("</div>\n");
  }

  std::string opName(BoundSymbolId op) const { return shortOpName(document_.symbol(op).name); }

  void writeOp(BoundSymbolId op) {
    progress_.check();
    for (const auto& argument : document_.pattern(document_.boundSymbol(op).pattern).arguments) bodies(argument);
    call_.begin(op);
    const auto* frame = frameOf(op);
    const auto title =
        frame ? fmt::format(" title=\"{}\"", htmlText(fmt::format("{}:{}: {}", frame->file, frame->line, frame->code)))
              : std::string();
    std::string line =
        fmt::format("<div class=\"op\" id=\"{}-op{}\"{}>{}", name(trace_.kind), op.index, title, call_.call(op));
    call_.end();
    std::string types;
    for (auto output : document_.outputs(op))
      if (output) types += (types.empty() ? "" : ", ") + shortType(document_, output);
    line += fmt::format("  <span class=\"type\">{}</span>", htmlText(types));
    marks(line, op);
    origin(line, op);
    sink_.write(line + "</div>\n");
  }

  const SourceFrame* frameOf(BoundSymbolId op) const { return shownFrame(sourceOf(document_, op)); }

  void marks(std::string& line, BoundSymbolId op) const {
    const auto& bound = document_.boundSymbol(op);
    std::int64_t bytes = 0;
    std::set<StorageId> counted;
    for (auto output : document_.outputs(op))
      if (trace_.kind != TraceKind::backward && facts_.isSaved(output) &&
          counted.insert(document_.value(output).storage).second && document_.value(output).storage)
        bytes += document_.storage(output).bytes;
    if (!counted.empty()) line += fmt::format(" <span class=\"saved\">saved {}</span>", bytesText(bytes));
    if (bound.recomputed) line += " <span class=\"again\">recomputed</span>";
    if (bound.replays) line += " <span class=\"again\">replays its draw</span>";
  }

  void origin(std::string& line, BoundSymbolId op) const {
    const auto& from = document_.boundSymbol(op).origin;
    if (from.role != Role::none)
      line += fmt::format(" <span class=\"role {}\">{}</span>", name(from.role), name(from.role));
    if ((from.role == Role::gradient || from.role == Role::accumulation) && from.value)
      line += " <span class=\"origin\">of " + call_.link(from.value) + "</span>";
    if (auto terms = document_.terms(from); !terms.empty()) {
      line += " <span class=\"origin\">= ";
      if (const auto before = implied::sumBefore(document_, op)) {
        line += call_.link(before) + " + ";
        terms = terms.last(1);
      }
      for (std::size_t i = 0; i < terms.size(); ++i) line += (i ? " + " : "") + call_.link(terms[i]);
      line += "</span>";
    }
    const auto forward = facts_.forwardOf(op);
    addLinks(line, "forward", forward ? std::vector{forward} : std::vector<BoundSymbolId>{});
    if (from.role != Role::none && from.op) addLinks(line, "computation", {from.op}, TraceKind::computation);
    if (from.role == Role::none || from.role == Role::forward) addLinks(line, "backward", facts_.backwardOf(op));
  }

  /// Links to ops that the page shows; a computation op is named only where its section is there.
  void addLinks(std::string& line, const char* what, const std::vector<BoundSymbolId>& ops,
                std::optional<TraceKind> only = {}) const {
    constexpr std::size_t most = 24;  // a loop's op may have thousands
    std::string links;
    std::size_t count = 0;
    for (auto op : ops) {
      const auto link =
          only && !places_.shows(*only, op) ? std::string() : places_.link(op, only.value_or(trace_.kind));
      if (link.empty() || ++count > most) continue;
      ValueId output;
      for (auto candidate : document_.outputs(op))
        if (candidate && !output) output = candidate;
      links += fmt::format(" <a href=\"{}\" title=\"{}\">{}</a>", link, htmlText(opName(op)),
                           htmlText(output ? document_.displayName(output) : opName(op)));
    }
    if (count > most) links += fmt::format(" and {} more", count - most);
    if (!links.empty()) line += fmt::format(" <span class=\"origin\">{}:{}</span>", what, links);
  }

  void bodies(const Argument& argument) {
    if (argument.kind == Argument::Kind::subgraph) {
      const auto& body = document_.subgraph(SubgraphId(argument.integer));
      sink_.write(fmt::format("<details open class=\"body\"><summary>{}</summary>\n", htmlText(body.name)));
      for (auto id : body.inputs)
        if (id)
          sink_.write(fmt::format("<div class=\"value\">{}: <span class=\"type\">{}</span></div>\n", call_.define(id),
                                  htmlText(shortType(document_, id))));
      for (auto op : body.ops) writeOp(op);
      std::string outputs;
      for (const auto& output : body.outputs)
        outputs += (outputs.empty() ? "" : ", ") + call_.argument(output, body.outputValues);
      sink_.write(fmt::format("<div class=\"value\">return {}</div>\n</details>\n", outputs));
    }
    for (const auto& item : argument.items) bodies(item);
  }

  void results() {
    const auto list = [&](std::span<const ValueId> values, const char* what) {
      std::string text;
      for (auto value : values) text += (text.empty() ? "" : ", ") + call_.link(value);
      if (!text.empty()) sink_.write(fmt::format("<div class=\"value\">{} {}</div>\n", what, text));
    };
    const std::span<const ValueId> all = trace_.outputs;
    const auto first = trace_.kind == TraceKind::forward || trace_.kind == TraceKind::joint
                           ? std::min(trace_.resultCount, all.size())
                           : all.size();
    list(all.first(first), trace_.kind == TraceKind::backward ? "gradients" : "returns");
    list(all.subspan(first), trace_.kind == TraceKind::forward ? "saved for the backward" : "gradients");
  }

  const Document& document_;
  const OpFacts& facts_;
  const Places& places_;
  const Trace& trace_;
  ExportSink& sink_;
  const Progress& progress_;
  HtmlCall call_;
  bool hasBorder_ = false;
};

void writeHtml(const ExportRequest& request, ExportSink& sink, const Progress& progress) {
  const auto& analysis = request.analysis;
  const auto title = htmlText(analysis.file.path);
  sink.write(htmlHead());
  sink.write(fmt::format("<title>{}</title>\n</head>\n<body>\n<h1>{}</h1>\n<nav>", title, title));
  for (const auto* trace : request.traces) sink.write(fmt::format("<a href=\"#{0}\">{0}</a>", name(trace->kind)));
  sink.write("</nav>\n");
  for (const auto& line : analysis.inputSource) sink.write("<div class=\"notes\">" + htmlText(line) + "</div>\n");
  for (const auto& reason : analysis.dataDependent)
    sink.write("<div class=\"notes\">the traces hold for these inputs only: " + htmlText(reason) + "</div>\n");
  for (const auto& problem : analysis.problems)
    sink.write(fmt::format("<div class=\"notes\">{}{}{}</div>\n", htmlText(problem.place),
                           problem.place.empty() ? "" : ": ", htmlText(problem.message)));
  const OpFacts facts(analysis);
  const Places places(request);
  for (const auto* trace : request.traces) SectionWriter(request, facts, places, *trace, sink, progress).write();
  sink.write(htmlTail());
}

const ExportRegistration registrationHtml(
    {.name = "html",
     .description = "one page with links between backward and forward, modules fold",
     .suffix = ".html",
     .traces = {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward},
     .write = writeHtml});

}  // namespace

}  // namespace retrograd
