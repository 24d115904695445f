#include "core/formats/model/document_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/model/schema_arguments.h"
#include "core/formats/safetensors/tensor_extent.h"
#include "core/trace/implied.h"
#include "core/trace/schema_type.h"

namespace retrograd {
namespace {

constexpr std::size_t maxValues = 65535;  ///< operands or results of an op

[[noreturn]] void fail(std::string message) { throw Error(ErrorCode::badInput, std::move(message)); }

/// The holes of an argument, moved from one list of operands to the end of another.
void moveHoles(Argument& argument, const std::vector<ValueId>& from, std::vector<ValueId>& to) {
  if (argument.kind == Argument::Kind::operand) {
    to.push_back(from.at(static_cast<std::size_t>(argument.integer)));
    argument.integer = static_cast<std::int64_t>(to.size()) - 1;
  }
  for (auto& item : argument.items) moveHoles(item, from, to);
}

}  // namespace

SymbolId DocumentBuilder::symbol(std::string_view target) {
  const auto [known, isNew] = symbols_.try_emplace(std::string(target));
  if (isNew) known->second = document_->internSymbol(resolveCall(target, lookup_));
  return known->second;
}

ValueId DocumentBuilder::named(std::string_view name) {
  const auto [known, isNew] = values_.try_emplace(std::string(name));
  if (isNew) {
    Value value;
    value.name = document_->intern(name);
    known->second = document_->addValue(value);
    tensors_.push_back(0);
  }
  return known->second;
}

ValueId DocumentBuilder::define(std::string_view name) {
  std::string unique(name);
  for (int& suffix = suffixes_[unique]; !defined_.insert(unique).second;) unique = fmt::format("{}_{}", name, ++suffix);
  return named(unique);
}

ValueId DocumentBuilder::defineInput(std::string_view name, const TensorMeta& meta, ValueKind kind) {
  const auto id = define(name);
  setType(id, meta);
  document_->value(id).kind = kind;
  setStorage(id, {});
  auto& value = document_->value(id);
  value.requiresGrad = implied::requiresGrad(*document_, value);
  return id;
}

void DocumentBuilder::setType(ValueId value, const TensorMeta& meta) {
  const auto isNegative = [](std::int64_t number) { return number < 0; };
  if (meta.sizes.size() > maxRank) fail(fmt::format("a tensor of {} dimensions", meta.sizes.size()));
  if (std::any_of(meta.sizes.begin(), meta.sizes.end(), isNegative) ||
      std::any_of(meta.strides.begin(), meta.strides.end(), isNegative))
    fail("a tensor with a negative size or stride: " + typeComment(meta));
  checkExtent(meta);
  document_->value(value).meta = document_->internMeta(meta);
  tensors_[value] = 1;
}

void DocumentBuilder::setStorage(ValueId id, ValueId base) {
  auto& value = document_->value(id);
  if (!value.meta || value.storage) return;
  const auto shared = base ? document_->value(base).storage : StorageId();
  value.storage =
      shared ? shared
             : document_->addStorage(document_->meta(value.meta).storageBytes(), id, implied::external(value.kind));
}

BoundSymbolId DocumentBuilder::add(GraphCall call) {
  BoundSymbol bound;
  bound.symbol = call.symbol;
  bound.pattern = document_->internPattern(patternOf(call));
  if (call.operands.size() > maxValues || call.results.size() > maxValues)
    fail(fmt::format("more than {} operands or results", maxValues));
  const auto op = document_->addBoundSymbol(bound, call.operands, call.results);
  if (call.origin) {
    const auto origin = originOf(*call.origin, call.source);
    document_->boundSymbol(op).origin = origin;
  }
  describePlace(op, call);
  for (std::size_t i = 0; i < call.results.size(); ++i) describeResult(op, i);
  document_->boundSymbol(op).effects = implied::effects(*document_, op);
  const auto& symbol = document_->symbol(call.symbol);
  if (!symbol.known && !call.origin) unknown_[symbol.name].emplace_back(op, call.line);
  return op;
}

CallPattern DocumentBuilder::patternOf(GraphCall& call) const {
  CallPattern pattern;
  if (document_->symbol(call.symbol).schema.empty()) {
    bool isNamed = false;
    for (auto& given : call.arguments) {
      isNamed |= !given.name.empty();
      pattern.names.push_back(std::move(given.name));
      pattern.arguments.push_back(std::move(given.value));
    }
    if (!isNamed) pattern.names.clear();
  } else {
    placeArguments(call, pattern);
  }
  pattern.operandCount = static_cast<std::int32_t>(call.operands.size());
  pattern.returns = call.returns;
  return pattern;
}

/// Into the order of the schema, operands likewise.
void DocumentBuilder::placeArguments(GraphCall& call, CallPattern& pattern) const {
  const auto& symbol = document_->symbol(call.symbol);
  std::vector<const GivenArgument*> slots(symbol.arguments.size(), nullptr);
  std::size_t next = 0;
  for (const auto& given : call.arguments) {
    const int named = given.name.empty() ? -1 : symbol.argumentIndex(given.name);
    if (!given.name.empty() && named < 0)
      fail("expected an argument of " + symbol.schema + ", found '" + given.name + "'");
    const auto slot = given.name.empty() ? next++ : static_cast<std::size_t>(named);
    if (slot >= slots.size() || (given.name.empty() && symbol.arguments[slot].keywordOnly))
      fail("expected fewer unnamed arguments for " + symbol.schema);
    if (slots[slot] != nullptr) fail("expected argument '" + symbol.arguments[slot].name + "' to be given once");
    slots[slot] = &given;
  }
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto& entry = symbol.arguments[i];
    if (slots[i] == nullptr && !entry.defaultValue) fail("expected argument '" + entry.name + "' of " + symbol.schema);
    pattern.arguments.push_back(slots[i] == nullptr ? Argument::ofMissing()
                                                    : placed(*slots[i], entry, call.operands, operands));
  }
  call.operands = std::move(operands);
}

