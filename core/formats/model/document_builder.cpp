#include "core/formats/model/document_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/tensor_meta.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/model/schema_arguments.h"
#include "core/trace/implied.h"
#include "core/trace/symbol.h"

namespace retrograd {
namespace {

/// The holes of an argument, moved from one list of operands to the end of another.
void moveHoles(Argument& argument, const std::vector<ValueId>& from, std::vector<ValueId>& to) {
  if (argument.kind == Argument::Kind::operand) {
    to.push_back(from.at(static_cast<std::size_t>(argument.integer)));
    argument.integer = std::ssize(to) - 1;
  }
  for (auto& item : argument.items) moveHoles(item, from, to);
}

}  // namespace

ValueId DocumentBuilder::named(std::string_view name) {
  if (const auto* known = values_.find(name)) return *known;
  Value value;
  value.name = document_->intern(name);
  const auto id = document_->addValue(value);
  described_.push_back(0);
  tensors_.push_back(0);
  values_.insert(document_->text(value.name), id);
  return id;
}

ValueId DocumentBuilder::define(std::string_view name) {
  auto id = named(name);
  for (int& suffix = suffixes_[std::string(name)]; isDescribed(id);) id = named(fmt::format("{}_{}", name, ++suffix));
  setDescribed(id);
  return id;
}

void DocumentBuilder::setType(ValueId value, const TensorMeta& meta) {
  const auto refuse = [](std::string message) { badInput(std::move(message)); };
  const auto isNegative = [](std::int64_t number) { return number < 0; };
  if (meta.sizes.size() > maxRank) refuse(fmt::format("a tensor of {} dimensions", meta.sizes.size()));
  if (std::any_of(meta.sizes.begin(), meta.sizes.end(), isNegative) ||
      std::any_of(meta.strides.begin(), meta.strides.end(), isNegative))
    refuse("a tensor with a negative size or stride: " + typeComment(meta));
  checkExtent(meta);
  document_->value(value).meta = document_->internMeta(meta);
  tensors_[value] = 1;
}

void DocumentBuilder::describeInput(ValueId id, const GivenFacts& facts) {
  setDescribed(id);
  document_->value(id).kind = facts.kind.value_or(ValueKind::input);
  document_->value(id).version = facts.version.value_or(0);
  setStorage(id, facts, {});
  auto& value = document_->value(id);
  value.requiresGrad = facts.requiresGrad.value_or(implied::requiresGrad(*document_, value));
}

void DocumentBuilder::setStorage(ValueId id, const GivenFacts& facts, ValueId base) {
  auto& value = document_->value(id);
  if (!value.meta) return;
  const auto with = facts.shares ? facts.shares : facts.ownStorage ? ValueId() : base;
  const auto shared = with ? document_->value(with).storage : StorageId();
  if (value.storage) {
    if (shared && shared != value.storage) joinStorages(shared, value.storage);
    return;
  }
  if (shared) {
    value.storage = shared;
  } else {
    const auto bytes = facts.storageBytes ? *facts.storageBytes : document_->meta(value.meta).storageBytes();
    value.storage = document_->addStorage(bytes, id, facts.external.value_or(implied::external(value.kind)));
    members_.resize(document_->storageCount());
  }
  members_[value.storage].push_back(id);
}

void DocumentBuilder::joinStorages(StorageId from, StorageId to) {
  auto& moved = members_[from];
  auto& all = members_[to];
  for (auto id : moved) document_->value(id).storage = to;
  all.insert(all.end(), moved.begin(), moved.end());
  moved.clear();
}

SymbolId DocumentBuilder::symbol(std::string_view target) {
  const auto [known, isNew] = symbols_.try_emplace(std::string(target));
  if (isNew) known->second = document_->internSymbol(resolveCall(target, lookup_));
  return known->second;
}

void DocumentBuilder::setArguments(GraphCall& call, std::vector<GivenArgument> given,
                                   const std::function<std::string(std::size_t)>& textOf) const {
  const auto& symbol = document_->symbol(call.symbol);
  auto& pattern = call.pattern;
  if (symbol.schema.empty()) {
    bool isNamed = false;
    for (auto& argument : given) {
      isNamed |= !argument.name.empty();
      pattern.names.emplace_back(argument.name);
      pattern.arguments.push_back(std::move(argument.value));
    }
    if (!isNamed) pattern.names.clear();
    return;
  }
  constexpr auto npos = MisfitArgument::npos;
  std::vector<std::size_t> slots(symbol.arguments.size(), npos);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto& name = given[i].name;
    const int named = name.empty() ? static_cast<int>(i) : symbol.argumentIndex(name);
    if (named < 0) throw MisfitArgument(fmt::format("expected an argument of {}, found '{}'", symbol.schema, name), i);
    const auto slot = static_cast<std::size_t>(named);
    if (slot >= slots.size() || (name.empty() && symbol.arguments[slot].keywordOnly))
      throw MisfitArgument("expected fewer unnamed arguments for " + symbol.schema, i);
    if (slots[slot] != npos)
      throw MisfitArgument("expected argument '" + symbol.arguments[slot].name + "' to be given once", i);
    slots[slot] = i;
  }
  std::vector<ValueId> operands;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const auto& entry = symbol.arguments[slot];
    const auto i = slots[slot];
    if (i == npos && !entry.defaultValue)
      throw MisfitArgument("expected argument '" + entry.name + "' of " + symbol.schema, npos);
    pattern.arguments.push_back(
        i == npos ? Argument::ofMissing()
                  : placed(std::move(given[i].value), entry, call.operands, operands, [&] { return textOf(i); }, i));
  }
  call.operands = std::move(operands);
}

