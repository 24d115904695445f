// Ops of a recording: symbols, arguments, results, links and hashes.
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/model/schema_arguments.h"
#include "core/formats/recording/recording_arguments.h"
#include "core/formats/recording/recording_hash.h"
#include "core/formats/recording/recording_stream.h"
#include "core/trace/effects.h"

namespace retrograd::recording {
namespace {

/// A symbol that says no more than what is done to its one operand.
Symbol writingSymbol(std::string_view name) {
  Symbol symbol;
  symbol.name = name;
  symbol.isMutable = true;
  SchemaEntry self;
  self.name = "self";
  self.type = "Tensor";
  self.aliasSet = 0;
  self.isWrite = true;
  symbol.arguments = {self};
  symbol.returns = {self};
  return symbol;
}

StringId textAt(Document& document, const Json& record, std::string_view key) {
  const Json* found = record.find(key);
  return found && found->isString() ? document.intern(found->text()) : StringId();
}

std::int32_t smallAt(const Json& record, std::string_view key) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(record.integerAt(key), 0, 1 << 30));
}

bool isNumber(const Json& value) {
  return value.kind() == Json::Kind::integer || value.kind() == Json::Kind::real ||
         value.kind() == Json::Kind::boolean || value.find("float") || value.find("complex");
}

}  // namespace

/// `runs`: by LibTorch. A call that nobody can make has a symbol of its own, as others of that name may run.
const StreamReader::Op& StreamReader::opOf(std::string_view name, bool runs) {
  const auto key = runs ? std::string(name) : "recorded." + std::string(name);
  auto [it, isNew] = ops_.try_emplace(key);
  Op& op = it->second;
  if (!isNew) return op;
  Symbol symbol;
  if (name.starts_with("recorded.")) {
    symbol = writingSymbol(name);
  } else if (runs) {
    symbol = resolveSymbol("torch.ops." + std::string(name), lookup_);
  } else {
    symbol.name = key;
  }
  op.symbol = document_.internSymbol(symbol);
  if (!symbol.schema.empty()) {
    for (const auto& argument : symbol.arguments) op.arguments.push_back(parseSchemaType(argument.type));
    for (const auto& one : symbol.returns) op.returns.push_back(parseSchemaType(one.type));
  }
  return op;
}

BoundSymbolId StreamReader::opNumbered(std::int64_t number) const { return entryOf(numbered_, number, "op"); }

/// Whether all of them can be made and are as the schema says.
bool StreamReader::readArguments(const Json& record, const Op& op, Call& call) {
  // Asked each time: to read an operand may add views, and with them symbols.
  const auto symbol = [&]() -> const Symbol& { return document_.symbol(op.symbol); };
  if (symbol().schema.empty()) return false;
  std::vector<const Json*> given(symbol().arguments.size(), nullptr);
  const auto positional = record.at("in").items();
  if (positional.size() > given.size()) return false;
  for (std::size_t i = 0; i < positional.size(); ++i) given[i] = &positional[i];
  if (const Json* keyed = record.find("kw"))
    for (const auto& [key, value] : keyed->members()) {
      const int position = symbol().argumentIndex(key);
      if (position < 0 || given[position]) return false;
      given[position] = &value;
    }
  ArgumentReader reader(call.operands, [this](std::int64_t number) { return use(number); });
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) {
      if (!symbol().arguments[i].defaultValue) return false;
      call.pattern.arguments.push_back(Argument::ofMissing());
      continue;
    }
    auto argument = reader.read(*given[i]);
    if (reader.metUnmakeable()) return false;
    try {
      conform(argument, op.arguments[i], argument.isNumber(), "a value");
    } catch (const Error&) {
      return false;
    }
    call.pattern.arguments.push_back(std::move(argument));
  }
  return true;
}

void StreamReader::readFreeArguments(const Json& record, Call& call) {
  call = {};
  ArgumentReader reader(call.operands, [this](std::int64_t number) { return use(number); });
  bool isNamed = false;
  for (const auto& value : record.at("in").items()) {
    call.pattern.arguments.push_back(reader.read(value));
    call.pattern.names.emplace_back();
  }
  if (const Json* keyed = record.find("kw"))
    for (const auto& [key, value] : keyed->members()) {
      call.pattern.arguments.push_back(reader.read(value));
      call.pattern.names.emplace_back(key);
      isNamed = true;
    }
  if (!isNamed) call.pattern.names.clear();
}

void StreamReader::output(const Json& value, Call& call) {
  constexpr std::size_t most = 65535;
  if (call.outputs.size() >= most) badInput("more than 65535 results");
  if (const Json* number = value.find("t")) {
    call.tensors.push_back(number->integer());
    call.values.push_back(define(number->integer()));
    call.outputs.push_back(call.values.back());
  } else {
    call.outputs.push_back(isNumber(value) ? document_.addValue(Value()) : ValueId());
  }
}

