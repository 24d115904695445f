#include "core/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>

#include "core/base/error.h"
#include "core/base/number_text.h"

namespace retrograd {
namespace {

struct KindName {
  std::string_view name;
  ActionKind kind;
};

// A longer name before one that it begins with: "RECV_F0" must not be read as R..., nor "F" eat what is left of
// another.
constexpr std::array<KindName, 15> kindNames{{
    {"WAIT_REDUCE_GRAD", ActionKind::waitReduceGrad},
    {"WAIT_SEND_F", ActionKind::waitSendForward},
    {"WAIT_SEND_B", ActionKind::waitSendBackward},
    {"REDUCE_GRAD", ActionKind::reduceGrad},
    {"OVERLAP_F_B", ActionKind::overlap},
    {"UNSHARD", ActionKind::unshard},
    {"RESHARD", ActionKind::reshard},
    {"SEND_F", ActionKind::sendForward},
    {"RECV_F", ActionKind::recvForward},
    {"SEND_B", ActionKind::sendBackward},
    {"RECV_B", ActionKind::recvBackward},
    {"F", ActionKind::forward},
    {"I", ActionKind::backwardInput},
    {"W", ActionKind::backwardWeight},
    {"B", ActionKind::backward},
}};

constexpr std::int32_t largestNumber =
    99'999;  // of a stage or microbatch: what a typing error must not turn into gigabytes
constexpr std::string_view blanks = " \t\r";
constexpr std::uintmax_t largestFile = 64 << 20;

bool ofOneMicrobatch(ActionKind kind) { return computes(kind) || transfers(kind); }

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  badInput(fmt::format("'{}' is not an action: {}", text.substr(0, 60), why));
}

/// The number at the front of `rest`, which is taken away from it; -1 without one.
std::int32_t takeNumber(std::string_view& rest, std::string_view whole) {
  std::int32_t number = -1;
  const auto result = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (result.ec == std::errc::invalid_argument) return -1;
  if (result.ec != std::errc{} || number < 0 || number > largestNumber)
    refuse(whole, fmt::format("stages and microbatches are numbers from 0 to {}", largestNumber));
  rest.remove_prefix(result.ptr - rest.data());
  return number;
}

Action parseSingle(std::string_view whole) {
  auto rest = whole;
  Action action;
  action.stage = takeNumber(rest, whole);
  if (action.stage < 0) refuse(whole, "it begins with the number of its stage, as in 0F3");
  const auto* found = std::find_if(kindNames.begin(), kindNames.end(),
                                   [&](const KindName& entry) { return rest.starts_with(entry.name); });
  if (found == kindNames.end() || found->kind == ActionKind::overlap)
    refuse(whole,
           "after the stage comes F, I, W, B, SEND_F, RECV_F, SEND_B, RECV_B, WAIT_SEND_F, WAIT_SEND_B, UNSHARD, "
           "RESHARD, REDUCE_GRAD or "
           "WAIT_REDUCE_GRAD");
  action.kind = found->kind;
  rest.remove_prefix(found->name.size());
  action.microbatch = takeNumber(rest, whole);
  if (!rest.empty()) refuse(whole, fmt::format("nothing is expected at '{}'", rest.substr(0, 20)));
  if (ofOneMicrobatch(action.kind) && action.microbatch < 0) refuse(whole, "the number of the microbatch is missing");
  if (!ofOneMicrobatch(action.kind) && action.microbatch >= 0)
    refuse(whole, fmt::format("{} is of a stage and takes no microbatch", found->name));
  return action;
}

Action parseOverlap(std::string_view whole) {
  const auto end = whole.find(')');
  if (end == whole.npos) refuse(whole, "')' is missing");
  if (whole.substr(end + 1) != "OVERLAP_F_B") refuse(whole, "parts in parentheses are followed by OVERLAP_F_B");
  Action action;
  action.kind = ActionKind::overlap;
  for (auto inside = whole.substr(1, end - 1);;) {
    const auto semicolon = inside.find(';');
    action.parts.push_back(parseSingle(trimmed(inside.substr(0, semicolon), blanks)));
    if (!computes(action.parts.back().kind)) refuse(whole, "only F, B, I and W overlap");
    if (semicolon == inside.npos) break;
    inside.remove_prefix(semicolon + 1);
  }
  return action;
}

using StageCounts = std::map<std::int32_t, std::int32_t>;  // by rank: its actions on the stage

void learnFrom(const Action& action, std::int32_t rank, Schedule& schedule, std::vector<StageCounts>& counts) {
  for (const auto& part : action.parts) learnFrom(part, rank, schedule, counts);
  if (action.kind == ActionKind::overlap) return;
  schedule.stages = std::max(schedule.stages, action.stage + 1);
  schedule.microbatches = std::max(schedule.microbatches, action.microbatch + 1);
  if (!computes(action.kind)) return;
  const std::size_t stage = action.stage;
  if (counts.size() <= stage) counts.resize(stage + 1);
  ++counts[stage][rank];
}

/// The rank that does most of a stage, so that a stray action elsewhere is the one to be refused.
std::int32_t homeOf(const StageCounts& counts) {
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? -1 : most->first;
}

std::vector<Action> readRow(std::string_view line, std::size_t row) {
  std::vector<Action> actions;
  for (std::size_t cell = 1;; ++cell) {
    const auto comma = line.find(',');
    if (const auto text = trimmed(line.substr(0, comma), blanks); !text.empty()) {
      try {
        actions.push_back(parseAction(text));
      } catch (const Error& error) {
        throw error.at(fmt::format("row {}, cell {}", row, cell));
      }
    }
    if (comma == line.npos) return actions;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

bool computes(ActionKind kind) {
  return kind == ActionKind::forward || kind == ActionKind::backward || kind == ActionKind::backwardInput ||
         kind == ActionKind::backwardWeight;
}

bool transfers(ActionKind kind) { return kind >= ActionKind::sendForward && kind <= ActionKind::waitSendBackward; }

std::vector<StageEdge> Schedule::allEdges() const {
  if (!edges.empty()) return edges;
  std::vector<StageEdge> chain;
  for (std::int32_t stage = 1; stage < stages; ++stage) chain.push_back({stage - 1, stage});
  return chain;
}

Schedule scheduleOf(std::string name, std::vector<std::vector<Action>> ranks) {
  Schedule schedule;
  schedule.name = std::move(name);
  schedule.ranks = std::move(ranks);
  std::vector<StageCounts> counts;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (const auto& action : schedule.ranks[rank])
      learnFrom(action, static_cast<std::int32_t>(rank), schedule, counts);
  for (const auto& stage : counts) schedule.rankOfStage.push_back(homeOf(stage));
  schedule.rankOfStage.resize(schedule.stages, -1);
  return schedule;
}

std::string text(const Action& action) {
  const auto name = std::find_if(kindNames.begin(), kindNames.end(), [&](const KindName& entry) {
                      return entry.kind == action.kind;
                    })->name;
  if (action.kind != ActionKind::overlap)
    return fmt::format("{}{}{}", action.stage, name,
                       action.microbatch < 0 ? std::string{} : std::to_string(action.microbatch));
  std::vector<std::string> parts;
  for (const auto& part : action.parts) parts.push_back(text(part));
  return fmt::format("({}){}", fmt::join(parts, ";"), name);
}

Action parseAction(std::string_view text) {
  const auto whole = trimmed(text, blanks);
  if (whole.empty()) refuse(whole, "it is empty");
  return whole.front() == '(' ? parseOverlap(whole) : parseSingle(whole);
}

Schedule readScheduleCsv(std::string_view csv, std::string name) {
  if (csv.starts_with("\xEF\xBB\xBF")) csv.remove_prefix(3);
  while (!csv.empty() && (csv.back() == '\n' || csv.back() == '\r')) csv.remove_suffix(1);
  std::vector<std::vector<Action>> ranks;
  try {
    while (!csv.empty()) {
      const auto line = takePart(csv, '\n');
      if (trimmed(line, blanks).empty())
        badInput("the row is empty: each row is a rank", fmt::format("row {}", ranks.size() + 1));
      ranks.push_back(readRow(line, ranks.size() + 1));
    }
    if (ranks.empty()) badInput("no row: a schedule has one for each rank");
  } catch (const Error& error) {
    throw error.at(name);
  }
  return scheduleOf(std::move(name), std::move(ranks));
}

Schedule readScheduleFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = file.tellg();
  if (!file || size < 0) badUse("cannot be read", path);
  if (static_cast<std::uintmax_t>(size) > largestFile) badInput("too large for a schedule (64 MiB at most)", path);
  std::string content(size, '\0');
  file.seekg(0);
  if (!file.read(content.data(), size)) badUse("cannot be read", path);
  return readScheduleCsv(content, path);
}

std::string writeScheduleCsv(const Schedule& schedule) {
  std::string csv;
  for (const auto& row : schedule.ranks) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i) csv += ',';
      csv += text(row[i]);
    }
    csv += '\n';
  }
  return csv;
}

}  // namespace retrograd
