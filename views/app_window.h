#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/grad/registry.h"

namespace retrograd {

/// Opens a window for each file (an empty one without files) and runs until the last is closed; returns the exit code.
int runWindow(int& argc, char** argv, const std::vector<std::string>& files, std::shared_ptr<const RuleRegistry> rules = {});

/// Opens the file in a window that is never shown on a display, steps over the border into the backward, selects a backward op
/// and writes a picture of the window as PNG. False where the file cannot be opened or the picture not written; why is on stderr.
bool renderWindowToPicture(const std::string& file, const std::string& picture, bool dark = false);

}  // namespace retrograd