/// Whether they are as many as the schema says.
bool StreamReader::readOutputs(const Json& out, const Op& op, Call& call) {
  if (op.returns.empty()) return true;
  bool isGrouped = false;
  const auto one = [&](const Json& value, const SchemaType& type) {
    if (value.isArray() != type.list) return false;
    if (!type.list) {
      output(value, call);
      call.pattern.returns.push_back(-1);
      return true;
    }
    isGrouped = true;
    for (const auto& item : value.items()) output(item, call);
    call.pattern.returns.push_back(static_cast<std::int32_t>(value.items().size()));
    return true;
  };
  if (op.returns.size() == 1) {
    if (!one(out, op.returns[0])) return false;
  } else {
    if (!out.isArray() || out.items().size() != op.returns.size()) return false;
    for (std::size_t i = 0; i < op.returns.size(); ++i)
      if (!one(out.items()[i], op.returns[i])) return false;
  }
  if (!isGrouped) call.pattern.returns.clear();
  return true;
}

void StreamReader::readFreeOutputs(const Json& out, Call& call) {
  if (out.isArray())
    for (const auto& item : out.items()) readFreeOutputs(item, call);
  else if (out.find("t") || isNumber(out)) output(out, call);
}

/// Before the results are made, whose versions count them.
void StreamReader::noteWrites(const Op& op, const Call& call) {
  for (const auto position : writtenArguments(document_.symbol(op.symbol), call.pattern.arguments))
    if (position < call.pattern.arguments.size())
      forEachOperand(call.pattern.arguments[position], [&](std::size_t hole) {
        if (const auto memory = document_.value(call.operands[hole]).storage) {
          ++writesTo(memory);
          written_.push_back(memory);
        }
      });
}

void StreamReader::readChecks(const Json& record, const Call& call) {
  auto& op = recording_.ops.back();
  auto values = call.values;
  if (const Json* writes = record.find("writes"))
    for (const auto& number : writes->items()) values.push_back(tensor(number.integer()).current);
  op.checksBegin = static_cast<std::uint32_t>(recording_.checks.size());
  op.checkCount = static_cast<std::uint32_t>(values.size());
  const Json* hashes = record.find("hash");
  if (hashes && hashes->items().size() != values.size()) badInput("an op has another number of hashes than of results");
  for (std::size_t i = 0; i < values.size(); ++i) {
    RecordedHash check{values[i], {}};
    if (hashes && !hashes->items()[i].isNull()) check.hash = parseRecordingHash(hashes->items()[i].text());
    recording_.checks.push_back(check);
  }
}

/// The results of an op that nobody can run.
void StreamReader::readPuts(const Json& record, const Call& call) {
  const Json* names = record.find("values");
  if (!names) return;
  auto& op = recording_.ops.back();
  op.putsBegin = static_cast<std::uint32_t>(recording_.puts.size());
  auto values = call.values;
  if (const Json* writes = record.find("writes"))
    for (const auto& number : writes->items()) values.push_back(tensor(number.integer()).current);
  const auto given = names->items();
  for (std::size_t i = 0; i < given.size() && i < values.size(); ++i)
    if (given[i].isString() && values[i]) recording_.puts.push_back({values[i], std::string(given[i].text()), false});
  op.putCount = static_cast<std::uint32_t>(recording_.puts.size()) - op.putsBegin;
}

Origin StreamReader::originOf(const Json& record, BoundSymbolId self, StepOp& recorded) {
  Origin origin;
  switch (recorded.phase) {
    case Phase::forward:
    case Phase::loss:
      origin.role = Role::forward;
      origin.op = self;
      break;
    case Phase::recompute: origin.role = Role::recompute; break;
    case Phase::accumulation: origin.role = Role::accumulation; break;
    case Phase::backward:
    case Phase::hook: origin.role = Role::gradient; break;
    default: break;
  }
  for (const auto key : {"of", "repeats"})
    if (const Json* linked = record.find(key)) origin.op = opNumbered(linked->integer());
  if (origin.op && origin.op != self && origin.role == Role::none) origin.role = Role::gradient;
  return origin;
}

/// A backward op has the line and the module of its forward op, as in a derived trace, unless Python code of its own
/// ran: where the backward was called says little.
void StreamReader::takePlace(const StepOp& recorded, BoundSymbol& bound, BoundSymbolId self) const {
  const auto from = bound.origin.op;
  if (recorded.phase != Phase::backward || !from || from == self || recorded.function || recorded.hook) return;
  const auto& forward = document_.boundSymbol(from);
  if (forward.source) bound.source = forward.source;
  if (!bound.module) bound.module = forward.module;
}

