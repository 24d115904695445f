#pragma once
#include <optional>
#include <string>

#include "app/cli/parsing/command.h"

namespace retrograd::cli {

/// Prints joint, forward or backward of a compile of a job's log as the listings they are. `show`: one of these, or
/// "all".
int traceLog(const std::string& path, const std::string& compile, std::optional<std::int64_t> rank,
             const std::string& show, bool plain, const std::string& format, const Progress& progress);

/// Prints what a text of printed traces without a computation holds, such as the joint of a log as traceLog prints it.
/// False for any other file: nothing is printed then.
bool traceDerivedText(const std::string& path, const std::string& show, bool plain, const std::string& format,
                      const Progress& progress);

}  // namespace retrograd::cli
