// Printed traces: what is read prints to a text that reads back to the same print.
#include "core/formats/text/text_trace.h"
#include "core/trace/print/printer.h"
#include "tests/core/formats/stub_symbols.h"
#include "tests/fuzz/fuzz.h"

namespace {

std::string print(const retrograd::TextTraces& traces) {
  retrograd::PrintOptions options;
  options.numbers = &traces.numbers;
  options.guards = &traces.guards;
  if (traces.computation) options.computation = &*traces.computation;
  std::string text;
  if (traces.computation) text = printTrace(*traces.document, traces.computation->trace, options);
  for (const auto& trace : traces.derived) text += printTrace(*traces.document, trace, options);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  std::string printed;
  bool isRead = false;
  fuzz::expectReadOrRefusal([&] {
    printed = print(readTextTraces({reinterpret_cast<const char*>(data), size}, "fuzz", test::stubLookup));
    isRead = true;
  });
  if (isRead && print(readTextTraces(printed, "again", test::stubLookup)) != printed) __builtin_trap();
  return 0;
}
