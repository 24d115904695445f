#pragma once
#include <functional>

#include "tests/fuzz/programs/program.h"

namespace retrograd::fuzz {

/// The smallest program, as far as it is found within `tries`, of which `fails` still holds: without modes, results,
/// ops, regions and inputs that it does not take, inputs laid out plainly.
Program shrink(Program program, const std::function<bool(const Program&)>& fails, int tries);

}  // namespace retrograd::fuzz
