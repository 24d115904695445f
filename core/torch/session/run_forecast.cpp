#include "core/torch/session/run_forecast.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/allowed_memory.h"
#include "core/base/user_choice.h"
#include "core/torch/execution/memory_budget.h"

namespace retrograd {
namespace {

/// Less than this is not a reason to ask the system how much is free.
constexpr std::int64_t small = 64 << 20;

std::string gigabytes(std::int64_t bytes) { return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9); }

}  // namespace

void RunForecast::requireRoom(std::size_t position, std::size_t target) {
  if (analysis_.device.type != Device::Type::cpu) return;
  if (!timeline_) timeline_ = memoryTimeline(analysis_);
  if (position >= target || target > timeline_->liveBytes.size()) return;
  const auto now = position == 0 ? 0 : timeline_->total(position - 1);
  std::int64_t most = 0;
  std::size_t fullest = position;
  for (auto p = position; p < target; ++p)
    if (const auto more = timeline_->total(p) - now; more > most) most = more, fullest = p;
  if (most < small) return;
  const auto asked = runningMemory();
  const auto room = asked ? *asked - now : freeMemory();
  if (most <= room) return;
  throw Error(ErrorCode::badUse,
              fmt::format("the run would take {} more at its fullest (after {}), and {} {}; save less ({}), stop "
                          "earlier, or allow {} bytes with {}",
                          gigabytes(most), analysis_.document->opName(analysis_.joint.ops[fullest]),
                          gigabytes(std::max<std::int64_t>(room, 0)), asked ? "are allowed" : "are free",
                          nameOf(UserChoice::minCut), most + now, nameOf(UserChoice::runningMemory)),
              analysis_.file.path);
}

}  // namespace retrograd
