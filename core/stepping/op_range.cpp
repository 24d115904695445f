#include "core/stepping/op_range.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "core/base/module_path.h"
#include "core/stepping/breakpoint.h"

namespace retrograd {
namespace {

/// The place among the computation's top-level ops of what the word names.
std::size_t placeOf(const Analysis& analysis, const std::string& word) {
  const auto& document = *analysis.document;
  const auto& all = analysis.computation().trace.ops;
  const auto named = parseBreakpoint(analysis, word);
  auto op = named.where == Breakpoint::Where::op ? OriginLinks::origin(document, named.op) : BoundSymbolId();
  while (op && document.boundSymbol(op).parent) op = document.boundSymbol(op).parent;
  const auto at = std::find(all.begin(), all.end(), op);
  if (!op || at == all.end()) badUse("the computation holds no such op", word);
  return at - all.begin();
}

std::vector<BoundSymbolId> slice(const std::vector<BoundSymbolId>& all, std::size_t first, std::size_t last) {
  return {all.begin() + first, all.begin() + last + 1};
}

std::vector<BoundSymbolId> opsOfModule(const Analysis& analysis, const std::string& path) {
  const auto& all = analysis.computation().trace.ops;
  std::set<std::string, std::less<>> paths;
  for (auto op : all) paths.emplace(analysis.document->text(analysis.document->boundSymbol(op).module));
  const auto module = moduleNamed(path, paths);
  const auto in = [&](BoundSymbolId op) {
    return isInModule(analysis.document->text(analysis.document->boundSymbol(op).module), module);
  };
  const auto first = std::find_if(all.begin(), all.end(), in);
  if (first == all.end()) badUse("the computation holds no op of this module", path);
  return {first, std::find_if(all.rbegin(), all.rend(), in).base()};
}

}  // namespace

std::vector<BoundSymbolId> opRange(const Analysis& analysis, const std::string& words) {
  std::istringstream stream(words);
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(word);
  const auto& ops = analysis.computation().trace.ops;
  if (all.size() == 1 && all[0] == "all" && !ops.empty()) return ops;
  if (all.size() == 2 && all[0] == "module") return opsOfModule(analysis, all[1]);
  if (all.size() == 1) {
    const auto at = placeOf(analysis, all[0]);
    return slice(ops, at, at);
  }
  if (all.size() == 3 && all[1] == "to") {
    const auto [first, last] = std::minmax(placeOf(analysis, all[0]), placeOf(analysis, all[2]));
    return slice(ops, first, last);
  }
  badUse("expected #OP, a value's name, #OP to #OP, module PATH or all", words.empty() ? "an op or a range" : words);
}

}  // namespace retrograd
