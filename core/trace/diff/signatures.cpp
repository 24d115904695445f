#include "core/trace/diff/signatures.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/trace/print/printer_comments.h"
#include "core/trace/source.h"
#include "core/trace/symbol.h"

namespace retrograd {
namespace {

/// An argument as text in which operands are numbered; a real number by its bits, so that NaN equals NaN.
void encode(const Document& document, const Argument& argument, std::string& text) {
  text += fmt::format("{}:", static_cast<int>(argument.kind));
  switch (argument.kind) {
    case Argument::Kind::missing:
    case Argument::Kind::none: text.back() = '-'; break;
    case Argument::Kind::real:
    case Argument::Kind::complex: text += fmt::format("{:a},{:a}", argument.real, argument.imaginary); break;
    case Argument::Kind::subgraph: {
      const auto& body = document.subgraph(SubgraphId(argument.integer));
      text += fmt::format("{}|{}>", body.name, body.inputs.size());
      for (const auto& output : body.outputs) encode(document, output, text);
      break;
    }
    default: text += std::to_string(argument.integer); break;
  }
  if (!argument.text.empty()) text += fmt::format("'{}:{}'", argument.text.size(), argument.text);
  if (argument.kind != Argument::Kind::list) return;
  text += '[';
  for (const auto& item : argument.items) encode(document, item, text);
  text += ']';
}

}  // namespace

Signatures::Signatures(const DiffSide& left, const DiffSide& right) {
  for (auto side : bothSides) {
    auto& one = known(side);
    one.document = (side == Side::left ? left : right).document;
    one.parts = (side == Side::left ? left : right).parts;
    one.symbols.assign(one.document->symbolCount(), -1);
    one.modules.assign(one.document->stringCount() + 1, -1);
    one.types.assign(one.document->metaCount(), -1);
  }
}

std::int32_t Signatures::symbol(Side side, BoundSymbolId op) {
  const auto id = document(side).boundSymbol(op).symbol;
  auto& found = known(side).symbols[id];
  if (found < 0) found = number("op " + document(side).symbol(id).name);
  return found;
}

std::int32_t Signatures::module(Side side, BoundSymbolId op) {
  const auto id = document(side).boundSymbol(op).module;
  auto& found = known(side).modules[id.index + 1];
  if (found < 0) found = number("module " + std::string(document(side).text(id)));
  return found;
}

std::int32_t Signatures::call(Side side, BoundSymbolId op) {
  const auto& bound = document(side).boundSymbol(op);
  const auto [found, isNew] = known(side).calls.try_emplace({bound.symbol, bound.pattern}, -1);
  if (!isNew) return found->second;
  const auto& pattern = document(side).pattern(bound.pattern);
  const auto call = callArguments(document(side).symbol(bound.symbol), pattern);
  std::string text = "call ";
  for (const auto* argument : call.positional) encode(document(side), *argument, text += ' ');
  for (const auto& [name, argument] : call.keyword)
    encode(document(side), *argument, text += fmt::format(" {}=", name));
  bool grouped = false;
  for (auto n : pattern.returns) grouped |= n >= 0;  // single values alone are the same as no groups
  if (grouped)
    for (auto n : pattern.returns) text += fmt::format(" >{}", n);
  return found->second = number(text);
}

std::int32_t Signatures::code(Side side, BoundSymbolId op) {
  const auto* frame = shownFrame(sourceOf(document(side), op));
  if (!frame) return -1;
  const auto [found, isNew] = known(side).codes.try_emplace(frame->code, -1);
  if (isNew) found->second = number("code " + frame->code);
  return found->second;
}

std::int32_t Signatures::part(Side side, BoundSymbolId op) const {
  const auto& parts = known_[side].parts;
  return parts && static_cast<std::size_t>(op.index) < parts->size() ? (*parts)[op.index] : -1;
}

std::int32_t Signatures::flow(Side side, BoundSymbolId op) {
  const auto& here = document(side);
  std::vector<std::int32_t> from;
  for (auto operand : here.operands(op)) {
    if (!operand) {
      from.push_back(-1);
      continue;
    }
    const auto& value = here.value(operand);
    if (value.producer) {
      const auto outputs = here.outputs(value.producer);
      from.push_back(symbol(side, value.producer));
      from.push_back(static_cast<std::int32_t>(std::ranges::find(outputs, operand) - outputs.begin()));
    } else {
      const bool isNamed = value.kind == ValueKind::parameter || value.kind == ValueKind::buffer;
      from.push_back(number(fmt::format("input {} {}", static_cast<int>(value.kind),
                                        isNamed ? here.text(value.name) : std::string_view())));
      from.push_back(-1);
    }
  }
  return together(from);
}

std::int32_t Signatures::type(Side side, ValueId value) {
  if (!value) return -1;
  const auto& v = document(side).value(value);
  if (!v.meta) return number(fmt::format("no tensor {}", document(side).sizeExpression(value)));
  auto& found = known(side).types[v.meta];
  if (found < 0) found = number("type " + typeText(document(side).meta(v.meta)));
  return found;
}

std::int32_t Signatures::results(Side side, BoundSymbolId op) {
  std::vector<std::int32_t> types;
  for (auto output : document(side).outputs(op)) types.push_back(type(side, output));
  return together(types);
}

std::int32_t Signatures::together(const std::vector<std::int32_t>& numbers) {
  return tuples_.try_emplace(numbers, static_cast<std::int32_t>(tuples_.size())).first->second;
}

}  // namespace retrograd
