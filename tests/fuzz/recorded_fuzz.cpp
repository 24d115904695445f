// A recording of DebugMode.
#include "core/base/memory_account.h"
#include "core/formats/debug_mode/debug_mode_log.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  fuzz::expectReadOrRefusal([&] {
    const ReadingScope scope(size);
    readDebugMode(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  });
  return 0;
}
