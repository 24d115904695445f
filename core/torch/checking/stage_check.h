#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/cut/pipeline_split.h"
#include "core/torch/analysis/joint_run.h"

namespace retrograd {

/// How what the stages give for one tensor compares with what the whole model gives.
enum class StageVerdict : std::uint8_t {
  equal,    ///< bit for bit
  close,    ///< within the tensor's tolerance
  differs,  ///< beyond it, of another shape, or there on one side only
};

struct StageCheckRow {
  enum class Of : std::uint8_t { parameter, input, output, mutation };
  Of of = Of::parameter;  ///< gradient of a parameter or of an input; an output; what is mutated
  std::string name;       ///< parameter or input by its first name; position of an output
  ValueId value;          ///< of the computation; none where it has none
  double difference = 0;  ///< largest of all elements; infinite where they cannot be compared
  double relative = 0;    ///< that over the tensor's largest element in the whole model
  double tolerance = 0;   ///< what `difference` may be (judge.h); 0 where the tensors are equal bit for bit
  StageVerdict verdict = StageVerdict::equal;
  std::string reason;  ///< where they cannot be compared: "the stages give none"
};

struct StageCheck {
  std::vector<StageCheckRow> rows;  ///< parameters and inputs in the model's order, outputs, mutations
  bool passed() const { return count(StageVerdict::differs) == 0; }
  std::size_t count(StageVerdict verdict) const {
    return std::ranges::count_if(rows, [&](const StageCheckRow& row) { return row.verdict == verdict; });
  }
};

/// Derives the stages, runs them in sequence, forwards and then backwards, and compares them with a run of the whole
/// model's joint trace, tensor by tensor. `split` has ids of asRead(whole). Throws Error as derivePipeline() and the
/// runs do, cancelled between stages.
StageCheck checkStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split,
                       const Progress& progress = {});

/// The comparison alone. A gradient that one side leaves out has to be zero on the other.
StageCheck compareStages(const std::shared_ptr<const Analysis>& whole, const RunResult& stages,
                         const RunResult& expected);

}  // namespace retrograd
