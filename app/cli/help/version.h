#pragma once
#include <string>

namespace retrograd::cli {

/// "retrograd 0.1.0 (LibTorch 2.15.0)"
std::string versionText();

}  // namespace retrograd::cli
