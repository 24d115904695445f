#pragma once
// The collectives of a recorded step as what they are: who takes part, what is given, what comes out.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

enum class CollectiveKind : std::uint8_t {
  allReduce,
  allGather,
  reduceScatter,
  broadcast,
  reduce,
  gather,
  scatter,
  allToAll,
  send,
  receive,
  barrier
};
/// "all_reduce", ...
std::string_view name(CollectiveKind);

/// A collective that one rank called.
struct Collective {
  BoundSymbolId op;
  CollectiveKind kind = CollectiveKind::barrier;
  bool inPieces = false;  ///< each rank's piece is a tensor of its own; else they lie one after another in one
  std::vector<std::int64_t> group;      ///< ranks, in the group's order
  std::string reduction;                ///< "sum", "avg", ...; empty: it reduces nothing
  std::int64_t root = -1;               ///< a place in the group; of send and receive the other rank's
  std::int64_t tag = 0;                 ///< of send and receive
  std::vector<ValueId> given, results;  ///< what this rank puts in; the memory that is filled
  std::vector<std::int64_t> givenRows,
      resultRows;  ///< of allToAll in one tensor: rows for and from each rank; empty: equal

  bool reduces() const { return !reduction.empty(); }
};

/// The collectives of a recording in their order. What is no collective that this knows is left out.
std::vector<Collective> collectivesOf(const Analysis& analysis);

/// "all_reduce (avg) of f32[280] over [0, 1]"
std::string textOf(const Document& document, const Collective& collective);
/// The same without the tensors: "all_reduce (avg) over [0, 1]"
std::string callText(const Collective& collective);
/// "[0, 1]"
std::string ranksText(const std::vector<std::int64_t>& ranks);

}  // namespace retrograd
