#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/derivation/registry.h"

namespace retrograd {

/// `rules`: of the libraries named on the command line, or null. Opens the window with these files and runs it to its
/// end. Throws Error(badUse) where there is no display or the program was built without the window, naming the
/// subcommands that need none.
int showWindow(int& argc, char** argv, const std::vector<std::string>& files,
               std::shared_ptr<const RuleRegistry> rules);

}  // namespace retrograd
