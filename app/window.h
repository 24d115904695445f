#pragma once
#include <string>
#include <vector>

namespace retrograd {

/// Opens the window with these files and runs it to its end. Throws Error(badUse) where there is no display or the program
/// was built without the window, naming the subcommands that need none.
int showWindow(int& argc, char** argv, const std::vector<std::string>& files);

}  // namespace retrograd
