// The command memory: as the traces have it, as LibTorch's allocator hands it out, as a GPU's allocator recorded it.
#include <fmt/format.h>

#include <algorithm>

#include "core/questions/memory_join/memory_prediction.h"
#include "core/questions/memory_join/recorded_memory.h"
#include "core/questions/memory_timeline.h"
#include "core/torch/script/script_state.h"
#include "core/torch/session/allocator_peak.h"

namespace retrograd {
namespace {

using Json = ScriptState::Json;

CommandAnswer predicted(ScriptState& s) {
  const auto timeline = memoryTimeline(*s.analysis);
  CommandAnswer answer;
  const auto at = std::min(s.session.position(), timeline.liveBytes.size()) - (s.session.position() > 0 ? 1 : 0);
  answer.json = {{"peak_bytes", timeline.peakBytes},           {"peak_position", timeline.peakPosition},
                 {"parameter_bytes", timeline.parameterBytes}, {"input_bytes", timeline.inputBytes},
                 {"live_bytes_now", s.session.liveBytes()},    {"at_peak", Json::object()},
                 {"modules_at_peak", Json::object()},          {"timeline", Json::array()}};
  answer.text =
      fmt::format("peak {} bytes after #{} {}; parameters {}, inputs {}; now {}", timeline.peakBytes,
                  s.session.opAt(timeline.peakPosition).index, s.opText(s.session.opAt(timeline.peakPosition)),
                  timeline.parameterBytes, timeline.inputBytes, s.session.liveBytes());
  if (timeline.liveBytes.empty()) return answer;
  for (std::size_t use = 0; use < memoryUseCount; ++use) {
    const auto label = name(static_cast<MemoryUse>(use));
    answer.json["at_peak"][std::string(label)] = timeline.liveBytes[timeline.peakPosition][use];
    answer.text +=
        fmt::format("\n  {:<10} {:>14} at the peak {:>14} now", label, timeline.liveBytes[timeline.peakPosition][use],
                    s.session.position() ? timeline.liveBytes[at][use] : 0);
  }
  for (const auto& [module, bytes] : bytesByModule(*s.analysis, timeline, timeline.peakPosition))
    answer.json["modules_at_peak"][module] = bytes;
  for (std::size_t i = 0; i < timeline.liveBytes.size(); ++i) answer.json["timeline"].push_back(timeline.total(i));
  return answer;
}

/// Adds what the allocator handed out in a run of its own.
void addMeasured(ScriptState& s, CommandAnswer& answer, const Progress& progress) {
  const auto measured = allocatorPeak(s.analysis, progress);
  const auto peakOp = s.session.opAt(measured.peakPosition), workspaceOp = s.session.opAt(measured.workspacePosition);
  answer.json["allocator"] = {{"peak_bytes", measured.peakBytes},
                              {"peak_op", s.opJson(peakOp)},
                              {"tensor_bytes", measured.tensorBytes},
                              {"workspace_bytes", measured.workspaceBytes},
                              {"workspace_op", s.opJson(workspaceOp)}};
  answer.text += fmt::format("\nallocator: peak {} bytes during #{} {}, {} of them in tensors", measured.peakBytes,
                             peakOp.index, s.opText(peakOp), measured.tensorBytes);
  answer.text += measured.workspaceBytes > 0
                     ? fmt::format("\n  largest workspace: {} bytes, #{} {}", measured.workspaceBytes,
                                   workspaceOp.index, s.opText(workspaceOp))
                     : "\n  no op took a workspace";
}

/// The snapshot joined with the session's traces; read once while the same one is asked about.
const RecordedMemory& recordedFor(ScriptState& s, const std::string& path, const Progress& progress) {
  if (s.recorded && s.recorded->path == path) return *s.recorded;
  s.recorded.reset();
  if (!s.analysis->derived())
    throw Error(ErrorCode::badUse, "the open file has no forward and backward to join a snapshot with");
  std::shared_ptr<const MemorySnapshot> snapshot = openMemorySnapshot(path, progress);
  const auto device = firstDevice(*snapshot);
  auto recorded = std::make_shared<RecordedMemory>(recordedMemory(path, std::move(snapshot), device, progress));
  joinRecorded(*recorded, tracedStep(*s.analysis));
  if (recorded->join->steps == 0)
    throw Error(ErrorCode::badInput, "its history has no forward with a backward to join with", path);
  s.recorded = std::move(recorded);
  return *s.recorded;
}

Json blockJson(const RecordedMemory& recorded, std::size_t i) {
  const auto& block = recorded.join->allocations[i];
  const auto facts = factsOf(*recorded.places, *recorded.join, block);
  return {{"bytes", block.what.size},
          {"made_by", facts.maker},
          {"line", facts.line},
          {"held_for", facts.holder},
          {"level", name(block.level)}};
}

/// What the GPU's allocator held in the recorded step that has the peak when the ops up to the present position had
/// run, and for whom.
CommandAnswer recorded(ScriptState& s, const std::string& path, const Progress& progress) {
  constexpr std::size_t most = 12;
  const auto& recorded = recordedFor(s, path, progress);
  const auto& join = *recorded.join;
  const auto position = s.session.position();
  const auto step = stepWith(join, recorded.history.peakEvent);
  const auto event = eventAfter(join, step, position);
  const auto moment = joinedMoment(join, event);
  std::uint64_t bytes = 0;
  for (const auto& holder : moment.holders) bytes += holder.bytes;
  const auto level = [&](JoinLevel one) { return moment.bytes[one]; };
  const auto last = position > 0 ? s.session.opAt(position - 1) : BoundSymbolId();
  CommandAnswer answer;
  answer.json = {{"snapshot", path},
                 {"step", step},
                 {"event", event},
                 {"after", s.opJson(last)},
                 {"bytes", bytes},
                 {"exact_bytes", level(JoinLevel::exact)},
                 {"aligned_bytes", level(JoinLevel::aligned)},
                 {"unknown_bytes", level(JoinLevel::unknown)},
                 {"predicted_bytes", s.session.liveBytes()},
                 {"held_for", Json::array()},
                 {"blocks", Json::array()}};
  answer.text = fmt::format(
      "step {} of {}, event {}, {}: {} bytes held; {} exact, {} aligned, {} unknown", step + 1, join.steps, event,
      last ? fmt::format("after #{} {}", last.index, s.opText(last)) : std::string("before the first op"), bytes,
      level(JoinLevel::exact), level(JoinLevel::aligned), level(JoinLevel::unknown));
  std::size_t shown = 0;
  for (const auto& holder : moment.holders) {
    answer.json["held_for"].push_back({{"name", holder.name}, {"bytes", holder.bytes}, {"blocks", holder.count}});
    if (shown++ < most) answer.text += fmt::format("\n{:>14} in {:>4}  {}", holder.bytes, holder.count, holder.name);
  }
  if (shown > most) answer.text += fmt::format("\n{:>14}           {} more", "", shown - most);
  for (const auto i : moment.blocks) {
    if (answer.json["blocks"].size() == most) break;
    answer.json["blocks"].push_back(blockJson(recorded, i));
  }
  return answer;
}

CommandAnswer memory(ScriptState& s, const Words& words, const Progress& progress) {
  if (!words.rest.empty() && words.rest != "measured") return recorded(s, words.rest, progress);
  auto answer = predicted(s);
  if (!words.rest.empty() && s.session.size() > 0) addMeasured(s, answer, progress);
  return answer;
}

}  // namespace

std::vector<ScriptCommand> memoryCommands() {
  return {{"memory [measured|SNAPSHOT]",
           "live bytes by use, the peak, the timeline; measured: also the allocator's peak in a run, and the largest "
           "workspace; with a snapshot of torch.cuda.memory: what the GPU's allocator held at the present op, and for "
           "whom",
           memory}};
}

}  // namespace retrograd