void StreamReader::describe(const Json& record, BoundSymbol& bound, StepOp& recorded) {
  if (const Json* stack = record.find("stack")) bound.source = here_ = entryOf(stacks_, stack->integer(), "stack");
  if (const Json* module = record.find("module")) bound.module = entryOf(modules_, module->integer(), "module");
  bound.gradMode = gradMode_;
  recorded.phase = current_.phase;
  recorded.step = current_.step;
  recorded.backward = current_.backward;
  recorded.call = smallAt(record, "call");
  recorded.thread = smallAt(record, "thread");
  recorded.node = textAt(document_, record, "node");
  recorded.hook = textAt(document_, record, "hook");
  recorded.function = textAt(document_, record, "function");
  recorded.hasNode = record.find("seq") != nullptr;
  if (const Json* moves = record.find("moves")) recorded.moves = moves->boolean();
  isAside_ = recorded.phase == Phase::backward && !recorded.hasNode;
  if (const Json* kept = record.find("kept")) recorded.kept = kept->boolean();
  recorded.accumulates = textAt(document_, record, "accumulates");
  recorded.opaque = textAt(document_, record, "opaque");
  if (const Json* draws = record.find("rng")) recorded.generatorState = textAt(document_, *draws, "state");
}

void StreamReader::readOp(const Json& record) {
  const auto number = record.at("n").integer();
  if (number < 0 || static_cast<std::size_t>(number) != numbered_.size())
    badInput(fmt::format("has the number {} where {} follows", number, numbered_.size()));
  const auto name = record.at("op").text();
  StepOp recorded;
  BoundSymbol bound;
  recorded.number = number;
  describe(record, bound, recorded);
  Call call;
  written_.clear();
  const Op* op = &opOf(name, !recorded.opaque);
  bool runs = !recorded.opaque && readArguments(record, *op, call);
  const Json& out = record.at("out");
  if (runs) {
    noteWrites(*op, call);
    runs = readOutputs(out, *op, call);
  }
  if (!runs) {
    if (!recorded.opaque) {
      const bool isKnown = document_.symbol(op->symbol).known;
      recorded.opaque = document_.intern(isKnown ? "its arguments or results are not those of its schema"
                                                 : "it is not on the list of ops that a recording may name");
    }
    op = &opOf(name, false);
    readFreeArguments(record, call);
    readFreeOutputs(out, call);
  }
  call.pattern.operandCount = static_cast<std::int32_t>(call.operands.size());
  const auto& symbol = document_.symbol(op->symbol);
  bound.symbol = op->symbol;
  bound.effects = effectsOf(symbol, call.pattern.arguments);
  if (record.find("rng")) bound.effects |= effect::random;
  bound.pattern = document_.internPattern(call.pattern);
  const BoundSymbolId self(std::ssize(recording_.ops));
  bound.origin = originOf(record, self, recorded);
  if (recorded.phase == Phase::backward) recorded.called = bound.source;
  takePlace(recorded, bound, self);
  if (bound.origin.role == Role::gradient || bound.origin.role == Role::accumulation)
    for (const auto value : call.values) document_.value(value).kind = ValueKind::gradient;
  numbered_.push_back(append(bound, recorded, call.operands, call.outputs));
  findLoss(numbered_.back());
  if (const Json* group = record.find("group"))
    for (const auto& rank : group->items()) recording_.groups[self].push_back(rank.integer());
  readChecks(record, call);
  if (!runs) readPuts(record, call);
}

/// Memory that changed without an op, or that a collective filled: an op of the reader's own writes what is recorded.
void StreamReader::readPut(std::int64_t number, const std::string& data, const Json& record, const char* name) {
  auto& memory = storage(number);
  if (!memory.base) return;  // nobody has read it
  const auto found = recording_.data.find(data);
  if (found != recording_.data.end() && std::cmp_greater(found->second.bytes, memory.bytes))
    badInput(fmt::format("data '{}' has more bytes than storage {}", data, number));
  const auto& op = opOf(name, true);
  BoundSymbol bound;
  StepOp recorded;
  describe(record, bound, recorded);
  Call call;
  call.operands = {memory.latest};
  call.pattern.arguments = {Argument::ofOperand(0)};
  call.pattern.operandCount = 1;
  ++writesTo(memory.id);
  const auto made = makeValue(document_.meta(memory.latest), memory.id);
  for (auto& row : tensors_)
    if (row.current == memory.latest) row.current = made;
  memory.latest = made;
  bound.symbol = op.symbol;
  bound.effects = effect::writes | effect::opaque;
  bound.pattern = document_.internPattern(call.pattern);
  append(bound, recorded, call.operands, {made});
  auto& last = recording_.ops.back();
  last.opaque = document_.intern("its bytes are the recorded ones");
  const Json* since = record.find("since");
  if (since && !record.isTrue("known")) last.since = opNumbered(since->integer());
  last.putsBegin = static_cast<std::uint32_t>(recording_.puts.size());
  last.putCount = 1;
  recording_.puts.push_back({made, data, true});
}

}  // namespace retrograd::recording
