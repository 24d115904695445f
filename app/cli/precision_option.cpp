#include "app/cli/precision_option.h"

#include <string>
#include <vector>

#include "core/derivation/precision.h"

namespace retrograd::cli {

void addPrecisionB(CLI::App& app, std::optional<DType>& precision) {
  std::vector<std::string> names;
  for (auto dtype : precisions()) names.emplace_back(torchName(dtype));
  auto* option = app.add_option_function<std::string>(
      "--dtype-b", [&precision](const std::string& name) { precision = dtypeFromTorchName(name); },
      "precision of the second side: its floating parameters, buffers, inputs and dtype literals (default: as in the first)");
  option->check(CLI::IsMember(names));
  app.add_flag_function("--double", [&precision](std::int64_t) { precision = DType::f64; })->excludes(option)->group("");
}

}  // namespace retrograd::cli
