#pragma once
// The passes that a derivation consists of, as a list: what runs them also times them and keeps what each made.
#include <optional>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/split/partition.h"
#include "core/torch/grad/transform.h"
#include "core/trace/trace.h"

namespace retrograd {

/// What the passes work on. Each finds here what those before it made.
struct PassState {
  const Analysis& analysis;  ///< its inputs were chosen
  Document& document;        ///< the analysis's own or a copy of it; grows
  const DerivationRequest& request;
  RuleCache& cache;
  Progress progress = {};
  std::optional<Document> asRead = {};  ///< where sizes of the joint are to become expressions

  JointResult result = {};             ///< once the grad transform ran; later passes replace its joint
  SplitResult halves = {};             ///< once the joint was split
  std::vector<Problem> problems = {};  ///< that the passes found
};

struct PassSeconds {
  double joint = 0;  ///< the grad transform
  double split = 0;  ///< what makes forward and backward of its joint
};

/// Runs the passes in their order: grad transform, symbolic sizes, dead code elimination, copy elision, partition,
/// split. Each that changed a trace has a record in its history. `results`, where given, gets what they made: the joint
/// after each, then forward and backward.
PassSeconds runPasses(PassState& state, std::vector<PassResult>* results = nullptr);

}  // namespace retrograd
