#pragma once
#include <string>
#include <vector>

#include "core/base/progress.h"

namespace retrograd {

/// Code of LibTorch that was not made for hostile files runs on a file in a process of its own first, so that a crash
/// or a hang there is a message and not our end.

/// Says which program does that: `command` with the file's path behind it calls runProbe(). Before this is called there
/// is none, and probe() does nothing.
void setProbeCommand(std::vector<std::string> command);

/// Lets the program try the file. Throws Error(badInput) where it crashes, takes too long or too much memory,
/// Error(cancelled). Faults of the file are not reported here: who reads it next finds the same.
void probe(const std::string& path, const Progress& progress);

/// What that program does: compiles and checks the file's code. Returns its exit code.
int runProbe(const std::string& path);

}  // namespace retrograd
