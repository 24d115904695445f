// Values: inputs and outputs of graphs and nodes, and the storages under them.
#include <algorithm>

#include "core/base/error.h"
#include "core/formats/pt2/pt2_graph.h"
#include "core/trace/implied.h"
#include "core/trace/python_text.h"

namespace retrograd::pt2 {
void GraphReader::reserveNames(const Json& graph) {
  for (auto table : {"tensor_values", "sym_int_values", "sym_float_values", "sym_bool_values", "custom_obj_values"})
    if (const Json* values = graph.find(table); values && values->isObject())
      for (const auto& [name, meta] : values->members()) reserved_.emplace(name);
}

/// A name that means one value over all graphs of the document, as the traces derived from it are flat, and that Python
/// takes. Names of the main graph stay as they are; those of bodies get a suffix where they are met again.
StringId GraphReader::displayNameFor(std::string_view name) {
  auto display = pythonName(std::string(name));
  const auto base = display;
  bool kept = depth_ == 0 && display == name;  // reserved for itself
  for (int& suffix = suffixes_[base]; taken_.contains(display) || (!kept && reserved_.contains(display)); kept = false)
    display = base + "_" + std::to_string(++suffix);
  taken_.insert(display);
  return document_.intern(display);
}

ValueId GraphReader::defineTensor(std::string_view name, Scope& scope, ValueKind kind, StorageId shared) {
  const TensorMeta meta = scope.meta(name);
  Value value;
  value.name = displayNameFor(name);
  value.kind = kind;
  value.meta = document_.internMeta(meta);
  value.storage = shared ? shared : document_.addStorage(meta.storageBytes());
  value.version = writesTo(value.storage);
  const auto id = document_.addValue(value);
  scope.define(name, id);
  return id;
}

ValueId GraphReader::defineOther(std::string_view name, Scope& scope, ValueKind kind) {
  Value value;
  value.name = displayNameFor(name);
  value.kind = kind;
  const auto id = document_.addValue(value);
  if (auto expression = scope.sizeExpression(name); !expression.empty())
    document_.setSizeExpression(id, std::move(expression));
  scope.define(name, id);
  return id;
}

ValueId GraphReader::defineInput(const Json& input, InputSpec& spec, Scope& scope,
                                 std::unordered_map<std::string, StorageId>& storages) {
  checkInputKind(input);
  const auto name = valueName(input);
  if (!name.empty() && name != spec.name)
    badInput("input '" + std::string(name) + "' of the graph is '" + spec.name + "' in the signature");
  const bool isTensor = input.find("as_tensor") && spec.kind != InputKind::token && spec.kind != InputKind::object;
  if (!isTensor) {
    if (input.find("as_none")) return spec.value = {};
    return spec.value = defineOther(spec.name, scope, implied::kind(spec.kind));
  }
  auto known = storages.find(spec.storageKey);
  const bool shared = !spec.storageKey.empty() && known != storages.end();
  const auto id = defineTensor(name, scope, implied::kind(spec.kind), shared ? known->second : StorageId());
  auto& value = document_.value(id);
  auto& storage = document_.storage(value.storage);
  if (!storage.first) storage.first = id;
  storage.external = true;
  storage.bytes = std::max(storage.bytes, document_.meta(value.meta).storageBytes());
  if (!shared && !spec.storageKey.empty()) storages.emplace(spec.storageKey, value.storage);
  if (spec.kind == InputKind::user) spec.requiresGrad = isDifferentiable(document_.meta(value.meta).dtype);
  value.requiresGrad = spec.requiresGrad;
  return spec.value = id;
}

void GraphReader::readOutput(const Json& output, StorageId shared, bool asToken, Scope& scope, Call& call) {
  constexpr std::size_t limit = 65535;
  if (call.outputs.size() >= limit) badInput("more than 65535 outputs");
  const auto name = valueName(output);
  if (name.empty()) {
    call.outputs.push_back({});  // None, or a number known when exporting
  } else if (asToken || output.find("as_custom_obj") || output.find("as_sym_int") || output.find("as_sym_float") ||
             output.find("as_sym_bool")) {
    call.outputs.push_back(defineOther(name, scope, ValueKind::activation));
  } else {
    call.outputs.push_back(defineTensor(name, scope, ValueKind::activation, shared));
  }
}

void GraphReader::readOutputs(const Json& node, const Op& op, Scope& scope, Call& call) {
  const auto outputs = node.at("outputs").items();
  // A Tensor[] return comes as one "as_tensors", or as an output for each of its tensors.
  const bool spread = op.returns.size() == 1 && op.returns[0].list &&
                      !(outputs.size() == 1 && outputs[0].isObject() && outputs[0].only().value.isArray());
  if (op.hasSchema && !spread && outputs.size() != op.returns.size())
    badInput(std::to_string(outputs.size()) + " outputs where the schema has " + std::to_string(op.returns.size()) +
             " (" + document_.symbol(op.symbol).schema + ")");
  bool grouped = spread;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [kind, value] = outputs[i].only();
    const bool isList = kind == "as_tensors" || kind == "as_optional_tensors";
    if (op.hasSchema && !spread && isList != op.returns[i].list)
      badInput("output " + std::to_string(i) + " is not what the schema says");
    const ValueId source =
        aliasedOperand(document_, document_.symbol(op.symbol), call.pattern, call.operands, spread ? 0 : i);
    const auto storageFor = [&](const Json& one) {
      const auto name = valueName(one);
      if (!source || name.empty() || !scope.hasMeta(name)) return StorageId();
      const auto& from = document_.value(source);
      return sharesStorage(document_.symbol(op.symbol), document_.meta(from.meta), scope.meta(name)) ? from.storage
                                                                                                     : StorageId();
    };
    if (!isList) {
      readOutput(outputs[i], storageFor(outputs[i]), op.isToken && i == 0, scope, call);
      call.pattern.returns.push_back(-1);
      continue;
    }
    grouped = true;
    const auto items = value.items();
    for (const auto& item : items) readOutput(item, storageFor(item), false, scope, call);
    call.pattern.returns.push_back(static_cast<std::int32_t>(items.size()));
  }
  if (spread) call.pattern.returns = {static_cast<std::int32_t>(outputs.size())};
  if (!grouped) call.pattern.returns.clear();
}

}  // namespace retrograd::pt2
