#pragma once
// Working state of the reader of snapshots; only snapshot_*.cpp include this.
#include <cstdint>
#include <span>

#include "core/base/hash_index.h"
#include "core/formats/memory/snapshot.h"

namespace retrograd::memory_reader {

/// Names that mean something in a snapshot. They are interned first, in this order, so that a name is its id.
enum Name : std::uint32_t {
  action,
  addr,
  size,
  stream,
  timeUs,
  compileContext,
  userMetadata,
  frames,
  deviceFree,
  name,
  filename,
  line,
  fxNodeName,
  address,
  requestedSize,
  state,
  totalSize,
  segmentType,
  segmentPool,
  isExpandable,
  blocks,
  device,
  segments,
  deviceTraces,
  allocatorSettings,
  externalAnnotations,
  stage,
  allocConf,
  maxSplitSize,
  expandableSegments,
  divisions,
  nameCount
};

/// Frames, stacks and places, each kept once.
class Interner {
 public:
  explicit Interner(MemorySnapshot& snapshot);
  std::uint32_t text(std::string_view text) { return static_cast<std::uint32_t>(snapshot_.strings.intern(text).index); }
  std::uint32_t frame(const MemoryFrame& frame);
  std::uint32_t stack(std::span<const std::uint32_t> frames);
  std::uint32_t place(const MemoryPlace& place);

 private:
  MemorySnapshot& snapshot_;
  HashIndex frames_, stacks_, places_;
  std::uint32_t lastPlace_ = 0;
};

}  // namespace retrograd::memory_reader
