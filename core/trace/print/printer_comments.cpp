#include "core/trace/print/printer_comments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/enum_array.h"
#include "core/sizes/size_expression.h"
#include "core/trace/implied.h"
#include "core/trace/print/printer.h"
#include "core/trace/python_text.h"

namespace retrograd {
namespace {

/// Whether the expression of a size can be in a type: brackets in pairs, nothing that ends a string or a list.
bool isPlainExpression(std::string_view text) {
  int depth = 0;
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ||
        std::string_view("\"\\[]").find(c) != std::string_view::npos)
      return false;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0 || (depth == 0 && c == ',')) return false;
  }
  return depth == 0 && !text.empty();
}

std::string effectsText(std::uint8_t effects) {
  std::string text;
  for (const auto& [bit, name] : effect::names)
    if (effects & bit) text += (text.empty() ? "" : "+") + std::string(name);
  return text.empty() ? "none" : text;
}

bool contains(std::span<const ValueId> values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// A forward op that is the computation's op itself, on the same output, needs no second mention.
bool isItsOwnOrigin(const Document& document, BoundSymbolId op, BoundSymbolId origin) {
  if (document.boundSymbol(op).symbol != document.boundSymbol(origin).symbol) return false;
  const auto output = implied::firstOutput(document, op);
  return output && output == implied::firstOutput(document, origin);
}

}  // namespace

