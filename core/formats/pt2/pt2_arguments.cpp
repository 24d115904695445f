#include "core/formats/pt2/pt2_arguments.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/model/schema_arguments.h"
#include "core/formats/pt2/pt2_values.h"

namespace retrograd::pt2 {
namespace {

bool wantsTensor(const SchemaType* type) { return !type || takesTensor(*type); }

}  // namespace

Scope::Scope(const Json& graph) {
  const auto tensors = graph.at("tensor_values").members();
  metas_.reserve(tensors.size());
  values_.reserve(tensors.size());
  for (const auto& [name, meta] : tensors)
    if (!metas_.emplace(name, &meta).second) badInput("tensor_values names '" + std::string(name) + "' twice");
  for (const auto* table : {graph.find("sym_int_values"), graph.find("sym_bool_values")})
    if (table && table->isObject())
      for (const auto& [name, number] : table->members()) numbers_.emplace(name, &number);
}

std::string Scope::sizeExpression(std::string_view name) const {
  const auto it = numbers_.find(name);
  const Json* expression = it == numbers_.end() || !it->second->isObject() ? nullptr : it->second->find("as_expr");
  return expression ? shortExpression(expression->at("expr_str").text()) : std::string();
}

TensorMeta Scope::meta(std::string_view name) const {
  const auto it = metas_.find(name);
  if (it == metas_.end()) badInput("tensor_values does not describe '" + std::string(name) + "'");
  try {
    return readMeta(*it->second);
  } catch (const Error& e) {
    throw e.at("tensor_values of '" + std::string(name) + "'");
  }
}

void Scope::define(std::string_view name, ValueId value) {
  if (name.empty()) badInput("a value without a name");
  if (!values_.emplace(name, value).second) badInput("'" + std::string(name) + "' is defined twice");
}

ValueId Scope::use(std::string_view name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) badInput("'" + std::string(name) + "' is used but not defined before");
  return it->second;
}

void checkInputKind(const Json& input) {
  static constexpr std::array<std::string_view, 11> kinds{"as_tensor",     "as_sym_int", "as_sym_float", "as_sym_bool",
                                                          "as_custom_obj", "as_int",     "as_float",     "as_bool",
                                                          "as_string",     "as_none",    "as_token"};
  const auto& kind = input.only().key;
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    badInput("an input of unknown kind '" + std::string(kind) + "'; the file may be of a newer PyTorch");
}

std::string_view valueName(const Json& argument) {
  if (!argument.isObject()) return {};
  if (const Json* name = argument.find("name"); name && name->isString()) return name->text();
  for (auto key : {"as_tensor", "as_custom_obj", "as_token"})
    if (const Json* value = argument.find(key)) return value->at("name").text();
  for (auto key : {"as_sym_int", "as_sym_float", "as_sym_bool"})
    if (const Json* value = argument.find(key))
      if (const Json* name = value->find("as_name")) return name->text();
  if (const Json* value = argument.find("as_optional_tensor")) return valueName(*value);
  return {};
}

Argument ArgumentReader::hole(std::string_view name) {
  constexpr std::size_t limit = 65535;
  const ValueId value = scope_.use(name);
  if (!value) return Argument::ofNone();  // an input that is None
  if (operands_.size() >= limit) badInput("more than 65535 operands");
  operands_.push_back(value);
  return Argument::ofOperand(std::ssize(operands_) - 1);
}

Argument ArgumentReader::symbolic(const Json& value) {
  const auto& [kind, inner] = value.only();
  if (kind == "as_name") return hole(inner.text());
  if (kind == "as_int") return Argument::ofInt(inner.integer());
  if (kind == "as_float") return Argument::ofReal(inner.number());
  if (kind == "as_bool") return Argument::ofBool(inner.boolean());
  badInput("unknown symbolic argument '" + std::string(kind) + "'");
}

template <class Element>
Argument ArgumentReader::list(const Json& items, Element&& element) {
  std::vector<Argument> result;
  const auto all = items.items();
  chargeReading(2 * all.size() * sizeof(Argument));  // here and in the pattern that it becomes part of
  result.reserve(all.size());
  for (const auto& item : all) result.push_back(element(item));
  return Argument::ofList(std::move(result));
}

