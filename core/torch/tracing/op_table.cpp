#include "core/torch/tracing/op_table.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "core/torch/packs/packs.h"
#include "core/torch/tracing/aten.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

/// An op's parts: "aten.add.Tensor" is namespace, name and overload.
struct OpName {
  std::string space, name, overload;
};

std::optional<OpName> splitName(std::string_view text) {
  const auto first = text.find('.'), last = text.rfind('.');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  OpName op{std::string(text.substr(0, first)), std::string(text.substr(first + 1, last - first - 1)),
            std::string(text.substr(last + 1))};
  if (op.overload == "default") op.overload.clear();
  return op;
}

/// Ops that reach files, the network or streams, swap the memory under a tensor or build a tensor without checks: an
/// opened file may not name them. aten::save and its like are not in the dispatcher today and stay forbidden if they
/// come.
bool isDenied(const OpName& op) {
  static constexpr std::array<std::string_view, 5> names{"set_data", "save", "load", "record_stream",
                                                         "_test_warn_in_autograd"};
  if (std::ranges::find(names, op.name) != names.end()) return true;
  if (op.name.starts_with("_sparse_") && op.name.ends_with("_unsafe")) return true;
  return op.name.find("rpc") != std::string::npos || op.name.find("file") != std::string::npos;
}

/// Arguments that no file can hold: raw storages, streams, objects of C++ classes.
bool takesForbidden(const Symbol& symbol) {
  return std::ranges::any_of(symbol.arguments, [](const SchemaEntry& entry) {
    const std::string_view type = entry.type;
    return type.starts_with("Storage") || type.starts_with("Stream") || type.starts_with("__torch__");
  });
}

/// What loaded libraries brought, and what lookupSymbol() remembers.
struct Table {
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::optional<Symbol>> cache;
  std::unordered_set<std::string> ofLibraries;
};
Table& table() {
  static Table table;
  return table;
}

/// Of LibTorch and of packs.
bool isAllowed(const OpName& op) {
  if (provideFromPack(op.space + "." + op.name + "." + (op.overload.empty() ? "default" : op.overload))) return true;
  static constexpr std::array<std::string_view, 3> namespaces{"aten", "prims", "retrograd"};
  return std::ranges::find(namespaces, op.space) != namespaces.end() && !isDenied(op);
}

/// As FunctionSchema prints it, without alias sets: real types, so that "ScalarType?" does not become "int?".
std::string typeText(const c10::Argument& argument) {
  auto type = argument.real_type();
  const bool optional = type->kind() == c10::TypeKind::OptionalType;
  if (optional) type = type->expectRef<c10::OptionalType>().getElementType();
  std::string text;
  if (type->kind() == c10::TypeKind::ListType) {
    text = type->expectRef<c10::ListType>().getElementType()->str() + "[" +
           (argument.N() ? std::to_string(*argument.N()) : "") + "]";
  } else {
    text = type->str();
  }
  return optional ? text + "?" : text;
}

/// An integer default means a dtype, layout or memory format where the type says so.
Argument defaultOf(const c10::IValue& value, std::string_view type) {
  if (type.ends_with('?')) type.remove_suffix(1);
  if (value.isInt() && type == "ScalarType") {
    const auto dtype = findDType(static_cast<at::ScalarType>(value.toInt()));
    return dtype ? Argument::ofDType(*dtype) : Argument::ofNone();
  }
  if (value.isInt() && type == "MemoryFormat") return Argument::ofMemoryFormat(value.toInt());
  if (value.isInt() && type == "Layout") return Argument::ofLayout(static_cast<Layout>(value.toInt()));
  if (value.isString()) return Argument::ofString(value.toStringRef());
  if (value.isDevice()) return Argument::ofDevice(value.toDevice().str());
  if (!value.isList()) return numberArgument(value).value_or(Argument::ofNone());
  std::vector<Argument> items;
  for (const c10::IValue& item : value.toListRef()) items.push_back(numberArgument(item).value_or(Argument::ofNone()));
  return Argument::ofList(std::move(items));
}

