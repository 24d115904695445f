#include "app/cli/trace_recording.h"

#include <fmt/format.h>

#include <cstdio>

#include "core/trace/print/printer.h"
#include "core/trace/source.h"

namespace retrograd::cli {
namespace {

/// Hooks, recomputation and accumulation run within a backward: no heading of their own there.
Phase sectionOf(const StepOp& op, Phase before) {
  const bool isWithin = op.phase == Phase::hook || op.phase == Phase::recompute || op.phase == Phase::accumulation;
  return isWithin && before == Phase::backward ? Phase::backward : op.phase;
}

class Listing {
 public:
  Listing(const Analysis& analysis, const RecordingListing& options)
      : analysis_(analysis), document_(*analysis.document), recording_(*analysis.file.recording), options_(options) {}

  void print() {
    const auto asked = phaseNamed(options_.phase);
    for (const auto op : analysis_.joint.ops) {
      const auto& recorded = recording_.op(op);
      if (asked && recorded.phase != *asked) continue;
      if (!options_.passes.empty() && !options_.passes[static_cast<std::size_t>(op.index)]) continue;
      heading(recorded, asked.has_value());
      place(op);
      fmt::print("{}{}{}\n", printCall(document_, op), comment(op), facts(recorded, asked.has_value()));
    }
  }

 private:
  void heading(const StepOp& op, bool isOne) {
    const auto section = isOne ? op.phase : sectionOf(op, section_);
    if (isBegun_ && op.step == step_ && section == section_ && op.backward == backward_) return;
    fmt::print("{}# ---- step {}, {}", isBegun_ ? "\n" : "", op.step, name(section));
    if (section == Phase::backward && op.backward > 0) fmt::print(" {}", op.backward);
    fmt::print("\n");
    isBegun_ = true;
    step_ = op.step;
    section_ = section;
    backward_ = op.backward;
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

  std::string facts(const StepOp& op, bool isOne) const {
    std::string text;
    const auto add = [&](std::string_view what, std::string_view value) {
      text += fmt::format("{}{}{}{}", text.empty() ? "  # " : ", ", what, value.empty() ? "" : ": ", value);
    };
    if (!isOne && sectionOf(op, section_) != op.phase) add(name(op.phase), {});
    if (op.node) add("node", document_.text(op.node));
    if (op.accumulates) add("into the gradient of", document_.text(op.accumulates));
    if (op.hook) add("hook", document_.text(op.hook));
    if (op.function) add("in", document_.text(op.function));
    if (op.thread > 0) add("thread", std::to_string(op.thread));
    if (op.uninitialized) add("uninitialised memory", {});
    if (op.opaque) add("not run", document_.text(op.opaque));
    return text;
  }

  const Analysis& analysis_;
  const Document& document_;
  const StepRecording& recording_;
  const RecordingListing& options_;
  bool isBegun_ = false;
  std::int32_t step_ = -1, backward_ = -1;
  Phase section_ = Phase::other;
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
