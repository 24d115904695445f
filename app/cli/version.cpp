#include <fmt/format.h>

#include "app/cli/command.h"
#include "core/checking/threads.h"

namespace retrograd::cli {
namespace {

Run setup(CLI::App&) {
  return [](const Progress&) {
    fmt::print("retrograd {} (LibTorch {})\n", RETROGRAD_VERSION, libTorchVersion());
    return allWell;
  };
}

const Registration registration("version", "print the version and that of LibTorch", setup);

}  // namespace
}  // namespace retrograd::cli
