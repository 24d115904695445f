#include "core/trace/filter/filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/base/id_vector.h"
#include "core/trace/filter/filter_words.h"

namespace retrograd {

struct FilterRun::Impl {
  using Node = Filter::Node;
  using Field = Filter::Field;
  using Comparison = Filter::Comparison;

  const Document& document;
  const Filter& filter;
  IdVector<ValueId, bool> saved;
  std::vector<std::vector<std::int64_t>> shapes;                                // by node: the shape pattern, parsed
  std::vector<std::unordered_map<std::int32_t, bool>> symbols, modules, metas;  // by node: what was found of one

  Impl(const Document& d, const Filter& f, const Trace* backward) : document(d), filter(f) {
    const auto count = filter.nodes_.size();
    saved.assign(document.valueCount(), false);
    if (backward)
      for (auto value : std::span(backward->inputs).first(backward->savedCount))
        if (value) saved[value] = true;
    symbols.resize(count);
    modules.resize(count);
    metas.resize(count);
    for (const auto& node : filter.nodes_)
      shapes.push_back(node.field == Field::shape && !node.pattern
                           ? parseShapePattern(node.text).value_or(std::vector<std::int64_t>{})
                           : std::vector<std::int64_t>{});
  }

  template <class Find>
  static bool remembered(std::unordered_map<std::int32_t, bool>& known, std::int32_t key, Find&& find) {
    if (const auto it = known.find(key); it != known.end()) return it->second;
    return known[key] = find();
  }

  bool evaluate(std::int32_t index, BoundSymbolId op) {
    const auto& node = filter.nodes_[index];
    switch (node.kind) {
      case Node::Kind::both: return evaluate(node.left, op) && evaluate(node.right, op);
      case Node::Kind::either: return evaluate(node.left, op) || evaluate(node.right, op);
      case Node::Kind::negation: return !evaluate(node.left, op);
      case Node::Kind::term: return term(index, node, op);
    }
    return false;
  }

  bool term(std::size_t index, const Node& node, BoundSymbolId op) {
    const auto& bound = document.boundSymbol(op);
    switch (node.field) {
      case Field::any: return symbol(index, node, bound.symbol) || module(index, node, op) || outputName(node, op);
      case Field::op: return symbol(index, node, bound.symbol);
      case Field::module: return module(index, node, op);
      case Field::dtype:
      case Field::shape: return type(index, node, op);
      case Field::bytes: return compare(node, bytes(op));
      case Field::role: return role(node, bound.origin.role);
      case Field::origin: return origin(index, node, op);
      case Field::saved: return isSaved(op) == (node.number != 0);
      case Field::recomputed: return bound.recomputed == (node.number != 0);
      case Field::name: return outputName(node, op);
    }
    return false;
  }

  /// "aten.mm.default" is known as itself, as "aten.mm", as "mm.default" and as "mm".
  bool symbol(std::size_t index, const Node& node, SymbolId id) {
    return remembered(symbols[index], id.index, [&] {
      const std::string_view full = document.symbol(id).name;
      const auto first = full.find('.'), last = full.rfind('.');
      if (node.pattern->matches(full)) return true;
      if (first == std::string_view::npos) return false;
      const auto tail = full.substr(first + 1);
      return node.pattern->matches(tail) || node.pattern->matches(full.substr(0, last)) ||
             (last > first && node.pattern->matches(tail.substr(0, last - first - 1)));
    });
  }

  /// A pattern answers for consecutive parts of the path, so "h.3" for "transformer.h.3.mlp" and not for "h.31".
  bool module(std::size_t index, const Node& node, BoundSymbolId op) {
    const auto& bound = document.boundSymbol(op);
    const auto id = bound.module || !bound.origin.op ? bound.module : document.boundSymbol(bound.origin.op).module;
    return remembered(modules[index], id.index, [&] {
      constexpr std::size_t most = 64;  // parts of a path; a hostile one has no end
      const auto path = document.text(id);
      if (path.empty()) return node.pattern->matches(path) && node.field == Field::module;
      std::size_t parts = 0;
      for (std::size_t begin = 0; begin != std::string_view::npos && parts++ < most;
           begin = path.find('.', begin), begin += begin != std::string_view::npos) {
        std::size_t ends = 0;
        for (auto end = path.find('.', begin); ends++ < most; end = path.find('.', end + 1)) {
          if (node.pattern->matches(path.substr(begin, end == std::string_view::npos ? end : end - begin))) return true;
          if (end == std::string_view::npos) break;
        }
      }
      return false;
    });
  }

  bool type(std::size_t index, const Node& node, BoundSymbolId op) {
    for (auto output : document.outputs(op)) {
      if (!output || !document.isTensor(output)) continue;
      const auto id = document.value(output).meta;
      const auto found = remembered(metas[index], id.index, [&] {
        const auto& meta = document.meta(id);
        if (node.field == Field::dtype)
          return node.pattern->matches(shortName(meta.dtype)) || node.pattern->matches(torchName(meta.dtype));
        return node.pattern ? node.pattern->matches(fmt::format("[{}]", fmt::join(meta.sizes, ", ")))
                            : matchesShape(shapes[index], meta.sizes);
      });
      if (found) return true;
    }
    return false;
  }

