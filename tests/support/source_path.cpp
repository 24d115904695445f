#include "tests/support/source_path.h"

#include <cstdlib>

namespace retrograd {

std::string sourcePath(std::string_view inside) {
  const char* moved = std::getenv("RETROGRAD_TEST_SOURCE");
  return std::string(moved ? moved : RETROGRAD_SOURCE_DIR).append("/").append(inside);
}

}  // namespace retrograd
