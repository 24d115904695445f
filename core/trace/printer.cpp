#include "core/trace/printer.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "core/trace/call.h"
#include "core/trace/last_use.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

std::string real(double d) {
  if (std::isnan(d)) return "float('nan')";
  if (std::isinf(d)) return d > 0 ? "float('inf')" : "-float('inf')";
  auto text = fmt::format("{}", d);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string pythonString(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else
      out += c;
  }
  return out + "\"";
}

template <class Range, class Show>
std::string joined(const Range& range, Show&& show) {
  std::string text;
  for (const auto& item : range) {
    if (!text.empty()) text += ", ";
    text += show(item);
  }
  return text;
}

std::string listItem(std::string_view items, bool tuple, std::size_t count) {
  if (tuple) return fmt::format("({}{})", items, count == 1 ? "," : "");
  return fmt::format("[{}]", items);
}

std::string tupleOf(const Document& document, std::span<const ValueId> values) {
  return listItem(joined(values, [&](ValueId v) { return document.displayName(v); }), true, values.size());
}

/// Left of the "=": one name, or a tuple in which list returns stand in brackets. What is not made is "_".
std::string targets(const Document& document, BoundSymbolId op) {
  const auto outputs = document.outputs(op);
  const auto& returns = document.pattern(document.boundSymbol(op).pattern).returns;
  const auto show = [&](ValueId v) { return v ? document.displayName(v) : std::string("_"); };
  if (returns.empty()) {
    const auto names = joined(outputs, show);
    return outputs.size() > 1 ? "(" + names + ")" : names;
  }
  std::size_t next = 0;
  const auto names = joined(returns, [&](std::int32_t count) {
    const auto n = std::min(count < 0 ? 1 : static_cast<std::size_t>(count), outputs.size() - next);
    const auto group = outputs.subspan(next, n);
    next += n;
    return count < 0 ? joined(group, show) : "[" + joined(group, show) + "]";
  });
  return returns.size() > 1 ? "(" + names + ")" : names;
}

/// "s77=4" for a size, "s77 > 5 is True" for a condition on sizes, else "number".
std::string numberComment(const Document& document, ValueId value) {
  const auto text = document.sizeExpression(value);
  const auto expression = SizeExpression::parse(text);
  const auto hint = expression ? expression->evaluate(document.sizeHints()) : std::nullopt;
  if (!hint) return "number";
  return expression->isCondition() ? fmt::format("{} is {}", text, *hint ? "True" : "False") : fmt::format("{}={}", text, *hint);
}

std::string typed(const Document& document, ValueId value) {
  const auto& v = document.value(value);
  return fmt::format("{}: \"{}\"", document.displayName(value), v.meta ? typeComment(document.meta(v.meta)) : numberComment(document, value));
}

/// `t0: "torch.ops.aten.linear.default"`, or, where the origin is a graph input, `w: "parameter"`.
std::string originText(const Document& document, const Origin& origin) {
  if (!origin.op)
    return origin.value ? fmt::format("{}: \"{}\"", document.displayName(origin.value), name(document.value(origin.value).kind)) : "";
  const auto outputs = document.outputs(origin.op);
  const auto output =
      origin.output > 0 && static_cast<std::size_t>(origin.output) < outputs.size() ? static_cast<std::size_t>(origin.output) : 0;
  const auto op = document.opName(origin.op);
  return outputs.empty() ? pythonString(op) : fmt::format("{}: \"{}\"", document.displayName(outputs[output]), op);
}

std::string accumulationText(const Document& document, const Origin& origin) {
  std::string sum;
  for (auto term : document.terms(origin)) sum += (sum.empty() ? " = " : " + ") + document.displayName(term);
  return fmt::format("accumulation: gradient of {}{}", document.displayName(origin.value), sum);
}

std::vector<std::string> originComments(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto& origin = bound.origin;
  std::vector<std::string> parts;
  const auto from = originText(document, origin);
  switch (origin.role) {
    case Role::none:
      return {};
    case Role::forward:
      // The op itself, where the file has it just so, needs no second mention.
      if (origin.op && document.boundSymbol(origin.op).symbol != bound.symbol) parts.push_back("computation: " + from);
      return parts;
    case Role::gradient:
      break;
    case Role::accumulation:
      parts.push_back(accumulationText(document, origin));
      break;
    case Role::recompute:
      parts.push_back("recompute");
      break;
    case Role::zero:
      parts.push_back("zeros for an unused output");
      break;
    case Role::cotangent:
      parts.push_back("cotangent");
      break;
  }
  if (!from.empty()) parts.push_back("forward: " + from);
  return parts;
}

