#include "app/cli/help/version.h"

#include <fmt/format.h>

#include <memory>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "core/base/installation.h"
#include "core/torch/execution/cuda/interface.h"

namespace retrograd::cli {

std::string versionText() {
  return fmt::format("retrograd {} (LibTorch {})", RETROGRAD_VERSION, RETROGRAD_LIBTORCH_VERSION);
}

namespace {

Run setUpVersion(Parser parser) {
  auto format = std::make_shared<std::string>("text");
  addFormat(parser, *format);
  return [format](const Progress&) {
    if (*format == "json")
      fmt::print("{{\"retrograd\": \"{}\", \"libtorch\": \"{}\", \"gpu_kernels\": {}}}\n", RETROGRAD_VERSION,
                 RETROGRAD_LIBTORCH_VERSION, !privateFile(cuda::kernelFileName).empty());
    else fmt::print("{}\n", versionText());
    return allWell;
  };
}

const Registration registrationVersion("version", "print the versions of Retrograd and LibTorch", setUpVersion);

}  // namespace
}  // namespace retrograd::cli
