// Graphs and weight configs behind right checksums: the input is model.json, a zero byte, then
// model_weights_config.json.
#include "core/formats/pt2/pt2.h"
#include "tests/core/formats/stub_symbols.h"
#include "tests/core/formats/zip/zip_writer.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const auto border = input.find('\0');
  const std::string config = border == std::string::npos ? R"({"config": {}})" : input.substr(border + 1);
  const auto zip = test::makeZip({{"models/model.json", input.substr(0, border)},
                                  {"data/weights/model_weights_config.json", config},
                                  {"data/weights/weight_0", std::string(512, 'w')}});
  fuzz::expectReadOrRefusal([&] { readPt2(Archive::open(fuzz::regionOf(zip), "fuzz"), test::stubLookup, {}); });
  return 0;
}
