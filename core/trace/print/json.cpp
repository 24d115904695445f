#include "core/trace/print/json.h"

#include <array>
#include <cmath>

#include "core/base/enum_array.h"
#include "core/base/id_vector.h"
#include "core/trace/implied.h"
#include "core/trace/print/printer.h"
#include "core/trace/symbol.h"

namespace retrograd {
namespace {

using Json = nlohmann::ordered_json;

/// JSON knows no infinity and no NaN; they become strings.
Json number(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  return d;
}

template <class Tag>
Json idOrNull(Id<Tag> id) {
  return id ? Json(id.index) : Json();
}

template <class Range>
Json ids(const Range& range) {
  Json list = Json::array();
  for (auto id : range) list.push_back(idOrNull(id));
  return list;
}

Json textOrNull(std::string_view text) { return text.empty() ? Json() : Json(text); }

class DocumentWriter {
 public:
  DocumentWriter(const Document& document, const TraceDocumentInfo& info)
      : document_(document), info_(info), mentioned_(document.valueCount()), saved_(document.valueCount()) {
    if (!info.forward) return;
    const auto& outputs = info.forward->outputs;
    for (std::size_t i = info.forward->resultCount; i < outputs.size(); ++i)
      if (outputs[i]) saved_[outputs[i]] = true;
  }

  Json write(std::span<const Trace* const> traces) {
    Json list = Json::object();
    for (const auto* trace : traces) list[std::string(name(trace->kind))] = traceOf(*trace);
    Json json = Json::object();
    if (!info_.file.empty()) json["file"] = info_.file;
    if (!info_.torchVersion.empty()) json["torch_version"] = info_.torchVersion;
    if (!document_.sizeSymbols().empty()) json["sizes"] = sizes();
    json["values"] = values();
    json["traces"] = std::move(list);
    json["notes"] = info_.notes;
    json["problems"] = problems();
    return json;
  }

 private:
  void mention(ValueId value) {
    if (value) mentioned_[value] = true;
  }
  template <class Range>
  Json mentionedIds(const Range& range) {
    for (auto value : range) mention(value);
    return ids(range);
  }

  Json traceOf(const Trace& trace) {
    Json json = Json::object();
    json["inputs"] = mentionedIds(trace.inputs);
    json["outputs"] = mentionedIds(trace.outputs);
    if (trace.kind == TraceKind::forward || trace.kind == TraceKind::joint) json["resultCount"] = trace.resultCount;
    if (trace.kind == TraceKind::forward)
      json["saved"] = ids(std::span(trace.outputs).subspan(std::min(trace.resultCount, trace.outputs.size())));
    if (trace.kind == TraceKind::backward) json["savedCount"] = trace.savedCount;
    if (trace.kind == TraceKind::joint) json["forwardCount"] = trace.forwardCount;
    if (trace.kind == TraceKind::computation && info_.computation) json["signature"] = signature(*info_.computation);
    Json ops = Json::array();
    for (auto op : trace.ops) addOp(ops, op);
    json["ops"] = std::move(ops);
    json["history"] = history(trace);
    return json;
  }

