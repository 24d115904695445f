// A library to preload whose static object cannot be destroyed, as some of LibTorch's cannot where memory ran short.
#include <cstdlib>

namespace {
struct Ending {
  ~Ending() { std::abort(); }
} ending;
}  // namespace
