#include "views/text/trace_index.h"

#include "core/formats/recording/recording.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

/// Appends rows in preorder and closes open parents.
class OutlineBuilder {
 public:
  explicit OutlineBuilder(std::size_t lines) { outline_.rowOfLine.assign(lines, -1); }

  std::int32_t open(std::int32_t item) {
    const auto row = outline_.rows();
    outline_.item.push_back(item);
    outline_.end.push_back(row + 1);
    outline_.parent.push_back(stack_.empty() ? -1 : stack_.back());
    outline_.depth.push_back(static_cast<std::uint8_t>(std::min<std::size_t>(stack_.size(), 255)));
    if (item >= 0) outline_.rowOfLine[item] = row;
    stack_.push_back(row);
    return row;
  }
  std::int32_t openHeader(const OutlineHeader& header) {
    outline_.headers.push_back(header);
    return open(~(static_cast<std::int32_t>(outline_.headers.size()) - 1));
  }
  void close() {
    const auto row = static_cast<std::size_t>(stack_.back());
    outline_.end[row] = outline_.rows();
    stack_.pop_back();
  }
  std::size_t depth() const { return stack_.size(); }
  Outline take() { return std::move(outline_); }

 private:
  Outline outline_;
  std::vector<std::int32_t> stack_;
};

/// Lines of the computation: top-level ops, each followed by the ops of its bodies.
void appendLines(const Document& document, std::span<const BoundSymbolId> ops, std::vector<BoundSymbolId>& lines) {
  for (auto op : ops) {
    lines.push_back(op);
    forEachBody(document, op, [&](SubgraphId body) { appendLines(document, document.subgraph(body).ops, lines); });
  }
}

/// The key under which neighbouring lines are together: same computation op, same direction.
struct GroupKey {
  BoundSymbolId operation;
  bool backward = false;
  bool recompute = false;
  bool operator==(const GroupKey&) const = default;
};

GroupKey groupKey(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const bool isItself = bound.origin.op == op;  // an op of a recording, which nothing was derived from
  const auto operation = bound.origin.role == Role::none || isItself ? BoundSymbolId()
                         : bound.origin.op                           ? bound.origin.op
                                                                     : bound.parent;
  return {operation, isBackwardRole(bound.origin.role), bound.origin.role == Role::recompute};
}

class IndexBuilder {
 public:
  /// `recording`: null for what was not recorded; else its phases are sections.
  IndexBuilder(const Document& document, const std::vector<BoundSymbolId>& lines, const StepRecording* recording)
      : document_(document), lines_(lines), recording_(recording), builder_(lines.size()) {}

  Outline flat() {
    inSections([this](std::size_t begin, std::size_t end) {
      for (auto i = begin; i < end;) i = openLine(i);
    });
    return builder_.take();
  }
  Outline byOperation() {
    inSections([this](std::size_t begin, std::size_t end) { operations(begin, end); });
    return builder_.take();
  }
  Outline byModule() {
    inSections([this](std::size_t begin, std::size_t end) { modules(begin, end); });
    auto outline = builder_.take();
    countOps(outline);
    return outline;
  }

 private:
  /// All lines, or those of each part of a recorded step under a header.
  template <class Fill>
  void inSections(Fill&& fill) {
    if (!recording_) return fill(0, lines_.size());
    const auto sections = sectionsOf(*recording_, lines_);
    for (std::size_t i = 0; i < sections.size(); ++i) {
      const auto end = i + 1 < sections.size() ? sections[i + 1].begin : lines_.size();
      OutlineHeader header;
      header.section = lines_[sections[i].begin];
      header.title = sections[i].title;
      header.ops = static_cast<std::int32_t>(end - sections[i].begin);
      builder_.openHeader(header);
      fill(sections[i].begin, end);
      builder_.close();
    }
  }

  /// Module headers nest by path; under them operations.
  void modules(std::size_t begin, std::size_t end) {
    std::vector<std::string> open;
    std::vector<std::string> path;
    for (std::size_t i = begin; i < end;) {
      const auto module = document_.boundSymbol(lines_[i]).module;
      std::size_t next = i;
      while (next < end && document_.boundSymbol(lines_[next]).module == module) ++next;
      path = split(document_.text(module));
      std::size_t common = 0;
      while (common < open.size() && common < path.size() && open[common] == path[common]) ++common;
      for (; open.size() > common; open.pop_back()) builder_.close();
      for (; open.size() < path.size(); open.push_back(path[open.size()])) openModule(open.size(), i);
      operations(i, next);
      i = next;
    }
    for (; !open.empty(); open.pop_back()) builder_.close();
  }

