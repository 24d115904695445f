#include "core/questions/partition_wishes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/module_path.h"
#include "core/questions/why.h"

namespace retrograd {
namespace {

/// The op as PartitionOptions::recompute names it: "#" and its node name, or its id where it has none.
std::string wordFor(const Document& document, BoundSymbolId operation) {
  std::string word("#");
  const auto name = document.text(document.boundSymbol(operation).name);
  return name.empty() ? word += std::to_string(operation.index) : word += name;
}

void addWord(PartitionOptions& partition, const std::string& word) {
  if (std::find(partition.recompute.begin(), partition.recompute.end(), word) == partition.recompute.end())
    partition.recompute.push_back(word);
}

/// What equal layers have in common of an op: its place in the member, its symbol, and how often that came before.
using Place = std::tuple<std::string, std::int32_t, int>;

/// Of each op of the computation in a list; others have none.
std::map<BoundSymbolId, Place> placesOf(const Analysis& analysis) {
  const auto& document = *analysis.document;
  std::map<BoundSymbolId, Place> places;
  std::map<std::pair<std::string, std::int32_t>, int> seen;
  for (auto op : analysis.computation().trace.ops) {
    const auto path = document.text(document.boundSymbol(op).module);
    const auto lists = listsAround(path);
    if (lists.empty()) continue;
    const auto& [list, member] = lists.front();
    const auto symbol = document.boundSymbol(op).symbol.index;
    const int number = seen[{std::string(path), symbol}]++;
    places.emplace(op, Place(std::string(list) + ".*" + std::string(path.substr(list.size() + 1 + member.size())),
                             symbol, number));
  }
  return places;
}

}  // namespace

PartitionOptions recomputing(const Analysis& analysis, ValueId value) {
  const auto& document = *analysis.document;
  const auto name = document.displayName(value);
  const auto why = whySaved(analysis, value);
  if (!why.saved) badUse("it is not saved", name);
  if (!why.maker || why.storageBytes == 0)
    badUse("it is an input or parameter, or a view of one, and there anyway: saving it costs nothing", name);
  if (!why.recompute.impossible.empty()) badUse("it cannot be recomputed: " + why.recompute.impossible, name);
  auto partition = analysis.request.partition;
  for (auto op : why.recompute.ops)
    if (const auto operation = OriginLinks::origin(document, op)) addWord(partition, wordFor(document, operation));
  return partition;
}

PartitionOptions saving(const Analysis& analysis, BoundSymbolId op) {
  const auto& document = *analysis.document;
  const auto operation = OriginLinks::origin(document, op);
  auto partition = analysis.request.partition;
  const auto path = document.text(document.boundSymbol(operation ? operation : op).module);
  const auto asksForIt = [&](const std::string& word) {
    if (word.starts_with('#'))
      return operation && (word == wordFor(document, operation) || word.substr(1) == std::to_string(operation.index));
    const auto module = word.ends_with(".*") ? word.substr(0, word.size() - 2) : word;
    return word == "all" || isInModule(path, module);
  };
  if (std::erase_if(partition.recompute, asksForIt) > 0) return partition;
  if (partition.kind == PartitionOptions::minCut || partition.budget) {
    partition.kind = PartitionOptions::defaultKind;
    partition.budget.reset();
    return partition;
  }
  partition.regions = false;
  return partition;
}

PartitionOptions inEqualLayers(const Analysis& analysis, PartitionOptions wish) {
  const auto& document = *analysis.document;
  const auto& before = analysis.request.partition.recompute;
  const auto places = placesOf(analysis);
  std::set<Place> wanted;
  for (const auto& [op, place] : places) {
    const auto word = wordFor(document, op);
    const auto has = [&](const std::vector<std::string>& words) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (has(wish.recompute) && !has(before)) wanted.insert(place);
  }
  for (const auto& [op, place] : places)
    if (wanted.contains(place)) addWord(wish, wordFor(document, op));
  return wish;
}

std::string listOfBlocks(const Analysis& analysis, const SavedValues& saved) {
  const auto& document = *analysis.document;
  struct List {
    std::set<std::string, std::less<>> members;
    std::int64_t bytes = 0;
  };
  std::map<std::string, List, std::less<>> lists;
  for (auto op : analysis.forward.ops) {
    std::int64_t bytes = 0;
    for (auto output : document.outputs(op)) bytes += output ? saved.costOf(output) : 0;
    for (const auto& [name, member] : listsAround(document.text(document.boundSymbol(op).module))) {
      auto& list = lists[std::string(name)];
      list.members.emplace(member);
      list.bytes += bytes;
    }
  }
  std::string best;
  std::int64_t most = 0;
  for (const auto& [name, list] : lists)
    if (list.members.size() > 1 && list.bytes > most) best = name, most = list.bytes;
  if (best.empty())
    badUse("no list of modules has two members that save something: there are no blocks to checkpoint",
           analysis.file.path);
  return best;
}

PartitionOptions checkpointing(const Analysis& analysis, const std::string& list) {
  auto partition = analysis.request.partition;
  partition.kind = PartitionOptions::defaultKind;
  partition.budget.reset();
  addWord(partition, list + ".*");
  return partition;
}

}  // namespace retrograd
