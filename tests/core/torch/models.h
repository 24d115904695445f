#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/torch/checking/suite.h"
#include "tests/support/source_path.h"

namespace retrograd::test {

/// Every model that lies with the tests, among the samples, and among the cases where they lie next to the checkout.
inline std::vector<std::string> everyModel() {
  std::vector<std::string> found;
  for (const char* folder :
       {"tests/data/models", "resources/samples", "../shared/cases/models", "../shared/cases/models_2.9"})
    if (const auto path = sourcePath(folder); std::filesystem::is_directory(path))
      for (const auto& one : findCases(path)) found.push_back(one.model);
  return found;
}

}  // namespace retrograd::test
