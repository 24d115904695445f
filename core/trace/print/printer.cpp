#include "core/trace/print/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "core/base/enum_array.h"
#include "core/base/id_vector.h"
#include "core/trace/implied.h"
#include "core/trace/last_use.h"
#include "core/trace/print/call_text.h"
#include "core/trace/print/printer_comments.h"
#include "core/trace/python_text.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

std::string listItem(std::string_view items, bool tuple, std::size_t count) {
  if (tuple) return fmt::format("({}{})", items, count == 1 ? "," : "");
  return fmt::format("[{}]", items);
}

std::string tupleOf(const Document& document, std::span<const ValueId> values) {
  return listItem(joined(values, [&](ValueId v) { return document.displayName(v); }), true, values.size());
}

/// Module and frame of an op: its own, or those of the computation op it comes from.
struct Place {
  std::string module;
  const SourceFrame* frame = nullptr;
};

Place placeOf(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto* from = bound.origin.op ? &document.boundSymbol(bound.origin.op) : &bound;
  return {std::string(document.text(bound.module ? bound.module : from->module)), shownFrame(sourceOf(document, op))};
}

std::string frameText(const SourceFrame& frame) {
  const auto file = std::filesystem::path(frame.file).filename().string();
  return oneLine(fmt::format("{}:{}{}{}", file, frame.line, frame.code.empty() ? "" : ": ", frame.code));
}

/// "mutation of buffer count", "loss"; empty for what the user gets.
std::string outputMeaning(const OutputSpec& output) {
  static constexpr EnumArray<OutputKind, const char*, 7> meanings{
      "", "loss", "mutation of buffer", "mutation of input", "mutation of parameter", "token", "gradient of"};
  const std::string meaning = meanings[output.kind];
  return output.target.empty() ? meaning : meaning + " " + word(output.target);
}

/// Writes one trace; bodies of higher-order ops become nested functions before the call.
class TraceWriter {
 public:
  TraceWriter(const Document& document, const Trace& trace, const PrintOptions& options)
      : document_(document), trace_(trace), options_(options), comments_(document) {
    const bool isComputation = trace.kind == TraceKind::computation;
    if (isComputation && options.computation && options.computation->inputs.size() == trace.inputs.size())
      computation_ = options.computation;
  }