Argument DocumentBuilder::placed(Argument value, const SchemaEntry& entry, const std::vector<ValueId>& from,
                                 std::vector<ValueId>& operands, const std::function<std::string()>& text,
                                 std::size_t position) const {
  const auto type = parseSchemaType(entry.type);
  const auto firstHole = operands.size();
  moveHoles(value, from, operands);
  const auto refuse = [&](const std::string& found) {
    throw MisfitArgument("expected " + typeText(type) + " for argument '" + entry.name + "', found " + found, position);
  };
  for (auto hole = firstHole; hole < operands.size(); ++hole)
    if (standsForTensor(operands[hole]) && !takesTensor(type)) refuse("a tensor");
  const bool isNumber =
      value.isNumber() || (value.kind == Argument::Kind::operand && !standsForTensor(operands[firstHole]));
  try {
    conform(value, type, isNumber, "the argument");
  } catch (const Error&) {
    refuse(text());
  }
  return value;
}

BoundSymbolId DocumentBuilder::add(const GraphCall& call) {
  constexpr std::size_t most = 65535;
  if (call.operands.size() > most || call.results.size() > most)
    badInput(fmt::format("more than {} operands or results", most));
  BoundSymbol bound;
  bound.symbol = call.symbol;
  auto pattern = call.pattern;
  pattern.operandCount = static_cast<std::int32_t>(call.operands.size());
  bound.pattern = document_->internPattern(pattern);
  const auto op = document_->addBoundSymbol(bound, call.operands, call.results);
  const bool isDerived = call.origin.has_value();
  if (isDerived) {
    const auto origin = originOf(*call.origin, call.place);
    document_->boundSymbol(op).origin = origin;
  }
  describePlace(op, call.place, isDerived);
  for (std::size_t i = 0; i < call.results.size(); ++i) describeResult(op, i, {}, /*isNew=*/true, isDerived);
  document_->boundSymbol(op).effects = implied::effects(*document_, op);
  if (!document_->symbol(call.symbol).known && !isDerived) addUnknown(op, call.place.line);
  return op;
}

Origin DocumentBuilder::originOf(const GivenOrigin& given, const CallPlace& place) {
  Origin origin;
  origin.role = given.role;
  if (given.role == Role::none) return origin;
  if (given.op.empty()) {
    origin.value = named(given.value);
    if (!isDescribed(origin.value)) document_->value(origin.value).kind = ValueKind::cotangent;  // of another trace
    return origin;
  }
  origin.op = standIn(given.value, given.op, place);
  origin.output = implied::output(*document_, origin, named(given.value));
  return origin;
}

BoundSymbolId DocumentBuilder::standIn(const std::string& value, const std::string& op, const CallPlace& place) {
  const auto [known, isNew] = standIns_.try_emplace({value, op});
  if (!isNew) return known->second;
  BoundSymbol bound;
  bound.symbol = symbol(op);
  bound.pattern = document_->internPattern({});
  bound.module = place.module;
  bound.source = place.source;
  std::vector<ValueId> outputs;
  if (!value.empty()) {
    bound.name = document_->intern(value);
    outputs.push_back(named(value));
  }
  return known->second = document_->addBoundSymbol(bound, {}, outputs);
}

void DocumentBuilder::describePlace(BoundSymbolId op, const CallPlace& place, bool isDerived) {
  auto& bound = document_->boundSymbol(op);
  if (!isDerived) {
    bound.module = place.module;
    bound.source = place.source;
    const auto node = place.node.empty() ? std::string(implied::nodeName(*document_, op)) : place.node;
    if (!node.empty()) bound.name = document_->intern(node);
  } else if (bound.origin.op) {
    const auto& from = document_->boundSymbol(bound.origin.op);
    bound.module = from.module;
    bound.source = from.source;
    bound.parent = bound.origin.op;
  }
  bound.gradMode = place.gradMode.value_or(implied::gradMode(*document_, bound));
}

bool DocumentBuilder::describeResult(BoundSymbolId op, std::size_t result, const GivenFacts& facts, bool isNew,
                                     bool isDerived) {
  const auto id = std::as_const(*document_).outputs(op)[result];
  if (!id) return false;
  if (implied::isTensor(*document_, op, result)) tensors_[id] = 1;
  const auto operands = document_->operands(op);
  if (std::find(operands.begin(), operands.end(), id) != operands.end()) return false;
  auto& value = document_->value(id);
  if (isNew) {
    value.producer = op;
    value.kind = facts.kind.value_or(implied::kind(document_->boundSymbol(op)));
  }
  const bool hadStorage = value.storage.valid();  // a computation may leave types to later traces
  setStorage(id, facts, implied::base(*document_, op, result));
  auto& described = document_->value(id);
  if (isNew || !hadStorage) described.version = facts.version.value_or(implied::version(*document_, op, result));
  if (isDerived) described.requiresGrad = facts.requiresGrad.value_or(implied::requiresGrad(*document_, op, result));
  return true;
}

void DocumentBuilder::addUnknown(BoundSymbolId op, int line) {
  unknown_[document_->symbol(op).name].emplace_back(op, line);
}

std::vector<Problem> DocumentBuilder::problems() const {
  constexpr std::size_t most = 20;
  std::vector<Problem> problems;
  for (const auto& [name, places] : unknown_) {
    std::string lines;
    for (std::size_t i = 0; i < std::min(most, places.size()); ++i)
      lines += (i > 0 ? ", " : "line ") + std::to_string(places[i].second);
    problems.push_back({Problem::Severity::warning, unknownOpMessage(name), lines, places.front().first.index});
  }
  return problems;
}

}  // namespace retrograd