Argument ArgumentReader::optionalTensor(const Json& value) {
  const auto& [kind, tensor] = value.only();
  if (kind == "as_tensor") return hole(tensor.at("name").text());
  if (kind == "as_none") return Argument::ofNone();
  badInput("unknown optional tensor '" + std::string(kind) + "'");
}

Argument ArgumentReader::tensors(const Json& items, const SchemaType* type) {
  if (!wantsTensor(type)) badInput("tensors where the schema wants " + typeText(*type));
  return list(items, [&](const Json& t) { return hole(t.at("name").text()); });
}

Argument ArgumentReader::readKind(std::string_view kind, const Json& v, const SchemaType* type) {
  if (kind == "as_tensor") {
    const auto name = v.at("name").text();
    if (!wantsTensor(type)) badInput("a tensor where the schema wants " + typeText(*type));
    // Tokens of higher-order ops come as tensors too; to an op with a schema they mean nothing.
    const ValueId known = scope_.use(name);
    if (type && known && !scope_.hasMeta(name)) badInput("'" + std::string(name) + "' is not a tensor");
    return hole(name);
  }
  if (kind == "as_tensors") return tensors(v, type);
  if (kind == "as_int") return Argument::ofInt(v.integer());
  if (kind == "as_ints") return list(v, [](const Json& i) { return Argument::ofInt(i.integer()); });
  if (kind == "as_bool") return Argument::ofBool(v.boolean());
  if (kind == "as_float") return Argument::ofReal(v.number());
  if (kind == "as_none") return Argument::ofNone();
  if (kind == "as_string") return Argument::ofString(std::string(v.text()));
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return symbolic(v);
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools")
    return list(v, [&](const Json& s) { return symbolic(s); });
  if (kind == "as_scalar_type") return Argument::ofDType(dtypeOf(v.integer()));
  if (kind == "as_memory_format") return Argument::ofMemoryFormat(memoryFormatOf(v.integer()));
  if (kind == "as_layout") return Argument::ofLayout(layoutOf(v.integer()));
  if (kind == "as_device") return Argument::ofDevice(deviceOf(v));
  if (kind == "as_floats") return list(v, [](const Json& d) { return Argument::ofReal(d.number()); });
  if (kind == "as_bools") return list(v, [](const Json& b) { return Argument::ofBool(b.boolean()); });
  if (kind == "as_strings") return list(v, [](const Json& s) { return Argument::ofString(std::string(s.text())); });
  if (kind == "as_complex") return Argument::ofComplex(v.at("real").number(), v.at("imag").number());
  if (kind == "as_optional_tensor") return optionalTensor(v);
  if (kind == "as_optional_tensors") {
    Argument a = list(v, [&](const Json& t) { return optionalTensor(t); });
    a.optionalList = true;
    return a;
  }
  if (kind == "as_nested_tensors") return list(v, [&](const Json& inner) { return tensors(inner, nullptr); });
  if (kind == "as_int_lists")
    return list(
        v, [&](const Json& inner) { return list(inner, [](const Json& i) { return Argument::ofInt(i.integer()); }); });
  if (kind == "as_float_lists")
    return list(
        v, [&](const Json& inner) { return list(inner, [](const Json& d) { return Argument::ofReal(d.number()); }); });
  if (kind == "as_custom_obj") return hole(v.at("name").text());
  if (kind == "as_operator") return Argument::ofOp(std::string(v.text()));
  if (kind == "as_graph") return Argument::ofSubgraph(addGraph_(v));
  if (kind == "as_string_to_argument") {  // a dictionary, kept as a list of pairs
    std::vector<Argument> pairs;
    for (const auto& [key, value] : v.members())
      pairs.push_back(Argument::ofList({Argument::ofString(std::string(key)), read(value)}));
    return Argument::ofList(std::move(pairs));
  }
  badInput("an argument of unknown kind '" + std::string(kind) + "'; the file may be of a newer PyTorch");
}

Argument ArgumentReader::read(const Json& argument, const SchemaType* type) {
  const auto& [kind, value] = argument.only();
  Argument a = readKind(kind, value, type);
  if (type)
    conform(a, *type, a.isNumber() || kind.starts_with("as_sym_"), "a value of kind '" + std::string(kind) + "'");
  return a;
}

}  // namespace retrograd::pt2
