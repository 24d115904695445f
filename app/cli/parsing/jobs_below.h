#pragma once
#include <string>

namespace retrograd::cli {

/// "; folders below it that can be opened: ..." for a folder with logs of jobs and repro scripts further down, as
/// torch_compile_debug has them; empty where there are none.
std::string jobsBelow(const std::string& path);

}  // namespace retrograd::cli