/// Alias sets of a schema are named; entries of one set get one number.
class AliasSets {
 public:
  void apply(const c10::Argument& argument, SchemaEntry& entry) {
    const c10::AliasInfo* info = argument.alias_info();
    if (!info) return;
    entry.isWrite = info->isWrite();
    const c10::AliasInfo* named = info;
    // Of a list the elements alias: "Tensor(a!)[] self".
    if (!info->containedTypes().empty()) {
      named = &info->containedTypes().front();
      entry.isWrite |= named->isWrite();
      if (named->beforeSets().empty()) named = info;
    }
    if (named->beforeSets().empty() || named->isWildcardBefore()) return;
    const std::string set = named->beforeSets().begin()->toUnqualString();
    entry.aliasSet = numbers_.try_emplace(set, static_cast<std::int32_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, std::int32_t> numbers_;
};

SchemaEntry entryOf(const c10::Argument& argument, AliasSets& aliases) {
  SchemaEntry entry{.name = argument.name(), .type = typeText(argument), .keywordOnly = argument.kwarg_only()};
  if (argument.default_value()) entry.defaultValue = defaultOf(*argument.default_value(), entry.type);
  aliases.apply(argument, entry);
  return entry;
}

/// Stage border that torch.distributed.pipelining's pipe_split() leaves in a graph: it does nothing, and LibTorch need
/// not have it.
Symbol pipeSplit() {
  return {.name = "pippy._pipe_split.default", .schema = "pippy::_pipe_split() -> ()", .known = true};
}

std::optional<Symbol> find(std::string_view name, bool ofLibrary) {
  const auto op = splitName(name);
  if (!op) return std::nullopt;
  if (op->space == "pippy" && op->name == "_pipe_split") return pipeSplit();
  if (!ofLibrary && !isAllowed(*op)) return std::nullopt;
  const auto handle = findOperator(name);
  if (!handle) return std::nullopt;
  auto symbol = describeOperator(*handle);
  return takesForbidden(symbol) ? std::nullopt : std::optional(std::move(symbol));
}

}  // namespace

Symbol describeOperator(const c10::OperatorHandle& op) {
  Symbol symbol{.name = symbolName(op)};
  std::ostringstream text;
  text << op.schema();
  symbol.schema = text.str();
  AliasSets aliases;
  for (const auto& argument : op.schema().arguments()) symbol.arguments.push_back(entryOf(argument, aliases));
  for (const auto& result : op.schema().returns()) symbol.returns.push_back(entryOf(result, aliases));
  symbol.known = true;
  symbol.isMutable = op.schema().is_mutable();
  for (const auto& result : symbol.returns) symbol.isView |= result.aliasSet >= 0 && !result.isWrite;
  symbol.isRandom = op.hasTag(at::Tag::nondeterministic_seeded);
  symbol.needsData = op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape);
  return symbol;
}

void allowLibraryOp(const std::string& name) {
  const std::unique_lock lock(table().mutex);
  table().ofLibraries.insert(name);
  table().cache.clear();  // it may hold that there is no such op
}

std::optional<Symbol> lookupSymbol(std::string_view name) {
  std::string key(name);
  if (key.starts_with("torch.ops.")) key.erase(0, 10);
  bool ofLibrary = false;
  {
    const std::shared_lock lock(table().mutex);
    if (const auto it = table().cache.find(key); it != table().cache.end()) return it->second;
    ofLibrary = table().ofLibraries.contains(key);
  }
  auto symbol = find(key, ofLibrary);
  constexpr std::size_t limit = 20000;  // more than LibTorch has: names of hostile files do not pile up
  const std::unique_lock lock(table().mutex);
  if (table().cache.size() < limit) table().cache.emplace(key, symbol);
  return symbol;
}

}  // namespace retrograd