const SourceFrame* sourceOf(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto id = bound.source || !bound.origin.op ? bound.source : document.boundSymbol(bound.origin.op).source;
  return shownFrame(document.source(id));
}

/// Writes one trace; bodies of higher-order ops become nested functions before the call.
class TraceWriter {
 public:
  TraceWriter(const Document& document, const Trace& trace, const PrintOptions& options)
      : document_(document), trace_(trace), options_(options) {}

  std::string write() {
    if (!trace_.history.empty()) {
      const auto& pass = trace_.history.back();
      line(0, fmt::format("# Constructed by {} (took {:.0f} milliseconds)", pass.pass, pass.seconds * 1e3));
    }
    line(0, "import torch");
    line(0, "");
    signature();
    const LastUses uses(document_, trace_);
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      writeOp(trace_.ops[i], 1);
      if (options_.del) writeDel(uses.values(i));
    }
    line(1, "return " + results());
    return std::move(text_);
  }

 private:
  void line(std::size_t depth, std::string_view content) {
    text_.append(depth * 4, ' ');
    text_ += content;
    text_ += '\n';
  }

  void signature() {
    std::size_t position = 0;
    const auto show = [&](ValueId v) {  // "_" may stand but once in a signature
      const auto at = position++;
      return v ? document_.displayName(v) : fmt::format("_{}", at);
    };
    line(0, fmt::format("def {}({}):", name(trace_.kind), joined(trace_.inputs, show)));
    for (std::size_t i = 0; i < trace_.inputs.size(); ++i)
      if (auto v = trace_.inputs[i]) line(1, fmt::format("# {}{}", typed(document_, v), inputComment(v, i)));
    for (const auto* symbol : sizeSymbolsOf(document_, trace_)) line(1, "# " + printSizeSymbol(*symbol));
    if (!trace_.inputs.empty()) line(0, "");
  }

  std::string inputComment(ValueId value, std::size_t position) const {
    if (trace_.kind == TraceKind::backward) return position < trace_.savedCount ? ", saved for backward" : ", cotangent";
    const auto kind = document_.value(value).kind;
    return kind == ValueKind::input || kind == ValueKind::activation ? "" : fmt::format(", {}", name(kind));
  }

  void writeOp(BoundSymbolId op, std::size_t depth) {
    if (options_.source) writeSource(op, depth);
    for (const auto& argument : document_.pattern(document_.boundSymbol(op).pattern).arguments) writeBodies(argument, depth);
    auto content = printCall(document_, op);
    if (const auto comment = printComment(document_, op); !comment.empty()) content += "  # " + comment;
    line(depth, content);
  }

  void writeSource(BoundSymbolId op, std::size_t depth) {
    const auto* frame = sourceOf(document_, op);
    if (!frame || (lastFrame_ && *frame == *lastFrame_)) return;
    lastFrame_ = frame;
    const auto file = std::filesystem::path(frame->file).filename().string();
    line(depth, fmt::format("# {}:{}{}{}", file, frame->line, frame->code.empty() ? "" : ": ", frame->code));
  }

  void writeBodies(const Argument& argument, std::size_t depth) {
    if (argument.kind == Argument::Kind::subgraph) {
      const auto& body = document_.subgraph(SubgraphId(argument.integer));
      line(depth, fmt::format("def {}({}):", body.name, joined(body.inputs, [&](ValueId v) { return document_.displayName(v); })));
      for (auto op : body.ops) writeOp(op, depth + 1);
      const auto outputs = joined(body.outputs, [&](const Argument& a) { return printArgument(document_, a, body.outputValues); });
      line(depth + 1, "return " + listItem(outputs, true, body.outputs.size()));
    }
    for (const auto& item : argument.items) writeBodies(item, depth);
  }

  /// The caller keeps what it gave, but for the backward, whose saved values and cotangents go as soon as they can (spec C4).
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
        if (input) inputs_[static_cast<std::size_t>(input.index)] = true;
    }
    return inputs_[static_cast<std::size_t>(value.index)];
  }

  std::string results() const {
    const std::span<const ValueId> all = trace_.outputs;
    const bool two = trace_.kind == TraceKind::forward || (trace_.kind == TraceKind::joint && trace_.resultCount > 0);
    if (!two) return tupleOf(document_, all);
    const auto count = std::min(trace_.resultCount, all.size());
    return tupleOf(document_, all.first(count)) + ", " + tupleOf(document_, all.subspan(count));
  }

  const Document& document_;
  const Trace& trace_;
  const PrintOptions& options_;
  std::string text_;
  const SourceFrame* lastFrame_ = nullptr;
  std::vector<bool> inputs_;
};

}  // namespace