std::string typeText(const TensorMeta& meta) {
  static constexpr EnumArray<Layout, const char*, 7> layouts{"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                                             "sparse_bsr", "sparse_bsc", "mkldnn"};
  auto shown = meta;
  for (auto& symbol : shown.symbols)
    if (!symbol.empty() && !isPlainExpression(symbol)) symbol = "?";
  auto text = typeComment(shown);
  if (meta.strides.size() == meta.sizes.size() && meta.strides != contiguousStrides(meta.sizes))
    text += fmt::format(" strides [{}]", fmt::join(meta.strides, ", "));
  if (meta.offset != 0) text += fmt::format(" offset {}", meta.offset);
  if (meta.layout != Layout::strided) text += fmt::format(" {}", layouts[meta.layout]);
  if (meta.conjugate) text += " conj";
  if (meta.negative) text += " neg";
  if (meta.wrappedNumber) text += " number";
  return text;
}

/// "s77=4" for a size, "s77 > 5 is True" for a condition on sizes, else "number".
std::string CommentWriter::numberText(ValueId value) const {
  const auto text = document_.sizeExpression(value);
  const auto expression = SizeExpression::parse(text);
  const auto hint = expression ? expression->evaluate(document_.sizeHints()) : std::nullopt;
  if (!hint) return "number";
  return expression->isCondition() ? fmt::format("{} is {}", text, *hint ? "True" : "False")
                                   : fmt::format("{}={}", text, *hint);
}

std::string CommentWriter::typed(ValueId value, const InputSpec* spec) const {
  const auto& v = document_.value(value);
  const bool isObject = spec && !v.meta && (spec->kind == InputKind::token || spec->kind == InputKind::object);
  const auto type = v.meta                           ? typeText(document_.meta(v.meta))
                    : !isObject                      ? numberText(value)
                    : spec->kind == InputKind::token ? "token"
                                                     : "object";
  return fmt::format("{}: \"{}\"", document_.displayName(value), type);
}

/// Where a value lies, unless that is `base`'s storage, or its own where there is no base.
void CommentWriter::addStorage(std::vector<std::string>& parts, ValueId value, ValueId base) {
  const auto& v = document_.value(value);
  if (!v.storage) return;
  const auto [first, isNew] = shown_.try_emplace(v.storage, value);
  const bool asImplied = base ? document_.value(base).storage == v.storage : isNew;
  if (!asImplied) parts.push_back(isNew ? "own storage" : "shares " + document_.displayName(first->second));
  if (!isNew || (base && asImplied)) return;
  const auto& storage = document_.storage(v.storage);
  if (v.meta && storage.bytes != document_.meta(v.meta).storageBytes())
    parts.push_back(fmt::format("storage of {} bytes", storage.bytes));
  if (storage.external != implied::external(v.kind)) parts.push_back(storage.external ? "external" : "internal");
}

void CommentWriter::addOutput(std::vector<std::string>& parts, BoundSymbolId op, std::size_t output) {
  const auto id = document_.outputs(op)[output];
  if (!id) return;
  const auto& bound = document_.boundSymbol(op);
  const auto& value = document_.value(id);
  const bool isUnknownTensor = !value.meta && implied::isTensor(document_, op, output);
  const auto before = parts.size();
  if (!isUnknownTensor) parts.push_back(typed(id));
  if (contains(document_.operands(op), id)) {
    if (!document_.symbol(bound.symbol).isMutable) parts.push_back("returned as it is");
    return;
  }
  if (value.kind != implied::kind(bound)) parts.emplace_back(name(value.kind));
  addStorage(parts, id, implied::base(document_, op, output));
  if (value.version != implied::version(document_, op, output))
    parts.push_back(fmt::format("version {}", value.version));
  const bool isDerived = bound.origin.role != Role::none;  // the derived traces describe the computation's own values
  if (isDerived && value.requiresGrad != implied::requiresGrad(document_, op, output))
    parts.emplace_back(value.requiresGrad ? "requires grad" : "no grad");
  if (isUnknownTensor && parts.size() > before)
    parts.insert(parts.begin() + before, document_.displayName(id) + ": \"tensor\"");
}

std::string CommentWriter::originText(const Origin& origin) const {
  if (!origin.op)
    return origin.value ? fmt::format("{}: \"{}\"", document_.displayName(origin.value),
                                      name(document_.value(origin.value).kind))
                        : "";
  const auto op = document_.opName(origin.op);
  if (const auto output = implied::namingOutput(document_, origin))
    return fmt::format("{}: \"{}\"", document_.displayName(output), op);
  const auto node = document_.text(document_.boundSymbol(origin.op).name);
  return node.empty() ? pythonString(op) : fmt::format("{}: \"{}\"", word(node), op);
}

std::string CommentWriter::accumulation(BoundSymbolId op) const {
  const auto& origin = document_.boundSymbol(op).origin;
  std::string sum;
  const auto terms = document_.terms(origin);
  const auto before = implied::sumBefore(document_, op);
  if (before) sum = " = " + document_.displayName(before);
  for (auto term : before ? terms.last(1) : terms) sum += (sum.empty() ? " = " : " + ") + document_.displayName(term);
  return fmt::format("accumulation: gradient of {}{}", document_.displayName(origin.value), sum);
}

/// Whose gradient a backward op leads to. The operand's position is added where the value does not say.
void CommentWriter::addGradient(std::vector<std::string>& parts, const Origin& origin) const {
  if (origin.op && origin.value) parts.push_back("gradient of " + document_.displayName(origin.value));
  if (origin.operand != implied::operand(document_, origin)) parts.push_back(fmt::format("operand {}", origin.operand));
}

void CommentWriter::addOrigin(std::vector<std::string>& parts, BoundSymbolId op) const {
  const auto& bound = document_.boundSymbol(op);
  const auto& origin = bound.origin;
  const auto from = originText(origin);
  switch (origin.role) {
    case Role::none: return;
    case Role::forward:
      if (origin.op && !isItsOwnOrigin(document_, op, origin.op)) parts.push_back("computation: " + from);
      return;
    case Role::gradient: break;
    case Role::accumulation: parts.push_back(accumulation(op)); break;
    case Role::recompute:
      parts.push_back(origin.value ? "recompute of " + document_.displayName(origin.value) : "recompute");
      break;
    case Role::zero: parts.emplace_back("zeros for an unused output"); break;
    case Role::cotangent: parts.emplace_back("cotangent of an output"); break;
  }
  if (!from.empty()) parts.push_back("forward: " + from);
  if (origin.role == Role::gradient) addGradient(parts, origin);
  const auto named =
      origin.op ? implied::output(document_, origin, implied::namingOutput(document_, origin)) : std::int16_t{-1};
  if (origin.output != named)
    parts.push_back(origin.output < 0 ? "several outputs" : fmt::format("output {}", origin.output));
}

/// How the op runs, where that does not go without saying.
void CommentWriter::addState(std::vector<std::string>& parts, BoundSymbolId op) const {
  const auto& bound = document_.boundSymbol(op);
  if (bound.recomputed && bound.origin.role != Role::recompute) parts.emplace_back("recomputed");
  const auto original = bound.replays ? implied::firstOutput(document_, bound.replays) : ValueId();
  if (original && !(implied::replays(bound) && original == bound.origin.value))
    parts.push_back("replays " + document_.displayName(original));
  if (!bound.replays && implied::replays(bound)) parts.emplace_back("draws again");
  if (const auto usual = implied::effects(document_, op); bound.effects != usual)
    parts.push_back("effects " + effectsText(bound.effects));
  if (bound.gradMode != implied::gradMode(document_, bound))
    parts.emplace_back(bound.gradMode ? "grad mode" : "no_grad");
  if (bound.origin.role == Role::none && bound.name && document_.text(bound.name) != implied::nodeName(document_, op))
    parts.push_back("node " + word(document_.text(bound.name)));
}

std::string CommentWriter::op(BoundSymbolId op) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < document_.outputs(op).size(); ++i) addOutput(parts, op, i);
  addOrigin(parts, op);
  addState(parts, op);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string CommentWriter::bodyInput(ValueId id, ValueId passed) {
  const auto& value = document_.value(id);
  std::vector<std::string> parts{typed(id)};
  if (value.kind != ValueKind::activation) parts.emplace_back(name(value.kind));
  const auto base = passed && document_.isTensor(passed) && document_.isTensor(id) ? passed : ValueId();
  addStorage(parts, id, base);
  const auto usual = base && document_.value(base).storage == value.storage ? document_.value(base).version : 0;
  if (value.version != usual) parts.push_back(fmt::format("version {}", value.version));
  if (value.requiresGrad) parts.emplace_back("requires grad");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string CommentWriter::input(ValueId id, ValueKind usual, std::string_view role, const InputSpec* spec,
                                 const Argument* number) {
  const auto& value = document_.value(id);
  std::vector<std::string> parts{typed(id, spec)};
  auto kind = std::string(name(value.kind));
  const bool hasTarget = spec && !spec->target.empty() && spec->target != document_.displayName(id);
  if (hasTarget) kind += " " + word(spec->target);
  if (value.kind != usual && kind != role) parts.push_back(kind);
  else if (hasTarget) parts.push_back("target " + word(spec->target));
  if (!role.empty()) parts.emplace_back(role);
  if (spec)
    for (const auto& alias : spec->aliases) parts.push_back("also " + word(alias));
  if (spec && !spec->persistent) parts.emplace_back("not persistent");
  addStorage(parts, id, {});
  if (role.empty() || value.kind != ValueKind::activation) {  // what is saved was described where it was made
    if (value.version != 0) parts.push_back(fmt::format("version {}", value.version));
    if (value.requiresGrad != implied::requiresGrad(document_, value))
      parts.emplace_back(value.requiresGrad ? "requires grad" : "no grad");
  }
  if (number) parts.push_back("value " + printArgument(document_, *number, {}));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace retrograd
