#include "app/cli/look/trace_recording.h"

#include <fmt/format.h>

#include "core/questions/intended_infinities.h"
#include "core/trace/print/printer.h"
#include "core/trace/source.h"

namespace retrograd::cli {
namespace {

class Listing {
 public:
  Listing(const Analysis& analysis, const RecordingListing& options)
      : analysis_(analysis), document_(*analysis.document), recording_(*analysis.file.recording), options_(options) {}

  void print() {
    const auto asked = phaseNamed(options_.phase);
    std::vector<BoundSymbolId> ops;
    for (const auto op : analysis_.joint.ops)
      if ((!asked || recording_.op(op).phase == *asked) && (options_.passes.empty() || options_.passes[op.index]))
        ops.push_back(op);
    const auto sections = sectionsOf(recording_, ops);
    for (std::size_t i = 0, section = 0; i < ops.size(); ++i) {
      if (section < sections.size() && sections[section].begin == i) heading(sections[section++].title);
      place(ops[i]);
      fmt::print("{}{}{}\n", printCall(document_, ops[i]), comment(ops[i]), facts(ops[i]));
    }
  }

 private:
  void heading(const std::string& title) {
    fmt::print("\n# ---- {}\n", title);
    module_ = {};
    line_.clear();
  }

  void place(BoundSymbolId op) {
    if (!options_.source) return;
    const auto& bound = document_.boundSymbol(op);
    if (bound.module != module_) {
      module_ = bound.module;
      if (module_) fmt::print("# module: {}\n", document_.text(module_));
    }
    const auto* frame = bound.source ? shownFrame(document_.source(bound.source)) : nullptr;
    auto line = frame ? fmt::format("{}:{}{}{}", frame->file, frame->line, frame->code.empty() ? "" : ": ", frame->code)
                      : std::string();
    if (line == line_) return;
    line_ = std::move(line);
    if (!line_.empty()) fmt::print("# {}\n", line_);
  }

  std::string comment(BoundSymbolId op) const {
    auto text = printComment(document_, op);
    if (options_.ids) text = fmt::format("#{}{}{}", op.index, text.empty() ? "" : ", ", text);
    return text.empty() ? text : "  # " + text;
  }

  std::string facts(BoundSymbolId id) const {
    const auto& op = recording_.op(id);
    std::string text;
    const auto add = [&](std::string_view what, std::string_view value) {
      text += fmt::format("{}{}{}{}", text.empty() ? "  # " : ", ", what, value.empty() ? "" : ": ", value);
    };
    if (op.phase == Phase::hook || op.phase == Phase::recompute || op.phase == Phase::accumulation)
      add(name(op.phase), {});
    if (op.node) add("node", document_.text(op.node));
    if (op.accumulates) add("into the gradient of", document_.text(op.accumulates));
    if (op.hook) add("hook", document_.text(op.hook));
    if (op.function) add("in", document_.text(op.function));
    if (op.thread > 0) add("thread", std::to_string(op.thread));
    if (leavesUninitialised(document_, id)) add("uninitialised memory", {});
    if (op.opaque) add("not run", document_.text(op.opaque));
    return text;
  }

  const Analysis& analysis_;
  const Document& document_;
  const StepRecording& recording_;
  const RecordingListing& options_;
  StringId module_;
  std::string line_;
};

}  // namespace

void printRecording(const Analysis& analysis, const RecordingListing& options) {
  const auto& recording = *analysis.file.recording;
  fmt::print("# recorded with PyTorch {}: {} ops; links: {} backward ops linked, {} ambiguous, {} without\n",
             recording.settings.torch, recording.ops.size(), recording.linked, recording.ambiguous, recording.unlinked);
  Listing(analysis, options).print();
}

}  // namespace retrograd::cli
