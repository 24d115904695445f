#pragma once
#include <cstdint>
#include <memory>

namespace retrograd {

/// Counts what LibTorch's CPU allocator hands out and takes back on this thread while it lives, kernels' workspaces
/// from that allocator included. What libraries take from elsewhere (oneDNN's scratch memory) is not seen. Bytes are
/// relative to the beginning.
class AllocatorWatch {
 public:
  AllocatorWatch();
  ~AllocatorWatch();
  AllocatorWatch(const AllocatorWatch&) = delete;
  AllocatorWatch& operator=(const AllocatorWatch&) = delete;

  std::int64_t current() const;
  /// The most at once since the last resetPeak().
  std::int64_t peak() const;
  void resetPeak();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace retrograd
