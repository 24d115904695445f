// Which forward ops a user or the file wants recomputed.
#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <utility>

#include "core/split/partition.h"

namespace retrograd {
namespace {

std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(row[j + 1], std::min({row[j + 1] + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)}));
  }
  return row.back();
}

/// ": near ones are a, b, c"; empty where there is none at all.
std::string nearOnes(const std::string& wanted, const std::set<std::string>& known) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& name : known) ranked.emplace_back(editDistance(wanted, name), name);
  std::sort(ranked.begin(), ranked.end());
  std::string text;
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) text += (i == 0 ? "; near ones are " : ", ") + ranked[i].second;
  return text;
}

bool isInModule(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

class Marker {
 public:
  Marker(const Document& document, const Trace& joint) : document_(document), joint_(joint), marks_(document.boundSymbolCount(), 0) {}

  void markCheckpoints() {
    markWhere([&](BoundSymbolId op) {
      return hasAncestor(op, [&](BoundSymbolId ancestor) {
        return document_.symbol(document_.boundSymbol(ancestor).symbol).name.starts_with("higher_order.tag_activation_checkpoint");
      });
    });
  }

  void mark(const std::string& what) {
    if (what == "all") return void(markWhere([](BoundSymbolId) { return true; }));
    if (what.starts_with('#')) return markOp(what.substr(1));
    const bool any =
        !what.empty() && markWhere([&](BoundSymbolId op) { return isInModule(document_.text(document_.boundSymbol(op).module), what); });
    if (any) return;
    std::set<std::string> modules;
    for (std::size_t i = 0; i < joint_.forwardCount; ++i) {
      const auto path = document_.text(document_.boundSymbol(joint_.ops[i]).module);
      for (auto end = path.find('.'); end != std::string_view::npos; end = path.find('.', end + 1)) modules.emplace(path.substr(0, end));
      if (!path.empty()) modules.emplace(path);
    }
    throw Error(ErrorCode::badUse, "the model computes nothing in a module of this path" + nearOnes(what, modules), "recompute " + what);
  }

  OpMarks take() { return std::move(marks_); }

 private:
  template <class Predicate>
  bool markWhere(Predicate&& wanted) {
    bool any = false;
    for (std::size_t i = 0; i < joint_.forwardCount; ++i)
      if (wanted(joint_.ops[i])) marks_[joint_.ops[i]] = any = true;
    return any;
  }

  /// Whether the predicate holds for a higher-order op around the computation op that a forward op comes from.
  template <class Predicate>
  bool hasAncestor(BoundSymbolId op, Predicate&& holds) const {
    const auto from = document_.boundSymbol(op).origin.op;
    if (!from) return false;
    for (auto ancestor = document_.boundSymbol(from).parent; ancestor; ancestor = document_.boundSymbol(ancestor).parent)
      if (holds(ancestor)) return true;
    return false;
  }

  void markOp(const std::string& name) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    const bool isId = error == std::errc() && end == name.data() + name.size();
    const auto isNamed = [&](BoundSymbolId op) {
      return isId ? op.index == id : !name.empty() && document_.text(document_.boundSymbol(op).name) == name;
    };
    const bool any = markWhere([&](BoundSymbolId op) {
      const auto from = document_.boundSymbol(op).origin.op;
      return (isId && op.index == id) || (from && isNamed(from)) || hasAncestor(op, isNamed);
    });
    if (any) return;
    std::set<std::string> names;
    for (std::size_t i = 0; i < joint_.forwardCount; ++i) {
      const auto from = document_.boundSymbol(joint_.ops[i]).origin.op;
      if (!from) continue;
      if (isId)
        names.insert(std::to_string(from.index));
      else if (const auto text = document_.text(document_.boundSymbol(from).name); !text.empty())
        names.emplace(text);
    }
    throw Error(ErrorCode::badUse, "no op of the forward comes from an op of this name or id" + nearOnes(name, names),
                "recompute #" + name);
  }

  const Document& document_;
  const Trace& joint_;
  OpMarks marks_;
};

}  // namespace

OpMarks markedForRecomputation(const Document& document, const Trace& joint, const std::vector<std::string>& recompute, bool regions) {
  Marker marker(document, joint);
  if (regions) marker.markCheckpoints();
  for (const auto& what : recompute) marker.mark(what);
  return marker.take();
}

}  // namespace retrograd
