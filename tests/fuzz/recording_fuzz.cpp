// The stream of a recording: it is read, up to a break at most, or refused; what was read fits together.
#include "core/base/memory_account.h"
#include "core/formats/recording/recording.h"
#include "tests/core/formats/stub_symbols.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  fuzz::expectReadOrRefusal([&] {
    const ReadingScope scope(size);
    const auto file = readRecordingText({reinterpret_cast<const char*>(data), size}, {}, test::stubLookup);
    const auto& document = *file.document;
    if (file.recording->ops.size() != document.boundSymbolCount()) __builtin_trap();
    for (const auto op : file.computation.trace.ops)
      for (const auto operand : document.operands(op))
        if (!document.contains(operand)) __builtin_trap();
    for (const auto& op : file.recording->ops)
      if (std::size_t{op.checksBegin} + op.checkCount > file.recording->checks.size()) __builtin_trap();
  });
  return 0;
}
