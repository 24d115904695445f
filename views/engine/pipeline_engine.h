#pragma once
#include <memory>

#include "core/cut/op_costs.h"
#include "core/torch/checking/stage_check.h"

namespace retrograd::views {

/// What the window asks of LibTorch about pipeline stages: the functions of core of the same names. Called on the
/// worker only.
class PipelineEngine {
 public:
  virtual ~PipelineEngine() = default;
  virtual OpCosts measuredCosts(const std::shared_ptr<const Analysis>&, const Progress&) = 0;
  virtual Report checkStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split,
                             const Progress&) = 0;
  virtual void writeStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split,
                           const std::vector<std::string>& notes, const std::string& folder, const Progress&) = 0;
  /// As completeTypes(): for printed traces without types, before they can be cut.
  virtual void completeTypes(ModelFile& model, const Analysis&) = 0;
};

}  // namespace retrograd::views
