#pragma once
#include <string>

namespace retrograd::cli {

/// The file to read where the command line names `path`: for "-" what comes from standard input, read once to its end
/// and kept in memory under a name in /proc; else `path`. Throws Error(io) where standard input cannot be read,
/// Error(badUse) where it is a terminal or empty.
std::string inputFile(const std::string& path);

/// "; folders below it that can be opened: ..." for a folder with logs of jobs and repro scripts further down, as
/// torch_compile_debug has them; empty where there are none.
std::string jobsBelow(const std::string& path);

}  // namespace retrograd::cli
