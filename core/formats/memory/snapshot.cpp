#include "core/formats/memory/snapshot.h"

#include "core/base/enum_array.h"
#include "core/base/memory_account.h"

namespace retrograd {
namespace {

constexpr EnumArray<MemoryAction, std::string_view, 10> actionNames{
    "alloc",       "free_requested", "free_completed", "segment_alloc", "segment_free",
    "segment_map", "segment_unmap",  "snapshot",       "oom",           "other"};

/// The first byte of an event: its action, and which fields are as in the event before.
constexpr std::uint8_t actionBits = 0x0f, sameAddress = 0x10, sameSize = 0x20, sameStream = 0x40, samePlace = 0x80;

std::uint8_t* put(std::uint8_t* to, std::uint64_t n) {
  for (; n >= 0x80; n >>= 7) *to++ = static_cast<std::uint8_t>(n | 0x80);
  *to++ = static_cast<std::uint8_t>(n);
  return to;
}

/// The difference of two numbers, small ones of either sign short.
std::uint8_t* putStep(std::uint8_t* to, std::uint64_t from, std::uint64_t n) {
  const auto step = n - from;
  return put(to, (step << 1) ^ (0 - (step >> 63)));
}

std::uint64_t take(const std::uint8_t*& at) {
  std::uint64_t n = *at & 0x7fU;
  for (unsigned shift = 7; (*at++ & 0x80U) != 0; shift += 7) n |= (*at & 0x7fULL) << shift;
  return n;
}

std::uint64_t takeStep(const std::uint8_t*& at, std::uint64_t from) {
  const auto folded = take(at);
  return from + ((folded >> 1) ^ (0 - (folded & 1)));
}

}  // namespace

std::string_view name(MemoryAction action) { return actionNames[action]; }

void EventLog::add(const MemoryEvent& event) {
  if (chunks_.empty() || chunks_.back().used + longestEvent > chunkBytes) {
    chargeReading(chunkBytes);
    chunks_.push_back({std::make_unique_for_overwrite<std::uint8_t[]>(chunkBytes), 0});
  }
  auto& chunk = chunks_.back();
  auto* const begin = chunk.bytes.get() + chunk.used;
  auto* to = begin + 1;
  auto head = static_cast<std::uint8_t>(event.action);
  if (event.address == last_.address) head |= sameAddress;
  else to = putStep(to, last_.address, event.address);
  if (event.size == last_.size) head |= sameSize;
  else to = put(to, event.size);
  if (event.stream == last_.stream) head |= sameStream;
  else to = put(to, static_cast<std::uint64_t>(event.stream));
  if (event.place == last_.place) head |= samePlace;
  else to = put(to, event.place);
  to = putStep(to, static_cast<std::uint64_t>(last_.time), static_cast<std::uint64_t>(event.time));
  *begin = head;
  chunk.used += static_cast<std::size_t>(to - begin);
  last_ = event;
  ++count_;
}

bool EventLog::Cursor::next(MemoryEvent& event) {
  while (chunk_ < log_->chunks_.size() && at_ == log_->chunks_[chunk_].used) ++chunk_, at_ = 0;
  if (chunk_ == log_->chunks_.size()) return false;
  const auto* const begin = log_->chunks_[chunk_].bytes.get();
  const auto* at = begin + at_;
  const auto head = *at++;
  event.action = static_cast<MemoryAction>(head & actionBits);
  if (!(head & sameAddress)) event.address = takeStep(at, event.address);
  if (!(head & sameSize)) event.size = take(at);
  if (!(head & sameStream)) event.stream = static_cast<std::int64_t>(take(at));
  if (!(head & samePlace)) event.place = static_cast<std::uint32_t>(take(at));
  event.time = static_cast<std::int64_t>(takeStep(at, static_cast<std::uint64_t>(event.time)));
  at_ = static_cast<std::size_t>(at - begin);
  return true;
}

}  // namespace retrograd
