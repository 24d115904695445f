#pragma once
#include <string>

#include "tests/fuzz/programs/program.h"

namespace retrograd::fuzz {

/// The program as a printed computation (docs/text-form.md), which `retrograd check` takes.
std::string printProgram(const Program& program);

/// The same as the body of a fixed test (tests/core/torch/grad/programs_test.cpp), with its mode.
std::string printTest(const Program& program, const std::string& name, const std::string& difference);

/// Options of `retrograd check` that ask for the program's mode; "" for none.
std::string printMode(const Program& program);

}  // namespace retrograd::fuzz
