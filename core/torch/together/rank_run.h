#pragma once
#include <ATen/core/ivalue.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/formats/recording/recording.h"
#include "core/questions/ranks/meetings.h"
#include "core/torch/session/replay.h"
#include "core/torch/together/spilled_tensors.h"

namespace retrograd {

/// A parameter or buffer as one rank holds it.
struct RankWeight {
  bool isBuffer = false;
  bool isConstant = false;  ///< all elements are one number, as biases begin: equal parts are then no copies
  const RecordedShard* shard = nullptr;  ///< of a DTensor; null: the rank holds a plain tensor
  std::vector<std::int64_t> sizes;       ///< of what the rank holds
  SpilledTensors::Place value;           ///< as the recording begins
  std::uint64_t before = 0;              ///< hash, as the recording begins
  std::optional<std::uint64_t> after;    ///< after its last write; none: nothing wrote it
  BoundSymbolId written;                 ///< the last op that wrote it
};

/// A gradient that an update or clipping read.
struct RankGradient {
  std::int32_t step = -1;
  SpilledTensors::Place read;  ///< as it was read first
  SpilledTensors::Place
      own;  ///< what the rank's backwards made of it, summed, before any reduction; nowhere: not known
  SpilledTensors::Place last;   ///< of that the part of the last backward, where there are several
  double largest = 0;           ///< magnitude of an element, as it was read
  SpilledTensors::Place prior;  ///< what was made before and not read, where a backward began anew; nowhere: nothing
  at::ScalarType dtype = at::kFloat;  ///< of what the backwards made
  std::int32_t parts = 0;             ///< backwards that made a part
  bool isMixed = false;               ///< a collective is behind what a backward made
  BoundSymbolId made;                 ///< the first op that accumulated
  BoundSymbolId readBy;
};

/// Whether two ranks hold the same part of a DTensor.
bool holdSamePart(const RecordedShard& shard, std::int64_t a, std::int64_t b);

/// An op that draws random numbers in a forward.
struct RankDraw {
  BoundSymbolId op;
  std::optional<std::uint64_t> read;  ///< hash of the first tensor that it reads; none: it reads none
  std::uint64_t drawn = 0;            ///< hash of what it made
};

/// What of one rank's run is compared with the others.
struct RankRun {
  ReplayResult replay;
  std::vector<std::pair<ValueId, c10::IValue>> begun;          ///< what was there before the first op
  std::vector<std::vector<SpilledTensors::Place>> given;       ///< by collective
  std::map<std::string, RankWeight> weights;                   ///< by name
  std::map<std::string, std::vector<RankGradient>> gradients;  ///< by parameter, in the order of the updates
  std::vector<RankDraw> draws;
  std::map<std::string, std::uint64_t> inputs;  ///< hashes of what flows into forwards and has no name, by place
  std::set<std::size_t> mixing;                 ///< collectives of forwards that the loss depends on
};

/// Runs one rank again, with the results of its collectives as they were recorded. Throws Error(cancelled).
RankRun runRank(const RankStep& step, SpilledTensors& spilled, const Progress& progress = {});

/// Whether all of the rank's step was recorded, to its end, and ran again.
bool isWhole(const RankStep& step, const RankRun& run);
/// Why what all ranks did together cannot be told: one is not there, or is not whole; empty: it can.
std::string gapIn(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs);

}  // namespace retrograd
