#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/cli/version.h"

namespace retrograd::cli {
std::string versionText() { return fmt::format("retrograd {} (LibTorch {})", RETROGRAD_VERSION, RETROGRAD_LIBTORCH_VERSION); }

namespace {

Run setup(CLI::App&) {
  return [](const Progress&) {
    fmt::print("{}\n", versionText());
    return allWell;
  };
}

const Registration registration("version", "print the version and that of LibTorch", setup);

}  // namespace
}  // namespace retrograd::cli
