#pragma once
#include <string>

#include "tests/fuzz/programs/program.h"

namespace retrograd::fuzz {

/// The program that a printed computation is, to be run as the mode says. Throws Error where the text cannot be read.
Program readProgram(const std::string& text, std::uint64_t seed, const Mode& mode);

}  // namespace retrograd::fuzz
