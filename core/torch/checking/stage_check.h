#pragma once
#include <memory>
#include <optional>

#include "core/cut/pipeline_split.h"
#include "core/judge/report.h"
#include "core/torch/analysis/joint_run.h"

namespace retrograd {

/// What a claim of compareStages() is about.
inline constexpr const char *parameterGradient = "parameter-gradient", *inputGradient = "input-gradient",
                            *stageOutput = "output", *stageMutation = "mutation";

/// Derives the stages, runs them in sequence, forwards and then backwards, and compares them with a run of the whole
/// model's joint trace, tensor by tensor. `split` has ids of asRead(whole). Throws Error as derivePipeline() and the
/// runs do, cancelled between stages.
Report checkStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split,
                   const Progress& progress = {});

/// The comparison alone: a claim for each gradient of a parameter or an input, output and mutation, with its value of
/// the computation; subjects are names of a reference ("grad.p.w", "out.0"). Bit for bit, and where that is not so
/// within the tensor's tolerance (judge.h), or `tolerance` times its largest element. A gradient that one side leaves
/// out has to be zero on the other.
Report compareStages(const std::shared_ptr<const Analysis>& whole, const RunResult& stages, const RunResult& expected,
                     std::optional<double> tolerance = {});

}  // namespace retrograd