  /// An op, and after it the ops of its bodies, whose parent it is.
  void addOp(Json& ops, BoundSymbolId op) {
    const auto& bound = document_.boundSymbol(op);
    const auto& symbol = document_.symbol(bound.symbol);
    const auto& pattern = document_.pattern(bound.pattern);
    const auto operands = document_.operands(op);
    const auto call = callArguments(symbol, pattern);
    for (auto operand : operands) mention(operand);

    Json args = Json::array(), kwargs = Json::object();
    for (const auto* a : call.positional) args.push_back(argument(*a, operands));
    for (const auto& [key, a] : call.keyword) kwargs[std::string(key)] = argument(*a, operands);
    Json json = Json::object();
    json["id"] = op.index;
    json["op"] = symbol.qualifiedName();
    json["args"] = std::move(args);
    json["kwargs"] = std::move(kwargs);
    json["outputs"] = mentionedIds(document_.outputs(op));
    if (!pattern.returns.empty()) json["returns"] = pattern.returns;
    json["parent"] = idOrNull(bound.parent);
    json["origin"] = origin(op);
    json["effects"] = effects(bound);
    json["module"] = textOrNull(document_.text(bound.module));
    json["source"] = source(bound.source);
    if (bound.name) json["name"] = document_.text(bound.name);
    if (bound.recomputed) json["recomputed"] = true;
    if (bound.replays) json["replays"] = bound.replays.index;
    ops.push_back(std::move(json));
    forEachBody(document_, op, [&](SubgraphId body) {
      for (auto value : document_.subgraph(body).inputs) mention(value);
      for (auto inner : document_.subgraph(body).ops) addOp(ops, inner);
    });
  }

  Json argument(const Argument& a, std::span<const ValueId> operands) {
    using Kind = Argument::Kind;
    switch (a.kind) {
      case Kind::none:
      case Kind::missing: return {};
      case Kind::operand: {
        const std::size_t hole = a.integer;
        if (hole >= operands.size() || !operands[hole]) return {};
        return {{"value", operands[hole].index}};
      }
      case Kind::boolean: return a.integer != 0;
      case Kind::integer:
        if (!a.text.empty()) return {{"symbol", a.text}, {"hint", a.integer}};
        return a.integer;
      case Kind::real:
        if (!a.text.empty()) return {{"symbol", a.text}, {"hint", number(a.real)}};
        return number(a.real);
      case Kind::complex: return {{"complex", {number(a.real), number(a.imaginary)}}};
      case Kind::string:
      case Kind::device: return a.text;
      case Kind::op: return {{"op", "torch.ops." + a.text}};
      case Kind::subgraph: return bodySignature(document_.subgraph(SubgraphId(a.integer)));
      case Kind::list: {
        Json list = Json::array();
        for (const auto& item : a.items) list.push_back(argument(item, operands));
        return list;
      }
      case Kind::dtype:
      case Kind::layout:
      case Kind::memoryFormat: return printArgument(document_, a, operands);
    }
    return {};
  }

  Json bodySignature(const Subgraph& body) {
    Json outputs = Json::array();
    for (const auto& output : body.outputs) outputs.push_back(argument(output, body.outputValues));
    return {{"subgraph", body.name}, {"inputs", ids(body.inputs)}, {"outputs", std::move(outputs)}};
  }

  /// The terms of a sum of gradients; of a long one the sum before and the last.
  Json terms(BoundSymbolId op) {
    const auto all = document_.terms(document_.boundSymbol(op).origin);
    const auto before = implied::sumBefore(document_, op);
    return before ? mentionedIds(std::array{before, all.back()}) : mentionedIds(all);
  }

  Json origin(BoundSymbolId op) {
    const auto& from = document_.boundSymbol(op).origin;
    if (from.role == Role::none) return {};
    Json json = Json::object();
    json["id"] = idOrNull(from.op);
    json["op"] = from.op ? Json(document_.opName(from.op)) : Json();
    json["role"] = name(from.role);
    json["operand"] = from.operand < 0 ? Json() : Json(from.operand);
    json["output"] = from.output < 0 ? Json() : Json(from.output);
    mention(from.value);
    json["value"] = idOrNull(from.value);
    json["terms"] = terms(op);
    return json;
  }

  static Json effects(const BoundSymbol& bound) {
    Json list = Json::array();
    for (const auto& [bit, text] : effect::names)
      if (bound.effects & bit) list.push_back(text);
    return list;
  }

  Json source(SourceStackId id) const {
    Json list = Json::array();
    for (const auto& frame : document_.source(id))
      list.push_back({{"file", frame.file}, {"line", frame.line}, {"function", frame.function}, {"code", frame.code}});
    return list;
  }

