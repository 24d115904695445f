#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/derivation/registry.h"

namespace retrograd::cli {

/// What reading the command line takes of the program and its front does not have (app/front.cpp).
struct ProgramFunctions {
  void (*loadLibrary)(const std::string& path, RuleRegistry& registry);
  std::vector<std::pair<std::string, std::string>> (*debuggerCommands)();
};

/// Thrown in the front where only the program knows the answer: the front becomes it.
struct NeedsProgram {};

/// Null in the front.
const ProgramFunctions* program();
void setProgram(const ProgramFunctions& functions);

}  // namespace retrograd::cli
