#include "core/trace/diff/diff_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "core/trace/print/printer.h"
#include "core/trace/print/printer_comments.h"
#include "core/trace/python_text.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

using Kind = DiffRow::Kind;
using Part = DiffRow::Part;

constexpr std::array<std::pair<std::uint16_t, std::string_view>, 12> names{{{change::op, "op"},
                                                                            {change::arguments, "arguments"},
                                                                            {change::results, "results"},
                                                                            {change::dtype, "dtype"},
                                                                            {change::shape, "shape"},
                                                                            {change::memory, "memory"},
                                                                            {change::device, "device"},
                                                                            {change::module, "module"},
                                                                            {change::origin, "origin"},
                                                                            {change::gradient, "gradient"},
                                                                            {change::saved, "saved"},
                                                                            {change::recomputed, "recomputed"}}};

ValueId valueOf(const TraceDiff& diff, const DiffRow& row, Side side) {
  const auto place = side == Side::left ? row.left : row.right;
  const auto& trace = *diff.side(side).trace;
  const auto& values = row.part == Part::input ? trace.inputs : trace.outputs;
  return place < 0 || row.part == Part::op ? ValueId() : values[place];
}

std::string nameOf(const Document& document, ValueId value) { return value ? document.displayName(value) : "None"; }

/// What a printed type says, in the parts that can change one by one.
struct TypeText {
  std::string dtype, shape, memory, device;
};
TypeText typeTextOf(const TensorMeta& meta) {
  auto plain = meta;
  plain.device = {};
  plain.strides = contiguousStrides(meta.sizes);
  plain.offset = 0;
  plain.layout = Layout::strided;
  plain.conjugate = plain.negative = plain.wrappedNumber = false;
  const auto type = typeText(plain);  // "cpu f32[2, 3]"
  const auto bracket = type.find('[');
  TypeText text{std::string(shortName(meta.dtype)),
                bracket == std::string::npos ? "[]" : type.substr(bracket),
                {},
                toString(meta.device)};
  auto laid = meta;
  laid.device = {};
  const auto whole = typeText(laid);
  text.memory = whole.size() > type.size() ? whole.substr(type.size() + 1) : "contiguous";
  return text;
}

/// Types of what the sides make, or of the inputs, where they differ first in `part`.
std::string typeChange(const TraceDiff& diff, const DiffRow& row, std::string TypeText::* part) {
  const auto &a = *diff.left.document, &b = *diff.right.document;
  std::vector<ValueId> here, there;
  if (row.part == Part::op) {
    const auto left = a.outputs(diff.op(row, Side::left)), right = b.outputs(diff.op(row, Side::right));
    here.assign(left.begin(), left.end());
    there.assign(right.begin(), right.end());
  } else {
    here = {valueOf(diff, row, Side::left)};
    there = {valueOf(diff, row, Side::right)};
  }
  for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i) {
    if (!here[i] || !there[i] || !a.isTensor(here[i]) || !b.isTensor(there[i])) continue;
    const auto x = typeTextOf(a.meta(here[i])), y = typeTextOf(b.meta(there[i]));
    if (x.*part != y.*part) return fmt::format("{} -> {}", x.*part, y.*part);
  }
  return {};
}

/// Operands that do not match; nothing where only literals differ, which the lines show.
std::string operandChange(const TraceDiff& diff, const DiffRow& row) {
  const auto &a = *diff.left.document, &b = *diff.right.document;
  const auto here = a.operands(diff.op(row, Side::left)), there = b.operands(diff.op(row, Side::right));
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(here.size(), there.size()) && parts.size() < 4; ++i)
    if (!diff.pairs->same(here[i], there[i]))
      parts.push_back(fmt::format("{} -> {}", nameOf(a, here[i]), nameOf(b, there[i])));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string originText(const Document& document, BoundSymbolId op) {
  const auto& origin = document.boundSymbol(op).origin;
  std::string text(name(origin.role));
  if (origin.op) text += fmt::format(" of {}", document.opName(origin.op));
  if (origin.operand >= 0) text += fmt::format(", operand {}", origin.operand);
  if (origin.output >= 0) text += fmt::format(", output {}", origin.output);
  return text;
}

bool keepsGradient(const Document& document, BoundSymbolId op) {
  for (auto output : document.outputs(op))
    if (output && document.value(output).requiresGrad) return true;
  return false;
}

