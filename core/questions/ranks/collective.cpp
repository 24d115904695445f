#include "core/questions/ranks/collective.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/enum_array.h"
#include "core/formats/recording/recording.h"

namespace retrograd {
namespace {

constexpr EnumArray<CollectiveKind, std::string_view, 11> kindNames{
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather",
    "scatter",    "all_to_all", "send",           "receive",   "barrier"};

constexpr int none = -1;

/// Where the arguments of an op are: what is given, what is filled (none: the op's outputs), the reduction, the root.
struct Signature {
  std::string_view name;
  CollectiveKind kind;
  int given, filled, reduction, root;
  bool inPieces = false;
};
using enum CollectiveKind;
constexpr Signature signatures[]{
    {"c10d.allreduce_", allReduce, 0, 0, 2, none},
    {"c10d.allreduce_coalesced_", allReduce, 0, 0, 2, none},
    {"c10d.allgather_", allGather, 1, 0, none, none, true},
    {"c10d.allgather_coalesced_", allGather, 1, 0, none, none, true},
    {"c10d._allgather_base_", allGather, 1, 0, none, none},
    {"c10d.allgather_into_tensor_coalesced_", allGather, 1, 0, none, none},
    {"c10d.reduce_scatter_", reduceScatter, 1, 0, 3, none, true},
    {"c10d._reduce_scatter_base_", reduceScatter, 1, 0, 3, none},
    {"c10d.reduce_scatter_tensor_coalesced_", reduceScatter, 1, 0, 3, none},
    {"c10d.broadcast_", broadcast, 0, 0, none, 2},
    {"c10d.reduce_", reduce, 0, 0, 2, 3},
    {"c10d.gather_", gather, 1, 0, none, 3, true},
    {"c10d.scatter_", scatter, 1, 0, none, 3, true},
    {"c10d.alltoall_", allToAll, 1, 0, none, none, true},
    {"c10d.alltoall_base_", allToAll, 1, 0, none, none},
    {"c10d.send", send, 0, none, none, 2},
    {"c10d.recv_", receive, none, 0, none, 2},
    {"c10d.barrier", barrier, none, none, none, none},
    {"c10d.monitored_barrier_", barrier, none, none, none, none},
    {"_c10d_functional.all_reduce", allReduce, 0, none, 1, none},
    {"_c10d_functional.all_reduce_", allReduce, 0, none, 1, none},
    {"_c10d_functional.all_reduce_coalesced", allReduce, 0, none, 1, none},
    {"_c10d_functional.all_reduce_coalesced_", allReduce, 0, none, 1, none},
    {"_c10d_functional.all_gather_into_tensor", allGather, 0, none, none, none},
    {"_c10d_functional.all_gather_into_tensor_out", allGather, 0, none, none, none},
    {"_c10d_functional.all_gather_into_tensor_coalesced", allGather, 0, none, none, none},
    {"_c10d_functional.reduce_scatter_tensor", reduceScatter, 0, none, 1, none},
    {"_c10d_functional.reduce_scatter_tensor_out", reduceScatter, 0, none, 1, none},
    {"_c10d_functional.reduce_scatter_tensor_coalesced", reduceScatter, 0, none, 1, none},
    {"_c10d_functional.broadcast", broadcast, 0, none, none, 1},
    {"_c10d_functional.broadcast_", broadcast, 0, none, none, 1},
    {"_c10d_functional.all_to_all_single", allToAll, 0, none, none, none},
};

/// The name without "recorded." before it, as ops have that nobody can run, and without the overload.
std::string_view plainName(std::string_view name) {
  constexpr std::string_view prefix = "recorded.";
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return name.substr(0, name.rfind('.'));
}

std::vector<std::int64_t> integersOf(const Argument& argument) {
  std::vector<std::int64_t> numbers;
  for (const auto& item : argument.items) numbers.push_back(item.integer);
  return numbers;
}

class Reader {
 public:
  Reader(const Document& document, BoundSymbolId op)
      : document_(document), op_(op), arguments_(document.pattern(document.boundSymbol(op).pattern).arguments) {}

  std::vector<ValueId> tensors(int place) const {
    std::vector<ValueId> found;
    if (place >= 0 && std::cmp_less(place, arguments_.size()))
      forEachOperand(arguments_[place], [&](std::size_t hole) { found.push_back(document_.operands(op_)[hole]); });
    return found;
  }
  std::vector<ValueId> outputs() const {
    std::vector<ValueId> found;
    for (const auto output : document_.outputs(op_))
      if (output && document_.isTensor(output)) found.push_back(output);
    return found;
  }
  const Argument& at(int place) const {
    static const Argument absent;
    return place >= 0 && std::cmp_less(place, arguments_.size()) ? arguments_[place] : absent;
  }

 private:
  const Document& document_;
  BoundSymbolId op_;
  const std::vector<Argument>& arguments_;
};

}  // namespace

std::string_view name(CollectiveKind kind) { return kindNames[kind]; }

std::vector<Collective> collectivesOf(const Analysis& analysis) {
  const auto& document = *analysis.document;
  const auto& recording = *analysis.file.recording;
  std::vector<Collective> found;
  for (const auto op : analysis.joint.ops) {
    const auto called = plainName(document.symbol(op).name);
    const auto signature = std::ranges::find(signatures, called, &Signature::name);
    const auto group = recording.groups.find(op);
    if (signature == std::end(signatures) || group == recording.groups.end()) continue;
    const Reader reader(document, op);
    Collective one{.op = op, .kind = signature->kind, .inPieces = signature->inPieces, .group = group->second};
    one.given = reader.tensors(signature->given);
    one.results = called.starts_with("c10d.") ? reader.tensors(signature->filled) : reader.outputs();
    one.reduction = reader.at(signature->reduction).text;
    if (signature->root != none) one.root = reader.at(signature->root).integer;
    if (one.kind == send || one.kind == receive) one.tag = reader.at(3).integer;
    if (one.kind == allToAll && !one.inPieces) {
      const bool isFunctional = !called.starts_with("c10d.");
      one.resultRows = integersOf(reader.at(isFunctional ? 1 : 3));
      one.givenRows = integersOf(reader.at(isFunctional ? 2 : 4));
    }
    found.push_back(std::move(one));
  }
  return found;
}

std::string ranksText(const std::vector<std::int64_t>& ranks) { return fmt::format("[{}]", fmt::join(ranks, ", ")); }

namespace {

std::string textWith(const Collective& collective, const std::string& tensors) {
  auto text = std::string(name(collective.kind));
  if (collective.reduces()) text += " (" + collective.reduction + ")";
  text += tensors;
  if (collective.kind == send) return text + fmt::format(" to {}", collective.root);
  if (collective.kind == receive) return text + fmt::format(" from {}", collective.root);
  return text + " over " + ranksText(collective.group);
}

}  // namespace

std::string callText(const Collective& collective) { return textWith(collective, {}); }

std::string textOf(const Document& document, const Collective& collective) {
  const auto& tensors = collective.given.empty() ? collective.results : collective.given;
  std::string text;
  if (!tensors.empty()) {
    const auto& meta = document.meta(tensors.front());
    text = fmt::format(" of {}[{}]", shortName(meta.dtype), fmt::join(meta.sizes, ", "));
    if (tensors.size() > 1) text += fmt::format(" and {} more", tensors.size() - 1);
  }
  return textWith(collective, text);
}

}  // namespace retrograd
