// What torch.save wrote (first byte even) and the metadata of a distributed checkpoint (odd), whose slices lie in a
// folder made here.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/memory_account.h"
#include "core/formats/checkpoint/distributed.h"
#include "core/formats/checkpoint/saved_object.h"
#include "tests/core/formats/checkpoint/pickled.h"
#include "tests/fuzz/fuzz.h"

namespace {

std::string sliceFolder() {
  using namespace retrograd::test::pickled;
  static const std::string folder = [] {
    const auto path = std::filesystem::temp_directory_path() / ("retrograd-fuzz-" + std::to_string(::getpid()));
    std::filesystem::create_directories(path);
    const auto slice = saved(tensor("0", {1, 2}, {2, 1}, 2), {{"0", floats({1, 2})}});
    std::ofstream(path / "__0_0.distcp", std::ios::binary)
        .write(slice.data(), static_cast<std::streamsize>(slice.size()));
    return path.string();
  }();
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  if (size == 0) return 0;
  const std::string content(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    const auto zip = test::makeZip({{"archive/data.pkl", content}, {"archive/data/0", std::string(64, '0')}});
    fuzz::expectReadOrRefusal([&] { readSavedObject(fuzz::regionOf(zip), "fuzz"); });
    return 0;
  }
  fuzz::expectReadOrRefusal([&] {
    const ReadingScope scope(content.size());
    Checkpoint checkpoint;
    readMetadata(content, sliceFolder(), checkpoint);
    for (const auto& tensor : checkpoint.tensors) tensor.load();
  });
  return 0;
}
