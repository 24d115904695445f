// Functions: signature, statements, results.
#include "core/formats/text/text_trace.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/text/text_reader.h"
#include "core/trace/implied.h"
#include "core/trace/python_text.h"
#include "core/trace/verifier.h"

namespace retrograd {

const Trace* TextTraces::find(TraceKind kind) const {
  if (kind == TraceKind::computation) return computation ? &computation->trace : nullptr;
  for (const auto& trace : derived)
    if (trace.kind == kind) return &trace;
  return nullptr;
}

TextTraces readTextTraces(std::string_view text, const std::string& name, const SymbolLookup& lookup, TextParts parts,
                          const Progress& progress) {
  const text::Source source{name, text, true};
  return text::TextReader(source, lookup, progress).read(parts);
}

ModelFile readTextModel(std::string_view text, const std::string& path, const SymbolLookup& lookup,
                        const Progress& progress) {
  auto traces = readTextTraces(text, path, lookup, TextParts::all, progress);
  if (!traces.computation)
    throw Error(ErrorCode::badInput,
                "expected a trace to start from, 'def computation(...):'; docs/text-form.md describes the form", path);
  ModelFile file;
  if (!traces.derived.empty()) {
    file.printed = std::make_shared<const TextTraces>(std::move(traces));
    traces = readTextTraces(text, path, lookup, TextParts::computationOnly, progress);
  }
  file.path = path;
  file.isText = true;
  file.document = std::move(traces.document);
  file.computation = *std::move(traces.computation);
  file.sampleNumbers = std::move(traces.numbers);
  file.guards = std::move(traces.guards);
  file.problems = std::move(traces.problems);
  return file;
}

namespace text {
namespace {

constexpr std::string_view kinds[] = {"computation", "joint", "forward", "backward"};

InputKind inputKind(ValueKind kind, const ValueNote* note) {
  if (note && note->type == ValueNote::Type::token) return InputKind::token;
  if (note && note->type == ValueNote::Type::object) return InputKind::object;
  switch (kind) {
    case ValueKind::parameter: return InputKind::parameter;
    case ValueKind::buffer: return InputKind::buffer;
    case ValueKind::constant: return InputKind::constant;
    default: return InputKind::user;
  }
}

}  // namespace

TextReader::TextReader(const Source& source, const SymbolLookup& lookup, const Progress& progress)
    : source_(source),
      lookup_(lookup),
      progress_(progress),
      builder_(lookup),
      result_{builder_.shared(), {}, {}, {}, {}},
      document_(*result_.document) {}

TextTraces TextReader::read(TextParts parts) {
  if (!readInOrder(parts)) readOthers();
  setTerms();
  result_.problems = builder_.problems();
  return std::move(result_);
}

/// Most texts begin with the computation, to which all others refer. Where others are before it, this reads the
/// computation alone and returns false.
bool TextReader::readInOrder(TextParts parts) {
  FunctionReader reader(source_, progress_);
  std::unordered_set<std::string> met;
  bool isInOrder = true;
  while (const auto function = reader.next()) {
    if (std::find(std::begin(kinds), std::end(kinds), function->name) == std::end(kinds))
      fail(source_, function->place,
           "expected computation, joint, forward or backward, found '" + oneLine(function->name) + "'");
    if (!met.insert(function->name).second)
      fail(source_, function->place, "expected one '" + function->name + "', found another");
    const bool isOther = function->name != "computation";
    isInOrder &= !isOther || result_.computation || parts == TextParts::computationOnly;
    if (!isOther || (isInOrder && parts == TextParts::all)) readFunction(*function, reader);
  }
  return isInOrder;
}

void TextReader::readOthers() {
  FunctionReader reader(source_, progress_);
  while (const auto function = reader.next())
    if (function->name != "computation") readFunction(*function, reader);
}

/// When the first body asks: what is behind it in the computation counts too.
void TextReader::collectNames() {
  reserved_.emplace();
  FunctionReader reader(source_, progress_);
  const std::function<void(const Expression&)> collect = [&](const Expression& target) {
    if (const auto name = nameIn(source_, target); !name.empty()) reserved_->insert(name);
    for (const auto& item : target.items) collect(item);
  };
  while (const auto function = reader.next()) {
    if (function->name != "computation") continue;
    for (const auto& parameter : function->parameters) reserved_->insert(parameter.name);
    for (auto statement = reader.statement(); statement.kind != Statement::Kind::result; statement = reader.statement())
      for (const auto& target : statement.targets) collect(target);
    return;
  }
}

void TextReader::readFunction(const Function& function, FunctionReader& reader) {
  Trace trace;
  trace.kind = static_cast<TraceKind>(std::find(std::begin(kinds), std::end(kinds), function.name) - std::begin(kinds));
  trace.name = function.name;
  for (const auto& comment : function.before)
    if (auto pass = readPass(comment)) trace.history.assign(1, *pass);
  if (trace.kind == TraceKind::computation) result_.computation.emplace();
  Scope scope;
  scope.kind = trace.kind;
  scope.inBackward = trace.kind == TraceKind::backward;
  met_.clear();
  readSignature(function, scope, trace);
  Statement statement;  // in the end the result
  trace.ops = readStatements([&]() -> const Statement& { return statement = reader.statement(); }, scope);
  const auto border = std::min(scope.border, trace.ops.size());
  if (trace.kind == TraceKind::joint || trace.kind == TraceKind::forward) trace.forwardCount = border;
  readResults(statement, scope, trace);
  checkTrace(trace, function.place);
  if (trace.kind == TraceKind::computation) result_.computation->trace = std::move(trace);
  else result_.derived.push_back(std::move(trace));
}

/// What the comments under a signature say of each parameter; of literals inside formulas, which are none; of modules
/// and sizes.
std::vector<std::optional<ValueNote>> TextReader::readHead(const Function& function, Scope& scope,
                                                           std::vector<ValueNote>& literals) {
  std::vector<std::optional<ValueNote>> notes(function.parameters.size());
  NameTable<std::size_t> positions;
  for (std::size_t i = 0; i < function.parameters.size(); ++i) positions.insert(function.parameters[i].name, i);
  for (const auto& comment : function.head) {
    const auto colon = comment.text.find(": \"");
    const auto name = comment.text.substr(0, colon);
    if (const auto* position = colon == std::string_view::npos ? nullptr : positions.find(name)) {
      if (notes[*position])
        fail(source_, comment.place, "expected one description of '" + std::string(name) + "', found another");
      notes[*position] = readInputNote(source_, comment);
    } else if (colon != std::string_view::npos && comment.text.find(", constant", colon) != std::string_view::npos) {
      if (auto literal = readInputNote(source_, comment)) literals.push_back(std::move(*literal));
    }
    readHeading(comment, scope);
  }
  return notes;
}

void TextReader::readSignature(const Function& function, Scope& scope, Trace& trace) {
  std::vector<ValueNote> literals;
  const auto notes = readHead(function, scope, literals);
  for (std::size_t i = 0; i < function.parameters.size(); ++i) {
    const auto& parameter = function.parameters[i];
    const auto* note = notes[i] ? &*notes[i] : nullptr;
    const auto id = readParameter(parameter, i, note, scope);
    trace.inputs.push_back(id);
    if (trace.kind == TraceKind::computation) addInputSpec(id, parameter, note);
    if (!id || trace.kind != TraceKind::backward) continue;
    if (!note || (!note->saved && !note->cotangent))
      fail(source_, parameter.place,
           "expected '" + std::string(parameter.name) +
               "' to be 'saved for backward' or 'cotangent' in its description");
    if (note->saved && trace.savedCount++ < i)
      fail(source_, parameter.place, "expected what is saved for backward before all cotangents");
  }
  for (const auto& literal : literals) {
    const auto id = define(literal.name, literal.place, scope);
    describeInput(id, literal, scope);
  }
}

/// "_3" is None as the fourth parameter, unless something is known of it.
ValueId TextReader::readParameter(const Parameter& parameter, std::size_t position, const ValueNote* note,
                                  Scope& scope) {
  const auto* known = builder_.find(parameter.name);
  const bool isKnown = known && builder_.isDescribed(*known);
  if (!note && !isKnown && parameter.name == "_" + std::to_string(position)) return {};
  const auto id = define(parameter.name, parameter.place, scope);
  if (!isKnown && (!note || note->type == ValueNote::Type::none))
    fail(source_, parameter.place,
         "expected a comment under the signature that says what '" + std::string(parameter.name) + "' is, such as '# " +
             std::string(parameter.name) + ": \"f32[2, 3]\"'");
  if (note) describeInput(id, *note, scope);
  return id;
}

void TextReader::describeInput(ValueId id, const ValueNote& note, const Scope& scope) {
  setType(id, note);
  auto facts = factsOf(id, note, scope);
  if (builder_.isDescribed(id)) {
    if (facts.shares) builder_.setStorage(id, facts, {});
    return;
  }
  if (note.cotangent) facts.kind = ValueKind::cotangent;
  else if (!facts.kind && note.saved) facts.kind = ValueKind::activation;
  builder_.describeInput(id, facts);
}

void TextReader::addInputSpec(ValueId id, const Parameter& parameter, const ValueNote* note) {
  InputSpec spec;
  spec.name = parameter.name;
  spec.value = id;
  if (id) {
    const auto& value = document_.value(id);
    spec.kind = inputKind(value.kind, note);
    spec.requiresGrad = value.requiresGrad;
    const bool isWeight =
        spec.kind == InputKind::parameter || spec.kind == InputKind::buffer || spec.kind == InputKind::constant;
    spec.target = note && !note->target.empty() ? note->target : isWeight ? std::string(parameter.name) : std::string();
    if (isWeight && value.storage) spec.storageKey = document_.displayName(document_.storage(value.storage).first);
  }
  if (note) {
    spec.aliases = note->aliases;
    spec.persistent = note->persistent;
    if (note->number) {
      Call none;
      result_.numbers[spec.name] = argument(*note->number, Scope(), none);
    }
  }
  result_.computation->inputs.push_back(std::move(spec));
}

/// Up to and with the result.
std::vector<BoundSymbolId> TextReader::readStatements(const std::function<const Statement&()>& next, Scope& scope) {
  using Kind = Statement::Kind;
  std::vector<BoundSymbolId> ops;
  for (auto kind = Kind::comment; kind != Kind::result;) {
    if (++statements_ % 256 == 0) progress_.check();
    const auto& statement = next();
    kind = statement.kind;
    if (kind == Kind::comment) {
      const bool before = scope.inBackward;
      readHeading(statement.comment, scope);
      if (scope.inBackward && !before) scope.border = ops.size();
    } else if (kind == Kind::function) {
      scope.bodies[statement.function->name] = statement.function;
    } else if (kind == Kind::op) {
      ops.push_back(readOp(statement, scope));
    }
  }
  return ops;
}

void TextReader::readHeading(const Comment& comment, Scope& scope) {
  auto heading = text::readHeading(source_, comment);
  switch (heading.kind) {
    case Heading::Kind::free: return;
    case Heading::Kind::module: scope.module = std::move(heading.module); return;
    case Heading::Kind::source:
      scope.source = heading.frame ? document_.internSource({*std::move(heading.frame)}) : SourceStackId();
      return;
    case Heading::Kind::symbolicSize:
      scope.sizes[heading.size.name] = heading.size.hint;
      declare(heading.size);
      return;
    case Heading::Kind::guard: result_.guards.push_back(std::move(heading.guard)); return;
    case Heading::Kind::backward:
      if (scope.kind == TraceKind::joint && !scope.outer && !scope.inBackward)
        scope.border = 0;  // in the head; readStatements knows better
      scope.inBackward |= scope.kind == TraceKind::joint && !scope.outer;
      return;
  }
}

/// Each trace says its sizes again: the first is as good as any.
void TextReader::declare(const SizeSymbol& size) {
  auto symbols = document_.sizeSymbols();
  if (std::any_of(symbols.begin(), symbols.end(), [&](const SizeSymbol& known) { return known.name == size.name; }))
    return;
  symbols.push_back(size);
  document_.setSizeSymbols(std::move(symbols));
}

void TextReader::readResults(const Statement& statement, Scope& scope, Trace& trace) {
  using Kind = Expression::Kind;
  const auto& value = statement.value;
  const auto isTuple = [](const Expression& e) { return e.kind == Kind::tuple; };
  std::vector<const Expression*> results;
  const bool isOne = !isTuple(value);
  const bool mayBeTwo = trace.kind == TraceKind::joint || trace.kind == TraceKind::forward;
  const bool areTwo =
      mayBeTwo && !isOne && value.items.size() == 2 && isTuple(value.items[0]) && isTuple(value.items[1]);
  if (isOne) results.push_back(&value);
  if (areTwo)
    for (const auto& section : value.items)
      for (const auto& item : section.items) results.push_back(&item);
  if (!isOne && !areTwo)
    for (const auto& item : value.items) results.push_back(&item);

  Call call;
  std::vector<Argument> literals;
  for (const auto* result : results) {
    if (isTuple(*result)) fail(source_, result->place, "expected a result, found a tuple");
    literals.push_back(argument(*result, scope, call));
    const auto& literal = literals.back();
    const bool isValue = literal.kind == Argument::Kind::operand;
    if (!isValue && literal.kind != Argument::Kind::none && trace.kind != TraceKind::computation)
      fail(source_, result->place, "expected the name of a value or None");
    trace.outputs.push_back(isValue ? call.operands[literal.integer] : ValueId());
  }
  trace.resultCount = areTwo ? value.items[0].items.size() : trace.kind == TraceKind::joint ? 0 : trace.outputs.size();
  if (trace.kind == TraceKind::computation) addOutputSpecs(statement, literals, trace);
}

void TextReader::addOutputSpecs(const Statement& statement, const std::vector<Argument>& literals, const Trace& trace) {
  const auto notes = readResultNotes(source_, statement.comment);
  if (!notes.empty() && notes.rbegin()->first >= literals.size())
    fail(source_, statement.comment.place, "expected remarks on " + std::to_string(literals.size()) + " results");
  for (std::size_t i = 0; i < literals.size(); ++i) {
    OutputSpec spec;
    spec.value = trace.outputs[i];
    if (!spec.value) spec.literal = literals[i];
    if (const auto note = notes.find(i); note != notes.end()) {
      spec.kind = note->second.kind;
      spec.target = note->second.target;
    }
    result_.computation->outputs.push_back(std::move(spec));
  }
}

void TextReader::checkTrace(const Trace& trace, Place place) {
  for (const auto& problem : verify(document_, trace)) {
    const BoundSymbolId op(problem.op);
    const bool hasPlace = places_.contains(op);
    fail(source_, hasPlace ? places_[op] : place, "expected a trace that holds together: " + problem.message);
  }
}

}  // namespace text
}  // namespace retrograd