std::string printArgument(const Document& document, const Argument& argument, std::span<const ValueId> operands) {
  using Kind = Argument::Kind;
  static constexpr std::array<const char*, 4> memoryFormats{"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
  static constexpr std::array<const char*, 7> layouts{"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                                      "sparse_bsr", "sparse_bsc", "_mkldnn"};
  const auto index = static_cast<std::size_t>(argument.integer);
  switch (argument.kind) {
    case Kind::none:
    case Kind::missing:
      return "None";
    case Kind::operand:
      return index < operands.size() ? document.displayName(operands[index]) : "?";
    case Kind::boolean:
      return argument.integer ? "True" : "False";
    case Kind::integer:
      return argument.text.empty() ? std::to_string(argument.integer) : argument.text;
    case Kind::real:
      return argument.text.empty() ? real(argument.real) : argument.text;
    case Kind::complex:
      return fmt::format("complex({}, {})", real(argument.real), real(argument.imaginary));
    case Kind::string:
      return pythonString(argument.text);
    case Kind::device:
      return fmt::format("torch.device({})", pythonString(argument.text));
    case Kind::dtype:
      return fmt::format("torch.{}", torchName(static_cast<DType>(argument.integer)));
    case Kind::layout:
      return fmt::format("torch.{}", index < layouts.size() ? layouts[index] : "strided");
    case Kind::memoryFormat:
      return fmt::format("torch.{}", index < memoryFormats.size() ? memoryFormats[index] : "preserve_format");
    case Kind::subgraph:
      return document.subgraph(SubgraphId(argument.integer)).name;
    case Kind::op:
      return "torch.ops." + argument.text;
    case Kind::list:
      return "[" + joined(argument.items, [&](const Argument& a) { return printArgument(document, a, operands); }) + "]";
  }
  return "?";
}

std::string printSizeSymbol(const SizeSymbol& symbol) {
  auto text = fmt::format("{}: {}, symbolic size", symbol.name, symbol.hint);
  if (symbol.greatest) return text + fmt::format(" in [{}, {}]", symbol.least, *symbol.greatest);
  return symbol.least > 0 ? text + fmt::format(", at least {}", symbol.least) : text;
}

std::string printCall(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto& symbol = document.symbol(bound.symbol);
  const auto call = callArguments(symbol, document.pattern(bound.pattern));
  const auto operands = document.operands(op);
  std::string arguments = joined(call.positional, [&](const Argument* a) { return printArgument(document, *a, operands); });
  for (const auto& [key, argument] : call.keyword)
    arguments += fmt::format("{}{}={}", arguments.empty() ? "" : ", ", key, printArgument(document, *argument, operands));
  const auto left = targets(document, op);
  return fmt::format("{}{}{}({})", left, left.empty() ? "" : " = ", symbol.qualifiedName(), arguments);
}

std::string printComment(const Document& document, BoundSymbolId op) {
  std::vector<std::string> parts;
  for (auto output : document.outputs(op))
    if (output) parts.push_back(typed(document, output));
  for (auto& part : originComments(document, op)) parts.push_back(std::move(part));
  if (document.boundSymbol(op).recomputed && document.boundSymbol(op).origin.role != Role::recompute) parts.push_back("recomputed");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string printTrace(const Document& document, const Trace& trace, const PrintOptions& options) {
  return TraceWriter(document, trace, options).write();
}

}  // namespace retrograd
