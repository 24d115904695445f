// Ops: what they make, and the bodies of higher-order ones.
#include <algorithm>

#include "core/base/error.h"
#include "core/formats/text/text_reader.h"
#include "core/trace/effects.h"
#include "core/trace/implied.h"
#include "core/trace/symbol.h"

namespace retrograd::text {
namespace {

using Kind = Expression::Kind;

constexpr std::size_t maxOutputs = 65535;
constexpr int maxNesting = 32;

bool isGroup(const Expression& e) { return e.kind == Kind::tuple || e.kind == Kind::list; }

std::string returnNames(const Symbol& symbol) {
  std::string names;
  for (std::size_t i = 0; i < symbol.returns.size(); ++i) {
    const auto& name = symbol.returns[i].name;
    names += (i ? ", " : "") + (name.empty() ? "r" + std::to_string(i) : name);
  }
  return names;
}

}  // namespace

/// `(values, indices) = ...`, `[a, b] = ...`: the schema says how names group where there is one, else the
/// brackets.
TextReader::Targets TextReader::readTargets(const Statement& statement, const Symbol& symbol) const {
  Targets targets;
  const bool hasSchema = !symbol.schema.empty();
  const auto add = [&](const Expression& name) {
    const auto text = nameIn(source_, name);
    if (text.empty() || text.find('.') != std::string::npos)
      fail(source_, name.place, "expected a name, or '_' for a result that is None");
    if (targets.names.size() == maxOutputs) fail(source_, name.place, "expected at most 65535 results");
    targets.names.push_back(text == "_" ? std::string_view() : text);
    targets.places.push_back(name.place);
  };
  const auto addGroup = [&](const Expression& group) {
    targets.returns.push_back(static_cast<std::int32_t>(group.items.size()));
    for (const auto& item : group.items) add(item);
  };
  if (statement.targets.empty()) {
    if (hasSchema)
      for (const auto& entry : symbol.returns) {
        const bool isList = parseSchemaType(entry.type).list;
        targets.returns.push_back(isList ? 0 : -1);
        if (!isList) targets.names.emplace_back();
        if (!isList) targets.places.push_back(statement.place);
      }
  } else {
    const auto& left = statement.targets.front();
    const auto count = symbol.returns.size();
    const bool isOneList = hasSchema && count == 1 && parseSchemaType(symbol.returns[0].type).list;
    if (hasSchema && count == 0) fail(source_, left.place, "expected no result: " + symbol.schema);
    if (isOneList || (!hasSchema && left.kind == Kind::list)) {
      if (!isGroup(left)) fail(source_, left.place, "expected a list of names, such as [a, b]: " + symbol.schema);
      addGroup(left);
    } else {
      const std::vector<Expression> one{isGroup(left) ? Expression() : left};
      const auto& items = isGroup(left) ? left.items : one;
      if (hasSchema && items.size() != count)
        fail(source_, left.place,
             "expected " + std::to_string(count) +
                 (count == 1 ? " name" : " names, such as (" + returnNames(symbol) + ")") + ": " + symbol.schema);
      for (std::size_t i = 0; i < items.size(); ++i) {
        const bool mayBeList = !hasSchema || parseSchemaType(symbol.returns[i].type).list;
        if (isGroup(items[i]) && mayBeList) {
          addGroup(items[i]);
          continue;
        }
        add(items[i]);
        targets.returns.push_back(-1);
      }
    }
  }
  const bool isFlat = std::all_of(targets.returns.begin(), targets.returns.end(), [](std::int32_t n) { return n < 0; });
  if (isFlat) targets.returns.clear();
  return targets;
}

/// Values for the names on the left. An op that returns its operand says so, or writes it.
std::vector<ValueId> TextReader::defineOutputs(const Targets& targets, const Call& call, const OpNote& note,
                                               Scope& scope) {
  std::vector<ValueId> outputs;
  const bool writes = document_.symbol(call.symbol).isMutable;
  for (std::size_t i = 0; i < targets.names.size(); ++i) {
    const auto& name = targets.names[i];
    if (name.empty()) {
      outputs.emplace_back();
      continue;
    }
    const bool mayReturn = writes || std::any_of(note.values.begin(), note.values.end(), [&](const ValueNote& v) {
                             return v.name == name && v.returnedAsItIs;
                           });
    const auto before = mayReturn ? find(name, scope) : ValueId();
    const bool isReturned =
        before && std::find(call.operands.begin(), call.operands.end(), before) != call.operands.end();
    outputs.push_back(isReturned ? before : define(name, targets.places[i], scope));
  }
  return outputs;
}

/// The bound symbol of an earlier trace that this line shows again; none for a new one. The n-th of several such calls
/// is the n-th there.
BoundSymbolId TextReader::known(const Call& call, std::span<const ValueId> outputs) {
  // By the pattern's content: a pattern that holds a NaN has a new id each time, as it equals none.
  std::string key = std::to_string(call.symbol.index) + "/" + std::to_string(hashOf(call.pattern)) + "/";
  for (auto operand : call.operands) key += std::to_string(operand.index) + ",";
  key += "/";
  for (auto output : outputs) key += std::to_string(output.index) + ",";
  auto& ops = derivedOps_[key];
  const auto position = met_[key]++;
  if (position < ops.size()) return ops[position];
  ops.emplace_back(static_cast<std::int64_t>(document_.boundSymbolCount()));  // the one that is added next
  return {};
}

BoundSymbolId TextReader::readOp(const Statement& statement, Scope& scope) {
  auto call = readCall(statement.value, scope);
  const auto targets = readTargets(statement, document_.symbol(call.symbol));
  auto note = readOpNote(source_, statement.comment, targets.names).value_or(OpNote());
  if (note.values.empty() && !note.place.line) note.place = statement.place;
  const auto outputs = defineOutputs(targets, call, note, scope);
  for (const auto& value : note.values) {
    const std::size_t i = std::find(targets.names.begin(), targets.names.end(), value.name) - targets.names.begin();
    setType(outputs[i], value);
  }
  call.pattern.returns = targets.returns;
  const auto pattern = document_.internPattern(call.pattern);
  const bool isDerived = scope.kind != TraceKind::computation;
  if (isDerived)
    if (const auto before = known(call, outputs)) return before;

  BoundSymbol bound;
  bound.symbol = call.symbol;
  bound.pattern = pattern;
  bound.parent = scope.parent;
  std::vector<char> isNew(outputs.size(), 0);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i] || builder_.isDescribed(outputs[i])) continue;
    isNew[i] = 1;
    builder_.setDescribed(outputs[i]);
  }
  const auto op = document_.addBoundSymbol(bound, call.operands, outputs);
  places_.resize(document_.boundSymbolCount());
  places_[op] = statement.place;
  if (isDerived) document_.boundSymbol(op).origin = readOrigin(note, op, scope);
  describePlace(op, note, scope);
  for (const auto& body : call.bodies) readBody(op, body, scope);  // its result may share storage with something inside
  describeOutputs(op, targets, note, isNew, scope);
  describeState(op, note);
  if (!document_.symbol(call.symbol).known && !isDerived) builder_.addUnknown(op, statement.place.line);
  return op;
}

