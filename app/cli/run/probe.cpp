#include "core/torch/reading/probe.h"

#include <memory>

#include "app/cli/parsing/command.h"

namespace retrograd::cli {
namespace {

Run setUpProbe(Parser parser) {
  parser.hide();  // for ourselves: not in the help
  auto file = std::make_shared<std::string>();
  parser.add("file", *file).required();
  return [file](const Progress&) { return runProbe(*file); };
}

const Registration registrationProbe("probe-torchscript",
                                     "compile and check the code of a TorchScript file, running nothing of it",
                                     setUpProbe);

}  // namespace
}  // namespace retrograd::cli
