// The manifest of a recorded folder.
#include "core/base/memory_account.h"
#include "core/formats/folder/folder.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  fuzz::expectReadOrRefusal([&] {
    const ReadingScope scope(size);
    static_cast<void>(readRecordedFolder({reinterpret_cast<const char*>(data), size}, "folder"));
  });
  return 0;
}