  static std::vector<std::string> split(std::string_view path) {
    std::vector<std::string> parts;
    while (!path.empty()) {
      const auto dot = path.find('.');
      parts.emplace_back(path.substr(0, dot));
      path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    }
    return parts;
  }

  void openModule(std::size_t depth, std::size_t line) {
    OutlineHeader header;
    header.module = document_.boundSymbol(lines_[line]).module;
    header.moduleParts = static_cast<std::int32_t>(depth) + 1;
    moduleRows_.push_back(builder_.openHeader(header));
  }

  void countOps(Outline& outline) const {
    for (const auto row : moduleRows_) {
      const auto index = ~outline.item[row];
      auto& header = outline.headers[index];
      for (auto r = row; r < outline.end[row]; ++r) header.ops += outline.item[r] >= 0;
    }
  }

  void operations(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end;) {
      const auto key = groupKey(document_, lines_[i]);
      std::size_t next = i + 1;
      while (key.operation && next < end && groupKey(document_, lines_[next]) == key) ++next;
      if (next == i + 1) {
        i = openLine(i);
        continue;
      }
      OutlineHeader header;
      header.operation = key.operation;
      header.backward = key.backward;
      header.recompute = key.recompute;
      header.ops = static_cast<std::int32_t>(next - i);
      builder_.openHeader(header);
      for (; i < next; ++i) leaf(i);
      builder_.close();
    }
  }

  void leaf(std::size_t line) {
    builder_.open(static_cast<std::int32_t>(line));
    builder_.close();
  }

  /// Adds line `i` with the bodies of its op below it; returns the first line after them.
  std::size_t openLine(std::size_t i) {
    builder_.open(static_cast<std::int32_t>(i));
    auto next = i + 1;
    forEachBody(document_, lines_[i], [&](SubgraphId body) {
      OutlineHeader header;
      header.subgraph = body.index;
      header.ops = static_cast<std::int32_t>(document_.subgraph(body).ops.size());
      builder_.openHeader(header);
      for (std::size_t k = 0; k < document_.subgraph(body).ops.size() && next < lines_.size(); ++k)
        next = openLine(next);
      builder_.close();
    });
    builder_.close();
    return next;
  }

  const Document& document_;
  const std::vector<BoundSymbolId>& lines_;
  const StepRecording* recording_;
  OutlineBuilder builder_;
  std::vector<std::int32_t> moduleRows_;
};

}  // namespace

bool isBackwardRole(Role role) { return role != Role::none && role != Role::forward; }

QString titleText(TraceKind kind) {
  switch (kind) {
    case TraceKind::computation: return tr("Computation");
    case TraceKind::joint: return tr("Joint");
    case TraceKind::forward: return tr("Forward");
    case TraceKind::backward: return tr("Backward");
  }
  return {};
}

const Trace& traceOf(const Analysis& analysis, TraceKind kind) {
  switch (kind) {
    case TraceKind::joint: return analysis.joint;
    case TraceKind::forward: return analysis.forward;
    case TraceKind::backward: return analysis.backward;
    case TraceKind::computation: break;
  }
  return analysis.computation().trace;
}

const Outline& TraceIndex::outline(Grouping grouping) const {
  const auto i = static_cast<std::size_t>(grouping);
  std::call_once(made_[i], [&] {
    IndexBuilder builder(document(), lines, analysis->file.recording.get());
    outlines_[i] = grouping == Grouping::operation ? builder.byOperation()
                   : grouping == Grouping::module  ? builder.byModule()
                                                   : builder.flat();
  });
  return outlines_[i];
}

std::shared_ptr<const TraceIndex> indexTrace(std::shared_ptr<const Analysis> analysis, TraceKind kind,
                                             const Progress& progress) {
  auto index = std::make_shared<TraceIndex>();
  const auto& document = *analysis->document;
  const auto& trace = traceOf(*analysis, kind);
  if (kind == TraceKind::computation) appendLines(document, trace.ops, index->lines);
  else index->lines = trace.ops;
  // What the optimizer does is no backward: it is listed by parameter (OptimizerModel).
  if (const auto& recording = analysis->file.recording; recording && kind == TraceKind::backward)
    std::erase_if(index->lines,
                  [&](BoundSymbolId op) { return recording->has(op) && recording->op(op).phase == Phase::optimizer; });
  index->lineOf.assign(document.boundSymbolCount(), -1);
  for (std::size_t i = 0; i < index->lines.size(); ++i)
    index->lineOf[index->lines[i].index] = static_cast<std::int32_t>(i);
  index->analysis = std::move(analysis);
  index->kind = kind;
  progress.check();
  index->outline(Grouping::operation);
  return index;
}

}  // namespace retrograd::views
