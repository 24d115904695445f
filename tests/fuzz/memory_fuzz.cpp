// A snapshot of CUDA's allocator, and what is asked of it.
#include "core/questions/memory/address_layout.h"
#include "core/questions/memory/allocator_model.h"
#include "core/questions/memory/memory_finding.h"
#include "core/questions/memory/memory_groups.h"
#include "core/questions/memory/memory_stack.h"
#include "tests/fuzz/fuzz.h"

namespace {

class FuzzedStream final : public retrograd::ByteStream {
 public:
  FuzzedStream(const std::uint8_t* data, std::size_t size) : bytes_(reinterpret_cast<const char*>(data), size) {}
  std::size_t read(char* to, std::size_t most) override {
    const auto count = bytes_.copy(to, most);
    bytes_.remove_prefix(count);
    return count;
  }
  double fraction() const override { return 0; }

 private:
  std::string_view bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  FuzzedStream stream(data, size);
  fuzz::expectReadOrRefusal([&] {
    const auto snapshot = readMemorySnapshot(stream);
    const MemoryPlaces places(snapshot);
    const auto held = heldMemory(snapshot, firstDevice(snapshot), places);
    memoryGroups(held, places, MemoryGrouping::line);
    memoryGroups(held, places, MemoryGrouping::module);
    if (held.events == 0) return;
    const auto device = firstDevice(snapshot);
    memoryFindings(snapshot, device, places, heldMemory(snapshot, device, places, {held.events - 1}));
    const auto whole = wholeHistory(snapshot, device, places);
    addressLayout(whole, static_cast<std::int64_t>(whole.events) / 2);
    const MemoryStack stack(std::make_shared<const HeldMemory>(whole),
                            groupedAllocations(whole, places, MemoryGrouping::line), 5);
    stack.columns(0, stack.events(), 64);
    modelledMemory(snapshot, device, allocatorRequests(snapshot, device));
  });
  return 0;
}
