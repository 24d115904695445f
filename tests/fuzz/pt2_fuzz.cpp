// Whole archives, as they come from a disk.
#include "core/formats/kinds/file_kind.h"
#include "core/formats/pt2/pt2.h"
#include "tests/core/formats/stub_symbols.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  fuzz::expectReadOrRefusal([&] {
    const auto bytes = fuzz::regionOf({reinterpret_cast<const char*>(data), size});
    describeForeignFile(bytes);
    const auto archive = Archive::open(bytes, "fuzz");
    describeForeignArchive(*archive);
    readPt2(archive, test::stubLookup, {});
  });
  return 0;
}