std::string detail(const TraceDiff& diff, const DiffRow& row, std::uint16_t bit) {
  const auto &a = *diff.left.document, &b = *diff.right.document;
  const auto left = diff.op(row, Side::left), right = diff.op(row, Side::right);
  const auto words = [](const std::string& x, const std::string& y) {
    return x == y ? std::string() : fmt::format("{} -> {}", x, y);
  };
  switch (bit) {
    case change::op: return words(a.opName(left), b.opName(right));
    case change::arguments: return operandChange(diff, row);
    case change::results:
      return row.part == Part::op
                 ? fmt::format("{} -> {}", a.outputs(left).size(), b.outputs(right).size())
                 : words(nameOf(a, valueOf(diff, row, Side::left)), nameOf(b, valueOf(diff, row, Side::right)));
    case change::dtype: return typeChange(diff, row, &TypeText::dtype);
    case change::shape: return typeChange(diff, row, &TypeText::shape);
    case change::memory: return typeChange(diff, row, &TypeText::memory);
    case change::device: return typeChange(diff, row, &TypeText::device);
    case change::module:
      return words(word(a.text(a.boundSymbol(left).module)), word(b.text(b.boundSymbol(right).module)));
    case change::origin: return words(originText(a, left), originText(b, right));
    case change::gradient:
      if (row.part == Part::op)
        return keepsGradient(a, left) == keepsGradient(b, right) ? "grad mode"
               : keepsGradient(a, left)                          ? "required -> not required"
                                                                 : "not required -> required";
      return a.value(valueOf(diff, row, Side::left)).requiresGrad ? "required -> not required"
                                                                  : "not required -> required";
    case change::recomputed:
      return b.boundSymbol(right).recomputed ? "runs in the forward -> runs again in the backward"
                                             : "runs again in the backward -> runs in the forward";
    case change::saved:
      return diff.keeps(Side::left, left) ? "saved for the backward -> not saved"
                                          : "not saved -> saved for the backward";
    default: return {};
  }
}

}  // namespace

std::vector<std::string_view> changeNames(std::uint16_t changes) {
  std::vector<std::string_view> found;
  for (const auto& [bit, name] : names)
    if (changes & bit) found.push_back(name);
  return found;
}

std::vector<std::string> describeChanges(const TraceDiff& diff, const DiffRow& row) {
  std::vector<std::string> texts;
  if (row.kind == Kind::movedAway) texts.push_back(fmt::format("moved to line {}", row.right + 1));
  if (row.kind == Kind::movedHere) texts.push_back(fmt::format("moved from line {}", row.left + 1));
  for (const auto& [bit, name] : names) {
    if (!(row.changes & bit)) continue;
    const auto more = detail(diff, row, bit);
    texts.push_back(more.empty() ? std::string(name) : fmt::format("{}: {}", name, more));
  }
  return texts;
}

std::string codeLine(const Document& document, BoundSymbolId op) {
  const auto* frame = shownFrame(sourceOf(document, op));
  if (!frame) return {};
  const auto name = frame->file.substr(frame->file.rfind('/') + 1);
  return fmt::format("{}:{}{}", name, frame->line, frame->function.empty() ? "" : " in " + frame->function);
}

std::string diffLine(const TraceDiff& diff, const DiffRow& row, Side side, bool comment) {
  const auto& document = *diff.side(side).document;
  if (row.part != Part::op) {
    const auto place = side == Side::left ? row.left : row.right;
    if (place < 0) return {};
    const auto value = valueOf(diff, row, side);
    if (row.part == Part::result) return "return " + nameOf(document, value);
    const auto meta = document.value(value).meta;
    return fmt::format("{}: \"{}\"", nameOf(document, value), meta ? typeText(document.meta(meta)) : "number");
  }
  const auto op = diff.op(row, side);
  if (!op) return {};
  auto behind = comment ? printComment(document, op) : std::string();
  if (const auto line = comment && row.kind != Kind::same ? codeLine(document, op) : std::string(); !line.empty())
    behind += (behind.empty() ? "" : ", ") + line;
  return printCall(document, op) + (behind.empty() ? "" : "  # " + behind);
}

std::string summaryOf(const TraceDiff& diff) {
  const auto& c = diff.counts;
  if (diff.equal()) return fmt::format("equal: {} ops", diff.leftLines.ops.size());
  std::vector<std::string> parts;
  const auto say = [&](std::size_t count, const char* what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
  };
  say(c.changed, "changed");
  say(c.onlyLeft, "only in the first");
  say(c.onlyRight, "only in the second");
  say(c.moved, "moved");
  parts.push_back(fmt::format("{} the same", c.same));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::pair<std::size_t, std::size_t>> hunksOf(const TraceDiff& diff, std::size_t context) {
  std::vector<std::pair<std::size_t, std::size_t>> hunks;
  for (std::size_t i = 0; i < diff.rows.size(); ++i) {
    if (diff.rows[i].kind == Kind::same) continue;
    const auto begin = i > context ? i - context : 0,
               end = std::min(diff.rows.size(), i + std::min(context, diff.rows.size()) + 1);
    if (!hunks.empty() && begin <= hunks.back().second) hunks.back().second = end;
    else hunks.emplace_back(begin, end);
  }
  return hunks;
}

}  // namespace retrograd
