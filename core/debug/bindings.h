#pragma once
#include <ATen/core/ivalue.h>

#include <utility>
#include <vector>

#include "core/debug/analysis.h"
#include "core/debug/result_names.h"

namespace retrograd {

/// What an evaluator starts from: parameters, buffers, constants, user inputs, and literals of formulas, as tensors over borrowed
/// memory. Throws Error(badInput) naming a weight that the file lacks.
std::vector<std::pair<ValueId, c10::IValue>> inputBindings(const Analysis& analysis);
/// The tensor behind input i of the computation; undefined for tokens, objects and numbers.
at::Tensor inputTensor(const Analysis& analysis, std::size_t i);
/// Cotangents by value of the joint.
std::vector<std::pair<ValueId, c10::IValue>> cotangentBindings(const Analysis& analysis);

}  // namespace retrograd
