#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace retrograd {

/// Bytes that stay where they are as long as `owner` lives.
struct ByteRegion {
  const std::byte* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const void> owner;
  bool mapped = false;  ///< of a file: its pages can be given back

  std::span<const std::byte> span() const { return {data, size}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data), size}; }
};

/// Maps a regular file into memory, read only. Throws Error(badInput) for anything else, for what cannot be opened or
/// is empty.
ByteRegion mapFile(const std::string& path);

/// Gives the pages of a mapped file back to the system; they are read again when touched. Does nothing to other memory.
void releasePages(const ByteRegion& file, std::size_t offset, std::size_t size);

}  // namespace retrograd
