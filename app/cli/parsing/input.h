#pragma once
#include <string>

namespace retrograd::cli {

/// The file to read where the command line names `path`: for "-" what comes from standard input, read once to its end
/// and kept in memory under a name in /proc; else `path`. Throws Error(io) where standard input cannot be read,
/// Error(badUse) where it is a terminal or empty.
std::string inputFile(const std::string& path);

}  // namespace retrograd::cli