  Json signature(const Computation& computation) {
    static constexpr EnumArray<InputKind, const char*, 6> inputKinds{"user",     "parameter", "buffer",
                                                                     "constant", "token",     "object"};
    static constexpr EnumArray<OutputKind, const char*, 7> outputKinds{
        "user", "loss", "buffer_mutation", "input_mutation", "parameter_mutation", "token", "gradient"};
    Json inputs = Json::array(), outputs = Json::array();
    for (const auto& input : computation.inputs)
      inputs.push_back({{"name", input.name},
                        {"kind", inputKinds[input.kind]},
                        {"target", textOrNull(input.target)},
                        {"aliases", input.aliases},
                        {"requires_grad", input.requiresGrad}});
    for (const auto& output : computation.outputs)
      outputs.push_back({{"kind", outputKinds[output.kind]},
                         {"target", textOrNull(output.target)},
                         {"literal", output.value ? Json() : argument(output.literal, {})}});
    return {{"inputs", std::move(inputs)}, {"outputs", std::move(outputs)}};
  }

  static Json history(const Trace& trace) {
    Json list = Json::array();
    for (const auto& pass : trace.history) {
      Json parameters = Json::object();
      for (const auto& [key, value] : pass.parameters) parameters[key] = value;
      list.push_back({{"pass", pass.pass},
                      {"parameters", std::move(parameters)},
                      {"parent", textOrNull(pass.parent)},
                      {"seconds", pass.seconds}});
    }
    return list;
  }

  Json values() const {
    Json json = Json::object();
    for (auto id : mentioned_.ids())
      if (mentioned_[id]) json[std::to_string(id.index)] = valueOf(id);
    return json;
  }

  Json valueOf(ValueId id) const {
    const auto& value = document_.value(id);
    const bool isSaved = value.kind == ValueKind::activation && saved_[id];
    Json json = Json::object();
    json["name"] = document_.displayName(id);
    const auto* meta = value.meta ? &document_.meta(value.meta) : nullptr;
    json["dtype"] = meta ? Json(torchName(meta->dtype)) : Json();
    json["shape"] = meta ? Json(meta->sizes) : Json();
    json["strides"] = meta ? Json(meta->strides) : Json();
    json["device"] = meta ? Json(toString(meta->device)) : Json();
    json["kind"] = isSaved ? "saved" : name(value.kind);
    json["storage"] = idOrNull(value.storage);
    if (meta && !meta->symbols.empty()) json["symbols"] = meta->symbols;
    if (meta && !meta->strideSymbols.empty()) json["stride_symbols"] = meta->strideSymbols;
    if (const auto expression = document_.sizeExpression(id); !meta && !expression.empty()) json["symbol"] = expression;
    return json;
  }

  Json sizes() const {
    Json list = Json::array();
    for (const auto& symbol : document_.sizeSymbols())
      list.push_back({{"symbol", symbol.name},
                      {"hint", symbol.hint},
                      {"min", symbol.least},
                      {"max", symbol.greatest ? Json(*symbol.greatest) : Json()}});
    return list;
  }

  Json problems() const {
    static constexpr EnumArray<Problem::Severity, const char*, 3> severities{"note", "warning", "error"};
    Json list = Json::array();
    for (const auto& problem : info_.problems)
      list.push_back({{"severity", severities[problem.severity]},
                      {"message", problem.message},
                      {"place", textOrNull(problem.place)},
                      {"op", problem.op < 0 ? Json() : Json(problem.op)}});
    return list;
  }

  const Document& document_;
  const TraceDocumentInfo& info_;
  IdVector<ValueId, bool> mentioned_, saved_;
};

}  // namespace

nlohmann::ordered_json traceDocument(const Document& document, std::span<const Trace* const> traces,
                                     const TraceDocumentInfo& info) {
  return DocumentWriter(document, info).write(traces);
}

std::string dumpJson(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace retrograd
