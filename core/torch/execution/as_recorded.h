#pragma once
// How the ops of a recorded step run again.
#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

#include "core/formats/recording/recording.h"
#include "core/torch/execution/reproducible.h"

namespace retrograd {

/// False for an op whose results only the recording has: opaque ones, and memory that changed without an op.
bool runsAsRecorded(const StepRecording& recording, BoundSymbolId op);

/// The results of such an op. What lies in memory that is there is written into it, as the op did. `held`: the tensor
/// of a value, undefined where there is none. Throws Error(execution) for a result that the recording lacks.
std::vector<std::pair<ValueId, at::Tensor>> recordedResults(const StepRecording& recording, const Document& document,
                                                            BoundSymbolId op,
                                                            const std::function<at::Tensor(ValueId)>& held);

/// The generator's state that the recording has from before the op; undefined where it goes on from the draw before.
/// Throws Error(execution) where the data lacks it.
at::Tensor recordedState(const StepRecording& recording, const Document& document, BoundSymbolId op);

/// LibTorch's deterministic mode as the step had it.
DeterministicScope::Mode determinismOf(const StepRecording& recording);

}  // namespace retrograd