/// Kind, storage and so on of what an op makes, where its line is the first to say.
void TextReader::describeOutputs(BoundSymbolId op, const Targets& targets, const OpNote& note,
                                 const std::vector<char>& isNew, const Scope& scope) {
  const auto outputSpan = std::as_const(document_).outputs(op);
  const std::vector<ValueId> outputs(outputSpan.begin(), outputSpan.end());
  const bool isDerived = scope.kind != TraceKind::computation;
  const bool hasSchema = !document_.symbol(op).schema.empty();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto id = outputs[i];
    if (!id) continue;
    const auto named = std::find_if(note.values.begin(), note.values.end(),
                                    [&](const ValueNote& v) { return v.name == targets.names[i]; });
    const auto* said = named == note.values.end() ? nullptr : &*named;
    const bool isTensor = implied::isTensor(document_, op, i);
    if (hasSchema && said && said->type != ValueNote::Type::none && (said->type == ValueNote::Type::tensor) != isTensor)
      fail(source_, said->place,
           std::string("expected ") + (isTensor ? "the type of a tensor" : "\"number\"") + ", as the op returns one");
    if (isDerived && isTensor && !document_.isTensor(id))
      fail(source_, targets.places[i],
           "expected the type of '" + std::string(targets.names[i]) + "' behind the line, such as '# " +
               std::string(targets.names[i]) + ": \"f32[2, 3]\"'");
    const auto facts = said ? factsOf(id, *said, scope) : GivenFacts();
    if (!builder_.describeResult(op, i, facts, isNew[i] != 0, isDerived)) continue;
    auto& producer = (isDerived ? derivedProducers_ : producers_)[id];
    if (!producer) producer = op;
  }
}

