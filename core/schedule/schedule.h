#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd {

/// What a rank does in one step of a pipeline schedule. The first four compute; the others move or reduce what was
/// computed.
enum class ActionKind : std::uint8_t {
  forward,         ///< F
  backward,        ///< B: gradients of inputs and parameters at once
  backwardInput,   ///< I: gradients of the stage's inputs only, so that the stage before can go on
  backwardWeight,  ///< W: gradients of the parameters, any time after I
  sendForward,
  recvForward,
  sendBackward,
  recvBackward,
  waitSendForward,
  waitSendBackward,
  unshard,
  reshard,
  reduceGrad,
  waitReduceGrad,
  overlap,  ///< OVERLAP_F_B: a forward and a backward that a rank runs together
};

/// One cell of a schedule: "<stage><kind><microbatch>", as "3F0", "2SEND_B1", "0UNSHARD", or "(0F7;7B3)OVERLAP_F_B"
/// with its parts. `stage` is the one that computes; of a transfer, the one on the side that does it ("0SEND_F2" meets
/// "1RECV_F2").
struct Action {
  ActionKind kind = ActionKind::forward;
  std::int32_t stage = -1;
  std::int32_t microbatch = -1;  ///< -1: of all microbatches
  std::vector<Action> parts;     ///< of an overlap, in the order in which they are issued

  friend bool operator==(const Action& a, const Action& b) {
    return a.kind == b.kind && a.stage == b.stage && a.microbatch == b.microbatch && a.parts == b.parts;
  }
};

bool computes(ActionKind kind);   ///< F, B, I or W
bool transfers(ActionKind kind);  ///< SEND_*, RECV_*, WAIT_SEND_*

/// Values go from one stage to another: each is sent by the stage that makes it to every stage that reads it.
struct StageEdge {
  std::int32_t source = 0, consumer = 0;
  friend bool operator==(const StageEdge&, const StageEdge&) = default;
};

/// What each rank does, in order. Stages are numbered along the model, microbatches from 0.
struct Schedule {
  std::string name;
  std::int32_t stages = 0;
  std::int32_t microbatches = 0;
  std::vector<std::vector<Action>> ranks;
  std::vector<std::int32_t> rankOfStage;  ///< -1 where no rank computes the stage
  std::vector<StageEdge> edges;           ///< empty: each stage feeds the next one

  /// The edges, those of a chain where none are given.
  std::vector<StageEdge> allEdges() const;
};

/// A schedule of these rows; stages, microbatches and placement are those that its actions name.
Schedule scheduleOf(std::string name, std::vector<std::vector<Action>> ranks);

std::string text(const Action& action);
/// Throws Error(badInput) naming what is wrong with the text.
Action parseAction(std::string_view text);

/// Reads PyTorch's CSV form: one row a rank, a cell an action, empty cells idle. Throws Error(badInput) naming row and
/// cell (from 1).
Schedule readScheduleCsv(std::string_view csv, std::string name);
/// The same from a file; Error(badUse) where it cannot be read.
Schedule readScheduleFile(const std::string& path);
std::string writeScheduleCsv(const Schedule& schedule);

}  // namespace retrograd
