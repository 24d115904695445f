#include "tests/support/source_path.h"

namespace retrograd {

std::string sourcePath(std::string_view inside) { return std::string(RETROGRAD_SOURCE_DIR "/").append(inside); }

}  // namespace retrograd