/// Where an op of the computation is in the model; other ops are where that op does.
void TextReader::describePlace(BoundSymbolId op, const OpNote& note, const Scope& scope) {
  auto place = placeOf(scope);
  place.node = note.node;
  place.gradMode = note.gradMode;
  const bool isDerived = scope.kind != TraceKind::computation;
  builder_.describePlace(op, place, isDerived);
  const auto node = document_.text(document_.boundSymbol(op).name);
  if (!isDerived && !node.empty() && !implied::firstOutput(document_, op)) nodes_.emplace(node, op);
}

CallPlace TextReader::placeOf(const Scope& scope) {
  CallPlace place;
  if (!scope.module.empty()) place.module = document_.intern(scope.module);
  place.source = scope.source;
  return place;
}

/// How an op runs. Comes after its bodies, whose effects are its own.
void TextReader::describeState(BoundSymbolId op, const OpNote& note) {
  auto& bound = document_.boundSymbol(op);
  bound.recomputed = note.recomputed || bound.origin.role == Role::recompute;
  bound.effects = note.effects.value_or(implied::effects(document_, op));
  ValueId replayed;
  if (!note.replays.empty()) replayed = namedAnywhere(note.replays);
  else if (implied::replays(bound) && !note.drawsAnew) replayed = bound.origin.value;
  if (replayed) document_.boundSymbol(op).replays = original(replayed, bound.symbol);
}

void TextReader::readBody(BoundSymbolId op, const PendingBody& body, const Scope& around) {
  if (around.depth >= maxNesting) fail(source_, body.function->place, "expected at most 32 bodies in one another");
  const auto& function = *body.function;
  const auto passed = implied::passedOperands(document_, op);
  const bool fits = passed.size() == function.parameters.size();
  Scope scope;
  scope.outer = &around;
  scope.kind = around.kind;
  scope.parent = op;
  scope.module = around.module;
  scope.source = around.source;
  scope.depth = around.depth + 1;
  std::vector<ValueNote> literals;
  const auto notes = readHead(function, scope, literals);
  Subgraph graph;
  graph.name = document_.subgraph(body.id).name;
  for (std::size_t i = 0; i < function.parameters.size(); ++i)
    graph.inputs.push_back(readBodyParameter(function.parameters[i], i, notes[i] ? &*notes[i] : nullptr,
                                             fits ? passed[i] : ValueId(), scope));
  auto statement = function.body.begin();
  graph.ops = readStatements([&]() -> const Statement& { return *statement++; }, scope);
  Call results;
  const auto& result = function.body.back().value;
  const std::vector<Expression> one{isGroup(result) ? Expression() : result};
  for (const auto& item : isGroup(result) ? result.items : one) graph.outputs.push_back(argument(item, scope, results));
  graph.outputValues = std::move(results.operands);
  document_.subgraph(body.id) = std::move(graph);
}

/// An input of a body: the very value of the graph around it where it has its name and is handed on, else one of its
/// own.
ValueId TextReader::readBodyParameter(const Parameter& parameter, std::size_t position, const ValueNote* note,
                                      ValueId passed, Scope& scope) {
  if (!note && !passed && parameter.name == "_" + std::to_string(position)) return {};
  if (passed && find(parameter.name, *scope.outer) == passed) {
    scope.names.insert(parameter.name, {passed, parameter.place.line});
    return passed;
  }
  const auto id = define(parameter.name, parameter.place, scope);
  if (note) setType(id, *note);
  builder_.setDescribed(id);
  auto& value = document_.value(id);
  if (!note && passed) value.meta = document_.value(passed).meta;
  builder_.setTensor(id, note ? note->type == ValueNote::Type::tensor : !passed || builder_.standsForTensor(passed));
  value.kind = note && note->kind ? *note->kind : ValueKind::activation;
  const auto base = passed && document_.isTensor(passed) && document_.isTensor(id) ? passed : ValueId();
  builder_.setStorage(id, note ? factsOf(id, *note, scope) : GivenFacts(), base);
  auto& described = document_.value(id);
  const bool shares = base && document_.value(base).storage == described.storage;
  described.version = note && note->version ? *note->version : shares ? document_.value(base).version : 0;
  described.requiresGrad = note && note->requiresGrad.value_or(false);
  return id;
}

}  // namespace retrograd::text
