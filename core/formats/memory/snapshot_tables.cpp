#include "core/formats/memory/snapshot_tables.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/memory_account.h"

namespace retrograd::memory_reader {
namespace {

constexpr std::array<std::string_view, nameCount> names{"action",
                                                        "addr",
                                                        "size",
                                                        "stream",
                                                        "time_us",
                                                        "compile_context",
                                                        "user_metadata",
                                                        "frames",
                                                        "device_free",
                                                        "name",
                                                        "filename",
                                                        "line",
                                                        "fx_node_name",
                                                        "address",
                                                        "requested_size",
                                                        "state",
                                                        "total_size",
                                                        "segment_type",
                                                        "segment_pool_id",
                                                        "is_expandable",
                                                        "blocks",
                                                        "device",
                                                        "segments",
                                                        "device_traces",
                                                        "allocator_settings",
                                                        "external_annotations",
                                                        "stage",
                                                        "PYTORCH_CUDA_ALLOC_CONF",
                                                        "max_split_size",
                                                        "expandable_segments",
                                                        "roundup_power2_divisions"};

class Hash {
 public:
  void add(std::uint64_t n) { state_ = (state_ ^ n) * 0x9e3779b97f4a7c15ULL, state_ ^= state_ >> 29; }
  std::uint32_t value() const { return static_cast<std::uint32_t>(state_ ^ (state_ >> 32)); }

 private:
  std::uint64_t state_ = 0x2545f4914f6cdd1dULL;
};

std::uint64_t bits(StringId id) { return static_cast<std::uint32_t>(id.index); }

}  // namespace

Interner::Interner(MemorySnapshot& snapshot) : snapshot_(snapshot) {
  for (const auto name : names) snapshot_.strings.intern(name);
  for (auto i = 0; i <= static_cast<int>(MemoryAction::other); ++i)
    snapshot_.strings.intern(retrograd::name(static_cast<MemoryAction>(i)));
  stacks_.add(Hash().value(), 0);
  place({});
}

std::uint32_t Interner::frame(const MemoryFrame& frame) {
  Hash hash;
  hash.add(bits(frame.function) << 32 | bits(frame.file));
  hash.add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(frame.line)) << 32 | bits(frame.node));
  auto& all = snapshot_.frames;
  const auto found = frames_.find(hash.value(), [&](std::int32_t i) { return all[i] == frame; });
  if (found >= 0) return static_cast<std::uint32_t>(found);
  chargeReading(2 * sizeof(MemoryFrame));
  frames_.add(hash.value(), static_cast<std::int32_t>(all.size()));
  all.push_back(frame);
  return static_cast<std::uint32_t>(all.size() - 1);
}

std::uint32_t Interner::stack(std::span<const std::uint32_t> frames) {
  Hash hash;
  for (const auto frame : frames) hash.add(frame);
  const auto found = stacks_.find(hash.value(), [&](std::int32_t i) {
    return std::ranges::equal(snapshot_.stack(static_cast<std::uint32_t>(i)), frames);
  });
  if (found >= 0) return static_cast<std::uint32_t>(found);
  chargeReading(2 * frames.size_bytes() + 16);
  auto& starts = snapshot_.stackStarts;
  if (snapshot_.stackFrames.size() + frames.size() > 0xffffffffULL) badInput("its stacks have more than 2^32 frames");
  stacks_.add(hash.value(), static_cast<std::int32_t>(starts.size() - 1));
  snapshot_.stackFrames.insert(snapshot_.stackFrames.end(), frames.begin(), frames.end());
  starts.push_back(static_cast<std::uint32_t>(snapshot_.stackFrames.size()));
  return static_cast<std::uint32_t>(starts.size() - 2);
}

std::uint32_t Interner::place(const MemoryPlace& place) {
  auto& all = snapshot_.places;
  if (lastPlace_ < all.size() && all[lastPlace_] == place) return lastPlace_;
  Hash hash;
  hash.add(place.stack);
  hash.add(bits(place.compile) << 32 | bits(place.note));
  const auto found = places_.find(hash.value(), [&](std::int32_t i) { return all[i] == place; });
  if (found >= 0) return lastPlace_ = static_cast<std::uint32_t>(found);
  chargeReading(2 * sizeof(MemoryPlace));
  places_.add(hash.value(), static_cast<std::int32_t>(all.size()));
  all.push_back(place);
  return lastPlace_ = static_cast<std::uint32_t>(all.size() - 1);
}

}  // namespace retrograd::memory_reader
