#include "core/trace/call.h"

namespace retrograd {
namespace {

bool isDefault(const Argument& argument, const SchemaEntry& entry) {
  if (argument.kind == Argument::Kind::missing) return true;
  return entry.defaultValue && argument == *entry.defaultValue;
}

const Argument* given(const Argument& argument, const SchemaEntry& entry) {
  static const Argument none;
  if (argument.kind != Argument::Kind::missing) return &argument;
  return entry.defaultValue ? &*entry.defaultValue : &none;
}

}  // namespace

CallArguments callArguments(const Symbol& symbol, const CallPattern& pattern) {
  CallArguments call;
  std::size_t needed = 0;  // positional arguments up to the last that differs from its default
  for (std::size_t i = 0; i < pattern.arguments.size(); ++i) {
    const auto& argument = pattern.arguments[i];
    if (i >= symbol.arguments.size()) {  // no schema, or a call longer than it: nothing can be left out
      call.positional.push_back(&argument);
      needed = call.positional.size();
      continue;
    }
    const auto& entry = symbol.arguments[i];
    if (!entry.keywordOnly) {
      call.positional.push_back(given(argument, entry));
      if (!isDefault(argument, entry)) needed = call.positional.size();
    } else if (!isDefault(argument, entry)) {
      call.keyword.emplace_back(entry.name, &argument);
    }
  }
  call.positional.resize(needed);
  return call;
}

}  // namespace retrograd
