// Which forward ops a user or the file wants recomputed.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/module_path.h"
#include "core/base/near_names.h"
#include "core/base/op_name.h"
#include "core/split/partition.h"
#include "core/trace/op_traits.h"

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
      return hasAncestor(
          op, [&](BoundSymbolId ancestor) { return hasTrait(document_.symbol(ancestor).name, OpTrait::runsAgain); });
    });
  }

  void mark(const std::string& what) {
    if (what == "all") return void(markWhere([](BoundSymbolId) { return true; }));
    if (what.starts_with('#')) return markOp(what);
    if (what.ends_with(".*")) return markMembers(what.substr(0, what.size() - 2));
    auto modules = modulesOfForward();
    const auto meant = modulesNamed(what, modules);
    if (meant.size() == 1)
      return void(markWhere([&](BoundSymbolId op) {
        return isInModule(document_.text(document_.boundSymbol(op).module), meant.front());
      }));
    if (meant.size() > 1) moduleNamed(what, modules);  // throws, with all of them
    modules.erase("");
    badUse("the model computes nothing in a module of this path" + nearOnes(what, {modules.begin(), modules.end()}),
           "recompute " + what);
  }

  OpMarks take() { return std::move(marks_); }

 private:
  std::set<std::string, std::less<>> modulesOfForward() const {
    std::set<std::string, std::less<>> modules;
    for (std::size_t i = 0; i < joint_.forwardCount; ++i)
      modules.emplace(document_.text(document_.boundSymbol(joint_.ops[i]).module));
    return modules;
  }

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

  /// Each member of a list of modules, but for what makes a value that leaves it: so the input of the next one is kept,
  /// as by torch.utils.checkpoint around each member.
  void markMembers(const std::string& wanted) {
    const auto list = moduleNamed(wanted, modulesOfForward()) + ".";
    std::map<std::string, int, std::less<>> members;
    const auto memberOf = [&](BoundSymbolId op) {
      const auto path = document_.text(document_.boundSymbol(op).module);
      if (!path.starts_with(list)) return -1;
      const auto member = path.substr(0, path.find('.', list.size()));
      return members.try_emplace(std::string(member), static_cast<int>(members.size())).first->second;
    };
    IdVector<ValueId, std::pair<BoundSymbolId, int>> makers;
    makers.assign(document_.valueCount(), {BoundSymbolId(), -1});
    OpMarks leaves(document_.boundSymbolCount(), 0);
    for (std::size_t i = 0; i < joint_.forwardCount; ++i) {
      const auto op = joint_.ops[i];
      const int member = memberOf(op);
      for (auto operand : document_.operands(op))
        if (const auto maker = operand ? makers[operand] : std::pair(BoundSymbolId(), -1);
            maker.second >= 0 && maker.second != member)
          leaves[maker.first] = true;
      for (auto output : document_.outputs(op))
        if (output) makers[output] = {op, member};
    }
    markWhere([&](BoundSymbolId op) { return memberOf(op) >= 0 && !leaves[op]; });
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
    badUse("no op of the forward comes from an op of this name or id" + nearOnes(name, names), "recompute #" + name);
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
