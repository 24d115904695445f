// The pickle inside an archive of torch.save.
#include "core/formats/pickle/pickle.h"
#include "tests/core/formats/zip/zip_writer.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  const auto zip = test::makeZip(
      {{"archive/data.pkl", {reinterpret_cast<const char*>(data), size}}, {"archive/data/0", std::string(64, '0')}});
  fuzz::expectReadOrRefusal([&] {
    const auto pickle = readPickle(Archive::open(fuzz::regionOf(zip), "fuzz"));
    leavesOf(pickle, pickle.root);
  });
  return 0;
}