  std::string write() {
    if (!trace_.history.empty()) {
      const auto& pass = trace_.history.back();
      line(0, fmt::format("# Constructed by {} (took {:.0f} milliseconds)", oneLine(pass.pass), pass.seconds * 1e3));
    }
    line(0, "import torch");
    line(0, "");
    signature();
    const LastUses uses(document_, trace_);
    const bool hasBorder = trace_.kind == TraceKind::joint && trace_.forwardCount < trace_.ops.size();
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      if (hasBorder && i == trace_.forwardCount) line(1, "# backward");
      writeOp(trace_.ops[i], 1);
      if (options_.del) writeDel(uses.values(i));
    }
    line(1, "return " + results() + meanings());
    return std::move(text_);
  }

 private:
  void line(std::size_t depth, std::string_view content) {
    text_.append(depth * 4, ' ');
    text_ += content;
    text_ += '\n';
  }

  /// "_3" represents None as the fourth parameter: "_" may be there but once.
  template <class Values>
  std::string parameters(const Values& values) const {
    std::size_t position = 0;
    return joined(values, [&](ValueId v) {
      const auto at = position++;
      return v ? document_.displayName(v) : fmt::format("_{}", at);
    });
  }

  void signature() {
    line(0, fmt::format("def {}({}):", name(trace_.kind), parameters(trace_.inputs)));
    const auto before = text_.size();
    for (std::size_t i = 0; i < trace_.inputs.size(); ++i)
      if (trace_.inputs[i]) line(1, "# " + inputComment(i));
    for (auto value : literals()) line(1, "# " + comments_.input(value, ValueKind::input));
    for (const auto* symbol : sizeSymbolsOf(document_, trace_)) line(1, "# " + printSizeSymbol(*symbol));
    if (options_.guards && trace_.kind == TraceKind::computation)
      for (const auto& guard : *options_.guards) line(1, "# guard: " + oneLine(guard));
    if (text_.size() > before || !trace_.inputs.empty()) line(0, "");
  }

  std::string inputComment(std::size_t position) {
    const auto value = trace_.inputs[position];
    if (trace_.kind == TraceKind::backward) {
      const bool isSaved = position < trace_.savedCount;
      return comments_.input(value, isSaved ? ValueKind::activation : ValueKind::cotangent,
                             isSaved ? "saved for backward" : "cotangent");
    }
    if (!computation_) return comments_.input(value, ValueKind::input);
    const auto& spec = computation_->inputs[position];
    const Argument* number = nullptr;
    if (options_.numbers && spec.kind == InputKind::user)
      if (const auto it = options_.numbers->find(spec.name); it != options_.numbers->end()) number = &it->second;
    return comments_.input(value, ValueKind::input, {}, &spec, number);
  }

  /// Tensors that are literals inside a formula: read, but neither made here nor flowing in.
  std::vector<ValueId> literals() const {
    std::unordered_set<ValueId> known(trace_.inputs.begin(), trace_.inputs.end());
    std::vector<ValueId> found;
    const auto read = [&](ValueId value) {
      if (!value || document_.value(value).kind != ValueKind::constant || document_.value(value).producer) return;
      if (known.insert(value).second) found.push_back(value);
    };
    for (auto op : trace_.ops)
      for (auto operand : document_.operands(op)) read(operand);
    for (auto output : trace_.outputs) read(output);
    return found;
  }

  void writeOp(BoundSymbolId op, std::size_t depth) {
    if (options_.source) writePlace(op, depth);
    const auto place = place_;  // what a body says of itself ends with it
    const auto* frame = frame_;
    const auto& bound = document_.boundSymbol(op);
    if (document_.symbol(bound.symbol).isHigherOrder) {
      const auto passed = implied::passedOperands(document_, op);
      for (const auto& argument : document_.pattern(bound.pattern).arguments) writeBodies(argument, passed, depth);
    }
    place_ = place;
    frame_ = frame;
    auto content = printCall(document_, op);
    auto comment = options_.comments ? comments_.op(op) : std::string();
    if (options_.ids) comment = fmt::format("#{}{}{}", op.index, comment.empty() ? "" : ", ", comment);
    if (!comment.empty()) content += "  # " + comment;
    line(depth, content);
  }

  /// The op's module and line of source where they are others than those of the op before. Sums of gradients of inputs
  /// have neither.
  void writePlace(BoundSymbolId op, std::size_t depth) {
    const auto& origin = document_.boundSymbol(op).origin;
    if (origin.role != Role::none && !origin.op) return;
    const auto place = placeOf(document_, op);
    if (place.module != place_) line(depth, place.module.empty() ? "# no module" : "# module: " + word(place.module));
    place_ = place.module;
    const bool isSame = place.frame && frame_ ? *place.frame == *frame_ : place.frame == frame_;
    if (!isSame) line(depth, place.frame ? "# " + frameText(*place.frame) : "# no source");
    frame_ = place.frame;
  }

  void writeBodies(const Argument& argument, const std::vector<ValueId>& passed, std::size_t depth) {
    if (argument.kind == Argument::Kind::subgraph) {
      const auto& body = document_.subgraph(SubgraphId(argument.integer));
      line(depth, fmt::format("def {}({}):", body.name, parameters(body.inputs)));
      const bool fits = passed.size() == body.inputs.size();
      for (std::size_t i = 0; i < body.inputs.size() && options_.comments; ++i)
        if (auto input = body.inputs[i])
          line(depth + 1, "# " + comments_.bodyInput(input, fits ? passed[i] : ValueId()));
      for (auto op : body.ops) writeOp(op, depth + 1);
      const auto outputs =
          joined(body.outputs, [&](const Argument& a) { return printArgument(document_, a, body.outputValues); });
      line(depth + 1, "return " + listItem(outputs, true, body.outputs.size()));
    }
    for (const auto& item : argument.items) writeBodies(item, passed, depth);
  }

  /// The caller keeps what it gave, but for the backward, whose saved values and cotangents go as soon as they can.
  void writeDel(std::span<const ValueId> values) {
    std::string names;
    for (auto value : values) {
      if (trace_.kind != TraceKind::backward && isInput(value)) continue;
      names += (names.empty() ? "" : ", ") + document_.displayName(value);
    }
    if (!names.empty()) line(1, "del " + names);
  }

  bool isInput(ValueId value) {
    if (inputs_.empty()) {
      inputs_.resize(document_.valueCount());
      for (auto input : trace_.inputs)
        if (input) inputs_[input] = true;
    }
    return inputs_[value];
  }

  std::string results() const {
    const std::span<const ValueId> all = trace_.outputs;
    if (computation_ && computation_->outputs.size() == all.size()) {
      const auto items = joined(computation_->outputs, [&](const OutputSpec& output) {
        return output.value ? document_.displayName(output.value) : printArgument(document_, output.literal, {});
      });
      return listItem(items, true, all.size());
    }
    const bool two = trace_.kind == TraceKind::forward || (trace_.kind == TraceKind::joint && trace_.resultCount > 0);
    if (!two) return tupleOf(document_, all);
    const auto count = std::min(trace_.resultCount, all.size());
    return tupleOf(document_, all.first(count)) + ", " + tupleOf(document_, all.subspan(count));
  }

  /// "  # output 0: mutation of buffer count": what a computation returns besides the user's results.
  std::string meanings() const {
    if (!computation_ || !options_.comments) return {};
    std::string text;
    for (std::size_t i = 0; i < computation_->outputs.size(); ++i)
      if (const auto meaning = outputMeaning(computation_->outputs[i]); !meaning.empty())
        text += fmt::format("{}output {}: {}", text.empty() ? "  # " : ", ", i, meaning);
    return text;
  }

  const Document& document_;
  const Trace& trace_;
  const PrintOptions& options_;
  CommentWriter comments_;
  const Computation* computation_ = nullptr;
  std::string text_;
  std::string place_;                   ///< module of the op before
  const SourceFrame* frame_ = nullptr;  ///< its line of source
  IdVector<ValueId, bool> inputs_;
};

}  // namespace

std::string printArgument(const Document& document, const Argument& argument, std::span<const ValueId> operands) {
  return CallText(document).argument(argument, operands);
}

std::string printSizeSymbol(const SizeSymbol& symbol) {
  auto text = fmt::format("{}: {}, symbolic size", symbol.name, symbol.hint);
  if (symbol.greatest) return text + fmt::format(" in [{}, {}]", symbol.least, *symbol.greatest);
  return symbol.least > 0 ? text + fmt::format(", at least {}", symbol.least) : text;
}

std::string printCall(const Document& document, BoundSymbolId op) { return CallText(document).call(op); }

std::string printComment(const Document& document, BoundSymbolId op) { return CommentWriter(document).op(op); }

std::string printTrace(const Document& document, const Trace& trace, const PrintOptions& options) {
  return TraceWriter(document, trace, options).write();
}

}  // namespace retrograd
