// A repro script, with no storages next to it.
#include "core/base/memory_account.h"
#include "core/formats/repro/repro_inputs.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  fuzz::expectReadOrRefusal([&] {
    const ReadingScope scope(size);
    const auto repro = fx::readRepro({reinterpret_cast<const char*>(data), size}, "fuzz.py");
    readReproInputs(repro, "fuzz.py");
  });
  return 0;
}
