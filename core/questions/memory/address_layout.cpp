#include "core/questions/memory/address_layout.h"

#include <algorithm>

namespace retrograd {
namespace {

class LayoutBuilder {
 public:
  LayoutBuilder(const HeldMemory& held, std::int64_t event) : held_(held), event_(event) {}

  AddressLayout run() {
    collect();
    std::size_t next = 0;
    for (const auto& segment : segments_) {
      for (; next < blocks_.size() && addressOf(next) < segment.address; ++next) addAlone(next);
      begin(segment);
      const auto end = segment.address + segment.size;
      for (; next < blocks_.size() && addressOf(next) < end; ++next) addBlock(next, end);
      finish(end);
    }
    for (; next < blocks_.size(); ++next) addAlone(next);
    return std::move(layout_);
  }

 private:
  const HeldAllocation& block(std::size_t i) const { return held_.allocations[blocks_[i]]; }
  std::uint64_t addressOf(std::size_t i) const { return block(i).address; }

  void collect() {
    for (std::size_t i = 0; i < held_.allocations.size(); ++i)
      if (held_.allocations[i].isHeldAfter(event_)) blocks_.push_back(i);
    std::ranges::sort(blocks_, {}, [this](auto i) { return held_.allocations[i].address; });
    std::vector<SegmentLife> lives;
    for (const auto& life : held_.segments)
      if (life.isThereAfter(event_)) lives.push_back(life);
    std::ranges::sort(lives, {}, &SegmentLife::address);
    for (const auto& life : lives) {
      if (!segments_.empty()) {
        auto& last = segments_.back();
        const auto end = last.address + last.size;
        if (life.address < end) continue;  // of a damaged history
        if (life.address == end && life.expandable && last.expandable && life.stream == last.stream) {
          last.size += life.size;
          continue;
        }
      }
      segments_.push_back(life);
    }
  }

  void begin(const SegmentLife& segment) {
    layout_.segments.push_back({segment.address, segment.size, 0, segment.stream, segment.expandable, segment.small,
                                segment.isPrivate, layout_.pieces.size(), 0});
    at_ = segment.address;
  }

  void addPiece(std::uint64_t end, std::int32_t allocation) {
    if (end <= at_) return;
    layout_.pieces.push_back({at_, end - at_, allocation});
    ++layout_.segments.back().pieceCount;
    if (allocation != LaidOutPiece::free) layout_.segments.back().held += end - at_;
    at_ = end;
  }

  void addBlock(std::size_t i, std::uint64_t end) {
    if (addressOf(i) < at_) return;  // of a damaged history
    addPiece(addressOf(i), LaidOutPiece::free);
    addPiece(std::min(addressOf(i) + std::min(block(i).size, end - addressOf(i)), end),
             static_cast<std::int32_t>(blocks_[i]));
  }

  void finish(std::uint64_t end) { addPiece(end, LaidOutPiece::free); }

  void addAlone(std::size_t i) {
    const auto end = addressOf(i) + block(i).size;
    if (end <= addressOf(i) || addressOf(i) < at_) return;
    begin({.address = addressOf(i), .size = block(i).size});
    addPiece(end, static_cast<std::int32_t>(blocks_[i]));
  }

  const HeldMemory& held_;
  std::int64_t event_;
  std::vector<std::size_t> blocks_;  // by address
  std::vector<SegmentLife> segments_;
  AddressLayout layout_;
  std::uint64_t at_ = 0;
};

}  // namespace

AddressLayout addressLayout(const HeldMemory& held, std::int64_t event) { return LayoutBuilder(held, event).run(); }

FreeMemory freeMemory(const AddressLayout& layout, const std::optional<MemoryRequest>& request,
                      const AllocatorSettings& settings) {
  FreeMemory free;
  const bool isSmall = request && BlockSizes::small(BlockSizes(settings).rounded(request->size));
  for (const auto& segment : layout.segments) {
    const auto bytes = segment.size - segment.held;
    free.bytes += bytes;
    auto* other = !request                            ? nullptr
                  : segment.stream != request->stream ? &free.ofOtherStreams
                  : segment.isPrivate                 ? &free.ofOtherPools
                  : segment.small != isSmall          ? &free.ofOtherSizes
                                                      : nullptr;
    if (other != nullptr) *other += bytes;
    for (auto i = segment.firstPiece; i < segment.firstPiece + segment.pieceCount; ++i) {
      const auto& piece = layout.pieces[i];
      if (piece.allocation != LaidOutPiece::free) continue;
      ++free.count;
      if (other == nullptr && (!free.largest || piece.size > layout.pieces[*free.largest].size)) free.largest = i;
    }
  }
  return free;
}

PieceNeighbours neighboursOf(const AddressLayout& layout, std::size_t piece) {
  const auto behind = std::ranges::upper_bound(layout.segments, piece, {}, &LaidOutSegment::firstPiece);
  if (behind == layout.segments.begin()) return {};
  const auto& segment = *std::prev(behind);
  PieceNeighbours neighbours;
  if (piece > segment.firstPiece) neighbours.before = &layout.pieces[piece - 1];
  if (piece + 1 < segment.firstPiece + segment.pieceCount) neighbours.behind = &layout.pieces[piece + 1];
  return neighbours;
}

}  // namespace retrograd
