#include "core/formats/safetensors/safetensors.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  fuzz::expectReadOrRefusal([&] {
    const auto file = readSafetensors(fuzz::regionOf({reinterpret_cast<const char*>(data), size}), "fuzz");
    for (const auto& [name, tensor] : file.tensors)
      if (tensor.bytes > 0) (void)*const_cast<const volatile std::byte*>(tensor.data + tensor.bytes - 1);
  });
  return 0;
}