Argument DocumentBuilder::placed(const GivenArgument& given, const SchemaEntry& entry, const std::vector<ValueId>& from,
                                 std::vector<ValueId>& operands) const {
  const auto type = parseSchemaType(entry.type);
  const auto firstHole = operands.size();
  auto value = given.value;
  moveHoles(value, from, operands);
  const auto refuse = [&](const std::string& found) {
    fail("expected " + typeText(type) + " for argument '" + entry.name + "', found " + found);
  };
  for (auto hole = firstHole; hole < operands.size(); ++hole)
    if (standsForTensor(operands[hole]) && !takesTensor(type)) refuse("a tensor");
  const bool isNumber =
      value.isNumber() || (value.kind == Argument::Kind::operand && !standsForTensor(operands[firstHole]));
  try {
    conform(value, type, isNumber, given.text);
  } catch (const Error&) {
    refuse("'" + given.text + "'");
  }
  return value;
}

Origin DocumentBuilder::originOf(const GivenOrigin& given, SourceStackId source) {
  Origin origin;
  origin.role = given.role;
  if (given.role == Role::none) return origin;
  if (given.op.empty()) {
    origin.value = named(given.value);
    if (auto& value = document_->value(origin.value); !defined_.contains(given.value))
      value.kind = ValueKind::cotangent;  // of a trace that is not here
    return origin;
  }
  origin.op = standIn(given, source);
  origin.output = implied::output(*document_, origin, named(given.value));
  return origin;
}

/// In place of an op of the computation: one of that name, which makes a value of that name.
BoundSymbolId DocumentBuilder::standIn(const GivenOrigin& given, SourceStackId source) {
  const auto [known, isNew] = standIns_.try_emplace({given.value, given.op});
  if (!isNew) return known->second;
  BoundSymbol bound;
  bound.symbol = symbol(given.op);
  bound.pattern = document_->internPattern({});
  bound.source = source;
  bound.name = document_->intern(given.value);
  return known->second = document_->addBoundSymbol(bound, {}, std::array{named(given.value)});
}

/// Where an op of the computation is in the program; a derived op is where its origin is.
void DocumentBuilder::describePlace(BoundSymbolId op, const GraphCall& call) {
  auto& bound = document_->boundSymbol(op);
  if (!call.origin) {
    bound.source = call.source;
    if (const auto node = implied::nodeName(*document_, op); !node.empty()) bound.name = document_->intern(node);
  } else if (bound.origin.op) {
    const auto& from = document_->boundSymbol(bound.origin.op);
    bound.module = from.module;
    bound.source = from.source;
    bound.parent = bound.origin.op;
  }
  bound.gradMode = call.gradMode && implied::gradMode(*document_, bound);
}

void DocumentBuilder::describeResult(BoundSymbolId op, std::size_t result) {
  const auto id = std::as_const(*document_).outputs(op)[result];
  if (!id) return;
  if (implied::isTensor(*document_, op, result)) tensors_[id] = 1;
  const auto operands = document_->operands(op);
  if (std::find(operands.begin(), operands.end(), id) != operands.end()) return;
  auto& value = document_->value(id);
  value.producer = op;
  value.kind = implied::kind(document_->boundSymbol(op));
  setStorage(id, implied::base(*document_, op, result));
  document_->value(id).version = implied::version(*document_, op, result);
  const bool isDerived = document_->boundSymbol(op).origin.role != Role::none;
  if (isDerived) document_->value(id).requiresGrad = implied::requiresGrad(*document_, op, result);
}

std::vector<Problem> DocumentBuilder::problems() const {
  std::vector<Problem> problems;
  constexpr std::size_t most = 20;
  for (const auto& [name, places] : unknown_) {
    std::string lines;
    for (std::size_t i = 0; i < std::min(most, places.size()); ++i)
      lines += (i > 0 ? ", " : "line ") + std::to_string(places[i].second);
    problems.push_back({Problem::Severity::warning, unknownOpMessage(name), lines, places.front().first.index});
  }
  return problems;
}

}  // namespace retrograd
