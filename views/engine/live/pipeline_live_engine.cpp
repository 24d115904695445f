#include "core/cut/as_read.h"
#include "core/torch/stages/boundary.h"
#include "core/torch/stages/stage_costs.h"
#include "core/torch/stages/stage_files.h"
#include "views/engine/pipeline_engine.h"

namespace retrograd::views {
namespace {

class LivePipelines : public PipelineEngine {
 public:
  OpCosts measuredCosts(const std::shared_ptr<const Analysis>& whole, const Progress& progress) override {
    return retrograd::measuredCosts(whole, progress);
  }
  StageCheck checkStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split,
                         const Progress& progress) override {
    return retrograd::checkStages(whole, split, progress);
  }
  void writeStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split,
                   const std::vector<std::string>& notes, const std::string& folder,
                   const Progress& progress) override {
    auto model = asRead(*whole);
    if (isUntyped(model)) retrograd::completeTypes(model, *whole);
    retrograd::writeStages(std::move(model), whole, split, notes, folder, progress);
  }
  void completeTypes(ModelFile& model, const Analysis& whole) override { retrograd::completeTypes(model, whole); }
};

}  // namespace

std::unique_ptr<PipelineEngine> livePipelines() { return std::make_unique<LivePipelines>(); }

}  // namespace retrograd::views
