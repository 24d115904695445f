#pragma once
#include <string>

#include "app/cli/parsing/command.h"
#include "core/formats/checkpoint/given_data.h"
#include "core/trace/tensor_data.h"

namespace retrograd::cli {

/// Prints the second opinion on a compile of a log (docs/jobs.md), on the weights and the batch of `data`. `filled`:
/// results of ops that cannot run here. Exit code 0: every gradient was compared by value and agrees; 1: a gradient
/// differs, or the job from the reference; 2: not possible, as where nothing differs and a tensor of the
/// reference could not be compared, or where job and reference agree and only the derived backward differs.
int checkLog(const std::string& path, const GivenData& data, const std::string& reference, TensorMap filled,
             std::uint64_t seed, const std::string& format, const Progress& progress);

}  // namespace retrograd::cli
