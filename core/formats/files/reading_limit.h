#pragma once
#include <string>
#include <vector>

namespace retrograd {

/// From here on this process reads no file outside of these folders, whoever names it: a person, or a file that is
/// open. Links are followed first. Not for several threads: called once, before anything is read. Throws Error(badUse)
/// for a folder that is not there.
void limitReadingTo(const std::vector<std::string>& folders);

/// Throws Error(badUse) for a path that reading is not limited to.
void requireReadable(const std::string& path);

}  // namespace retrograd
