#pragma once
#include <ATen/core/ivalue.h>

#include <optional>
#include <utility>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/derivation/result_names.h"
#include "core/torch/execution/evaluator.h"

namespace retrograd {

/// What an evaluator starts from: parameters, buffers, constants, user inputs, and literals of formulas, as tensors
/// over borrowed memory, or on the GPU that the document says. `on`: all of them on this device. Throws Error(badInput)
/// naming a weight that the file lacks, Error(badUse) where there is no such GPU.
std::vector<std::pair<ValueId, c10::IValue>> inputValues(const Analysis& analysis, std::optional<Device> on = {});
/// Throws as inputValues() would, without reading or uploading anything.
void requireInputValues(const Analysis& analysis);
/// The tensor behind input i of the computation, where the document says; undefined for tokens, objects and numbers.
/// Throws as inputValues().
at::Tensor inputTensor(const Analysis& analysis, std::size_t i);
/// Cotangents by value of the joint. Throws as inputValues().
std::vector<std::pair<ValueId, c10::IValue>> cotangentValues(const Analysis& analysis);
/// Both, on the document's device: what a run of the joint starts from.
std::vector<std::pair<ValueId, c10::IValue>> startValues(const Analysis& analysis);
/// An evaluator of the document as the request has it, with these values.
Evaluator evaluatorOf(const Analysis& analysis, const std::vector<std::pair<ValueId, c10::IValue>>& values);

}  // namespace retrograd