  /// Of the outputs, each storage once.
  std::int64_t bytes(BoundSymbolId op) const {
    const auto outputs = document.outputs(op);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i] || !document.isTensor(outputs[i])) continue;
      const auto sameStorage = [&](ValueId v) {
        return v && document.value(v).storage == document.value(outputs[i]).storage;
      };
      const auto before = outputs.first(i);
      if (document.value(outputs[i]).storage && std::any_of(before.begin(), before.end(), sameStorage)) continue;
      sum += document.meta(outputs[i]).bytes();
    }
    return sum;
  }

  static bool compare(const Node& node, std::int64_t number) {
    switch (node.comparison) {
      case Comparison::less: return number < node.number;
      case Comparison::lessOrEqual: return number <= node.number;
      case Comparison::greater: return number > node.number;
      case Comparison::greaterOrEqual: return number >= node.number;
      case Comparison::matches:
      case Comparison::equal: break;
    }
    return number == node.number;
  }

  static bool role(const Node& node, Role role) {
    const bool isBackwardOp = role != Role::none && role != Role::forward;
    return node.pattern->matches(role == Role::none ? "computation" : retrograd::name(role)) ||
           (isBackwardOp && node.pattern->matches("backward"));
  }

  /// The op of the computation it comes from: by kind, by its node's name or by a value that it makes.
  bool origin(std::size_t index, const Node& node, BoundSymbolId op) {
    const auto& from = document.boundSymbol(op).origin;
    if (from.role == Role::none || !from.op) return false;
    return symbol(index, node, document.boundSymbol(from.op).symbol) ||
           node.pattern->matches(document.text(document.boundSymbol(from.op).name)) || outputName(node, from.op);
  }

  bool isSaved(BoundSymbolId op) const {
    const auto outputs = document.outputs(op);
    return std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) { return v && saved[v]; });
  }

  bool outputName(const Node& node, BoundSymbolId op) const {
    const auto outputs = document.outputs(op);
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](ValueId v) { return v && node.pattern->matches(document.displayName(v)); });
  }
};

FilterRun::FilterRun(const Document& document, const Filter& filter, const Trace* backward)
    : impl_(std::make_unique<Impl>(document, filter, backward)) {}
FilterRun::~FilterRun() = default;

bool FilterRun::matches(BoundSymbolId op) {
  return impl_->filter.passesAll() || impl_->evaluate(impl_->filter.root_, op);
}

std::vector<BoundSymbolId> FilterRun::select(const Trace& trace) {
  std::vector<BoundSymbolId> found;
  std::copy_if(trace.ops.begin(), trace.ops.end(), std::back_inserter(found),
               [&](BoundSymbolId op) { return matches(op); });
  return found;
}

std::string filterWord(std::string_view text) {
  if (!text.empty() && text.find_first_of(" \t\"()<>=:*?[/\\") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + '"';
}

namespace {

constexpr std::size_t mostCandidates = 200;

/// What the ops of a trace have in a field, as far as it begins with `prefix`.
std::set<std::string> valuesOf(const Document& document, const Trace& trace, Filter::Field field,
                               std::string_view prefix) {
  std::set<std::string> found;
  const auto add = [&](std::string_view text) {
    if (found.size() < mostCandidates && text.starts_with(prefix)) found.insert(filterWord(text));
  };
  const auto opName = [&](BoundSymbolId op) {
    const std::string_view full = document.symbol(op).name;
    const auto first = full.find('.'), last = full.rfind('.');
    if (last > first && first != std::string_view::npos) add(full.substr(first + 1, last - first - 1));
    if (!prefix.empty()) add(full);
  };
  for (auto op : trace.ops) {
    const auto& bound = document.boundSymbol(op);
    switch (field) {
      case Filter::Field::op: opName(op); break;
      case Filter::Field::module:
        add(document.text(bound.module || !bound.origin.op ? bound.module
                                                           : document.boundSymbol(bound.origin.op).module));
        break;
      case Filter::Field::origin:
        if (bound.origin.op) opName(bound.origin.op);
        break;
      case Filter::Field::dtype:
        for (auto output : document.outputs(op))
          if (output && document.isTensor(output)) add(shortName(document.meta(output).dtype));
        break;
      case Filter::Field::name:
        for (auto output : document.outputs(op))
          if (output) add(document.displayName(output));
        break;
      default: break;
    }
  }
  if (field == Filter::Field::role)
    for (auto role : filterRoles()) add(role);
  if (field == Filter::Field::saved || field == Filter::Field::recomputed)
    for (const char* word : {"yes", "no"}) add(word);
  return found;
}

}  // namespace

FilterCompletion completeFilter(const Document& document, const Trace& trace, std::string_view text,
                                std::size_t cursor) {
  cursor = std::min(cursor, text.size());
  auto begin = cursor;
  while (begin > 0 && std::string_view(" \t\n\r()").find(text[begin - 1]) == std::string_view::npos) --begin;
  const auto word = text.substr(begin, cursor - begin);
  const auto colon = word.find(':');
  FilterCompletion completion{begin, cursor, {}};
  if (colon != std::string_view::npos) {
    completion.begin = begin + colon + 1;
    const auto field = filterField(word.substr(0, colon));
    if (!field) return completion;
    const auto values = valuesOf(document, trace, *field, word.substr(colon + 1));
    completion.candidates.assign(values.begin(), values.end());
    return completion;
  }
  for (auto field : filterFields())
    if (field.starts_with(word)) completion.candidates.push_back(std::string(field) + (field == "bytes" ? ">" : ":"));
  for (const char* operation : {"and", "not", "or"})
    if (!word.empty() && std::string_view(operation).starts_with(word)) completion.candidates.emplace_back(operation);
  std::sort(completion.candidates.begin(), completion.candidates.end());
  return completion;
}

}  // namespace retrograd
