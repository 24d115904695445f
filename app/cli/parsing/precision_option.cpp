#include "app/cli/parsing/precision_option.h"

#include <string>
#include <vector>

#include "core/derivation/precision.h"

namespace retrograd::cli {

void addPrecisionB(Parser parser, std::optional<DType>& precision) {
  std::vector<std::string> names;
  for (auto dtype : precisions()) names.emplace_back(torchName(dtype));
  const auto option = parser.add("--dtype-b",
                                 "precision of the second side: its floating parameters, buffers, inputs and dtype "
                                 "literals (default: as in the first)",
                                 [&precision](const std::string& name) { precision = dtypeFromTorchName(name); });
  option.oneOf(names);
  parser.flag("--double", {}, [&precision] { precision = DType::f64; }).excludes(option).hidden();
}

}  // namespace retrograd::cli
