#include "core/torch/steps/judge_step.h"

#include "core/torch/steps/optimizer_updates.h"
#include "core/torch/steps/step_report.h"

namespace retrograd {

Report judgeStep(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  auto report = reportOf(runStep(analysis, progress));
  worstFirst(report.claims);
  return report;
}

std::map<std::string, UpdateNumbers> lastUpdates(const std::shared_ptr<const Analysis>& analysis,
                                                 const Progress& progress) {
  std::map<std::string, UpdateNumbers> last;
  for (const auto& step : optimizerUpdates(analysis, progress).steps)
    for (const auto& update : step.parameters)
      if (update.update) last[update.parameter] = {update.clipFactor(), normOfAll(*update.update), update.ratio()};
  return last;
}

}  // namespace retrograd
