// Which forward ops a user or the file wants recomputed.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/base/module_path.h"
#include "core/base/near_names.h"
#include "core/base/op_number.h"
#include "core/split/partition.h"

namespace retrograd {
namespace {

/// The names near the one that was wanted, or some of those that there are.
std::string nearOnes(const std::string& wanted, const std::set<std::string>& known) {
  const std::vector<std::string> all(known.begin(), known.end());
  if (auto near = didYouMean(wanted, all); !near.empty()) return near;
  std::string some;
  for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 3); ++i)
    some += (i == 0 ? "; there are " : ", ") + all[i];
  return all.size() > 3 ? some + ", ..." : some;
}

class Marker {
 public:
  Marker(const Document& document, const Trace& joint)
      : document_(document), joint_(joint), marks_(document.boundSymbolCount(), 0) {}

  void markCheckpoints() {
    markWhere([&](BoundSymbolId op) {
      return hasAncestor(op, [&](BoundSymbolId ancestor) {
        return document_.symbol(document_.boundSymbol(ancestor).symbol)
            .name.starts_with("higher_order.tag_activation_checkpoint");
      });
    });
  }

  void mark(const std::string& what) {
    if (what == "all") return void(markWhere([](BoundSymbolId) { return true; }));
    if (what.starts_with('#')) return markOp(what);
    std::set<std::string, std::less<>> modules;
    for (std::size_t i = 0; i < joint_.forwardCount; ++i)
      modules.emplace(document_.text(document_.boundSymbol(joint_.ops[i]).module));
    const auto meant = modulesNamed(what, modules);
    if (meant.size() == 1)
      return void(markWhere([&](BoundSymbolId op) {
        return isInModule(document_.text(document_.boundSymbol(op).module), meant.front());
      }));
    if (meant.size() > 1) moduleNamed(what, modules);  // throws, with all of them
    modules.erase("");
    throw Error(
        ErrorCode::badUse,
        "the model computes nothing in a module of this path" + nearOnes(what, {modules.begin(), modules.end()}),
        "recompute " + what);
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
    for (auto ancestor = document_.boundSymbol(from).parent; ancestor;
         ancestor = document_.boundSymbol(ancestor).parent)
      if (holds(ancestor)) return true;
    return false;
  }

  /// "#12", or "#" and the name of a computation op.
  void markOp(const std::string& what) {
    const auto id = opNumber(what);
    const auto name = what.substr(1);
    const auto isNamed = [&](BoundSymbolId op) {
      return id ? op.index == *id : !name.empty() && document_.text(document_.boundSymbol(op).name) == name;
    };
    const bool any = markWhere([&](BoundSymbolId op) {
      const auto from = document_.boundSymbol(op).origin.op;
      return (id && op.index == *id) || (from && isNamed(from)) || hasAncestor(op, isNamed);
    });
    if (any) return;
    std::set<std::string> names;
    for (std::size_t i = 0; i < joint_.forwardCount; ++i) {
      const auto from = document_.boundSymbol(joint_.ops[i]).origin.op;
      if (!from) continue;
      if (id) names.insert(std::to_string(from.index));
      else if (const auto text = document_.text(document_.boundSymbol(from).name); !text.empty()) names.emplace(text);
    }
    throw Error(ErrorCode::badUse, "no op of the forward comes from an op of this name or id" + nearOnes(name, names),
                "recompute #" + name);
  }

  const Document& document_;
  const Trace& joint_;
  OpMarks marks_;
};

}  // namespace

OpMarks markedForRecomputation(const Document& document, const Trace& joint, const std::vector<std::string>& recompute,
                               bool regions) {
  Marker marker(document, joint);
  if (regions) marker.markCheckpoints();
  for (const auto& what : recompute) marker.mark(what);
  return marker.take();
}

}  // namespace retrograd
