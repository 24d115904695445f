#include "core/trace/symbol.h"

#include <set>

#include "core/base/number_text.h"
#include "core/trace/python_text.h"

namespace retrograd {

SchemaType parseSchemaType(std::string_view text) {
  SchemaType type;
  if (text.ends_with('?')) {
    type.optional = true;
    text.remove_suffix(1);
  }
  if (text.ends_with(']')) {
    const auto open = text.rfind('[');
    if (open != std::string_view::npos) {
      type.list = true;
      type.length =
          numberIn<decltype(type.length)>(text.substr(open + 1, text.size() - open - 2)).value_or(type.length);
      text = text.substr(0, open);
      if (text.ends_with('?')) {
        type.optionalElement = true;
        text.remove_suffix(1);
      }
    }
  }
  type.element = text;
  return type;
}

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

/// From which argument on a call without a schema names its arguments: all from there have names that Python takes, and
/// different ones.
std::size_t firstNamed(const Symbol& symbol, const CallPattern& pattern) {
  const auto count = pattern.arguments.size();
  const bool positional =
      symbol.known && !symbol.isHigherOrder;  // an operator of Python, whose parameters have no names
  if (positional || pattern.names.size() != count) return count;
  auto first = count;
  while (first > 0 && isPythonName(pattern.names[first - 1])) --first;
  std::set<std::string_view> met;
  for (std::size_t i = 0; i < count; ++i)
    if (i < first ? !pattern.names[i].empty() : !met.insert(pattern.names[i]).second) return count;
  return first;
}

}  // namespace

CallArguments callArguments(const Symbol& symbol, const CallPattern& pattern) {
  CallArguments call;
  if (symbol.arguments.empty()) {
    const auto named = firstNamed(symbol, pattern);
    for (std::size_t i = 0; i < pattern.arguments.size(); ++i)
      if (i < named) call.positional.push_back(&pattern.arguments[i]);
      else call.keyword.emplace_back(pattern.names[i], &pattern.arguments[i]);
    return call;
  }
  std::size_t needed = 0;  // positional arguments up to the last that differs from its default
  for (std::size_t i = 0; i < pattern.arguments.size(); ++i) {
    const auto& argument = pattern.arguments[i];
    if (i >= symbol.arguments.size()) {  // a call longer than its schema: nothing can be left out
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
