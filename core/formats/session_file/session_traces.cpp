// The computation and the traces as records.
#include "core/base/enum_array.h"
#include "core/base/error.h"
#include "core/formats/session_file/session_codec.h"

namespace retrograd::session {
namespace {

constexpr EnumArray<InputKind, std::string_view, 6> inputKinds{"user",     "parameter", "buffer",
                                                               "constant", "token",     "object"};
constexpr EnumArray<OutputKind, std::string_view, 7> outputKinds{
    "user", "loss", "buffer_mutation", "input_mutation", "parameter_mutation", "token", "gradient"};

Out inputOut(const InputSpec& input) {
  return {{"kind", inputKinds[input.kind]},  {"name", textOut(input.name)},
          {"target", textOut(input.target)}, {"aliases", textsOut(input.aliases)},
          {"persistent", input.persistent},  {"requires_grad", input.requiresGrad},
          {"value", input.value.index},      {"storage_key", textOut(input.storageKey)}};
}

InputSpec readInput(const Json& json, const Counts& counts) {
  InputSpec input;
  input.kind = named(inputKinds, json.at("kind").text(), "kind");
  input.name = readText(json.at("name"));
  input.target = readText(json.at("target"));
  input.aliases = readTexts(json.at("aliases"));
  input.persistent = json.at("persistent").boolean();
  input.requiresGrad = json.at("requires_grad").boolean();
  input.value = readId<ValueId>(json.at("value"), counts.values);
  input.storageKey = readText(json.at("storage_key"));
  return input;
}

Out outputOut(const OutputSpec& output) {
  return {{"kind", outputKinds[output.kind]},
          {"value", output.value.index},
          {"literal", argumentOut(output.literal)},
          {"target", textOut(output.target)}};
}

OutputSpec readOutput(const Json& json, const Counts& counts) {
  OutputSpec output;
  output.kind = named(outputKinds, json.at("kind").text(), "kind");
  output.value = readId<ValueId>(json.at("value"), counts.values);
  output.literal = readArgument(json.at("literal"), counts.subgraphs);
  output.target = readText(json.at("target"));
  return output;
}

Out passOut(const PassRecord& pass) {
  Out parameters = Out::array(), replaced = Out::array();
  for (const auto& [name, value] : pass.parameters) parameters.push_back(Out::array({textOut(name), textOut(value)}));
  for (const auto& [from, to] : pass.replaced) replaced.push_back({from.index, to.index});
  return {{"pass", textOut(pass.pass)},
          {"parameters", std::move(parameters)},
          {"parent", textOut(pass.parent)},
          {"seconds", pass.seconds},
          {"replaced", std::move(replaced)}};
}

PassRecord readPass(const Json& json, const Counts& counts) {
  PassRecord pass;
  pass.pass = readText(json.at("pass"));
  for (const auto& item : json.at("parameters").items()) {
    Row row(item, 2);
    auto name = readText(row.next());
    pass.parameters.emplace_back(std::move(name), readText(row.next()));
  }
  pass.parent = readText(json.at("parent"));
  pass.seconds = json.at("seconds").number();
  for (const auto& item : json.at("replaced").items()) {
    Row row(item, 2);
    const auto from = row.id<BoundSymbolId>(counts.ops);
    pass.replaced.emplace_back(from, row.id<BoundSymbolId>(counts.ops));
  }
  return pass;
}

std::size_t readCount(const Json& json) { return readInteger(json, 0, std::numeric_limits<std::int32_t>::max()); }

}  // namespace

Out computationOut(const Computation& computation) {
  Out inputs = Out::array(), outputs = Out::array();
  for (const auto& input : computation.inputs) inputs.push_back(inputOut(input));
  for (const auto& output : computation.outputs) outputs.push_back(outputOut(output));
  return {{"inputs", std::move(inputs)}, {"outputs", std::move(outputs)}};
}

void readComputation(const Json& json, const Counts& counts, Computation& computation) {
  forEachRow(json.at("inputs"), [&](const Json& row) { computation.inputs.push_back(readInput(row, counts)); });
  forEachRow(json.at("outputs"), [&](const Json& row) { computation.outputs.push_back(readOutput(row, counts)); });
}

Out traceOut(const Trace& trace) {
  Out history = Out::array();
  for (const auto& pass : trace.history) history.push_back(passOut(pass));
  return {{"kind", name(trace.kind)},       {"name", textOut(trace.name)},      {"ops", idsOut(trace.ops)},
          {"inputs", idsOut(trace.inputs)}, {"outputs", idsOut(trace.outputs)}, {"results", trace.resultCount},
          {"saved", trace.savedCount},      {"forward", trace.forwardCount},    {"history", std::move(history)}};
}

Trace readTrace(const Json& json, const Counts& counts) {
  static constexpr EnumArray<TraceKind, std::string_view, 4> kinds{"computation", "joint", "forward", "backward"};
  Trace trace;
  trace.kind = named(kinds, json.at("kind").text(), "kind");
  trace.name = readText(json.at("name"));
  trace.ops = readIds<BoundSymbolId>(json.at("ops"), counts.ops);
  trace.inputs = readIds<ValueId>(json.at("inputs"), counts.values);
  trace.outputs = readIds<ValueId>(json.at("outputs"), counts.values);
  trace.resultCount = readCount(json.at("results"));
  trace.savedCount = readCount(json.at("saved"));
  trace.forwardCount = readCount(json.at("forward"));
  forEachRow(json.at("history"), [&](const Json& row) { trace.history.push_back(readPass(row, counts)); });
  return trace;
}

}  // namespace retrograd::session
